// Spec 4.7 and 2.2: uploads, what is known of them and their bytes, on a real Postgres and a real directory.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { HttpAnswer } from '../support/http-call.ts';
import { BOUNDARY, type MediaFront, startMediaFront } from '../support/media-front.ts';
import { type FormEntry, writeForm } from '../support/multipart-forms.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { waitFor } from '../support/waiting.ts';

const FILE_BYTES_MAX = 1_000_000;
const ORGANIZATION_BYTES_MAX = 3_000_000;
const FORM_TYPE = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
const PNG = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(1_000, 7)]);

describe('uploaded files', () => {
  let database: TestDatabase;
  let media: MediaFront;
  let off: MediaFront;

  before(async () => {
    database = await openTestDatabase();
    media = await startMediaFront(database.postgres, {
      limits: { fileBytesMax: FILE_BYTES_MAX, organizationBytesMax: ORGANIZATION_BYTES_MAX },
    });
    off = await startMediaFront(database.postgres, null);
  });
  after(async () => {
    await media?.stop();
    await off?.stop();
    await database?.close();
  });

  const form = (entries: readonly FormEntry[], path = '/v1/media/upload', as = 'acme'): Promise<HttpAnswer> =>
    media.call(as, path, { body: writeForm(BOUNDARY, entries), headers: FORM_TYPE });

  test('an upload answers with id, mime, bytes, deduped and url; metadata with id, url, content_type and size', async () => {
    const { status, body } = await media.upload('acme', PNG);
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body), ['id', 'mime', 'bytes', 'deduped', 'url']);
    assert.deepEqual([body.mime, body.bytes, body.deduped], ['image/png', PNG.length, false]);
    const metadata = await media.call('acme', `/v1/media/${body.id}/metadata`);
    assert.deepEqual(JSON.parse(metadata.body.toString()), {
      id: body.id,
      url: body.url,
      content_type: 'image/png',
      size: PNG.length,
    });
    const bytes = await media.call('acme', new URL(body.url).pathname);
    assert.equal(bytes.status, 200);
    assert.ok(bytes.body.equals(PNG));
    assert.deepEqual(media.files().staged, []);
  });

  test('/v1/files is another name for the same', async () => {
    const value = randomBytes(100);
    const uploaded = await form(
      [
        { name: 'purpose', value: 'assistants' },
        { name: 'file', filename: 'x.bin', value },
      ],
      '/v1/files',
    );
    assert.equal(uploaded.status, 200);
    const { id } = JSON.parse(uploaded.body.toString()) as { id: string };
    assert.ok((await media.call('acme', `/v1/files/${id}`)).body.equals(value));
    assert.equal(
      (await media.call('acme', `/v1/files/${id}/metadata`)).body.toString(),
      (await media.call('acme', `/v1/media/${id}/metadata`)).body.toString(),
    );
  });

  test('an organization has the same bytes once; another one’s are no duplicate, whatever it has', async () => {
    const bytes = randomBytes(5_000);
    const first = (await media.upload('acme', bytes)).body;
    const again = (await media.upload('colleague', bytes, { filename: 'b.png' })).body;
    assert.deepEqual(again, { ...first, deduped: true });
    const foreign = (await media.upload('other', bytes)).body;
    assert.notEqual(foreign.id, first.id);
    assert.equal(foreign.deduped, false);
    const { objects } = media.files();
    assert.ok(objects.includes(first.id) && objects.includes(foreign.id));
  });

  test('bytes that another organization has are answered as bytes that nobody has', async () => {
    const bytes = randomBytes(5_000);
    await media.upload('acme', bytes);
    const uploadOf = (value: Buffer) => form([{ name: 'file', filename: 'a', value }], '/v1/files', 'other');
    const known = await uploadOf(bytes);
    const unknown = await uploadOf(randomBytes(5_000));
    const shape = ({ status, headers, body }: HttpAnswer) => {
      const { id, url, ...rest } = JSON.parse(body.toString()) as Record<string, unknown>;
      const names = Object.keys(headers).sort();
      return { status, names, rest, length: body.length, ids: [typeof id, String(url).length] };
    };
    assert.deepEqual(shape(known), shape(unknown));
    assert.equal(shape(known).rest['deduped'], false);
  });

  test('what another organization has is as absent as what nobody has, and as what is no id', async () => {
    const { id } = (await media.upload('acme', randomBytes(10))).body;
    for (const end of ['', '/metadata']) {
      const foreign = await media.call('other', `/v1/media/${id}${end}`);
      assert.equal(foreign.status, 404);
      for (const other of [randomUUID(), 'x', '%00', `${id}0`]) {
        const absent = await media.call('other', `/v1/media/${other}${end}`);
        assert.equal(absent.status, 404, other);
        assert.deepEqual(refusalBody(absent.body.toString()), refusalBody(foreign.body.toString()), other);
      }
    }
    assert.equal((await media.call('acme', `/v1/media/${id.toUpperCase()}`)).status, 200);
  });

  test('a file over its limit is 413, also in chunks, and nothing of it stays', async () => {
    const before = media.files().objects.length;
    const exact = await media.upload('acme', Buffer.alloc(FILE_BYTES_MAX, 1));
    assert.equal(exact.status, 200);
    const value = Buffer.alloc(FILE_BYTES_MAX + 1, 2);
    for (const isChunked of [false, true]) {
      const answer = await media.call('acme', '/v1/media/upload', {
        body: writeForm(BOUNDARY, [{ name: 'file', filename: 'a', value }]),
        headers: FORM_TYPE,
        isChunked,
      });
      assert.equal(answer.status, 413);
      assert.match(answer.body.toString(), /limit of 1000000 bytes/);
    }
    // Its length alone says that it is too large.
    const declared = await media.call('acme', '/v1/media/upload', {
      body: Buffer.alloc(FILE_BYTES_MAX + 300_000),
      headers: FORM_TYPE,
    });
    assert.equal(declared.status, 413);
    assert.deepEqual([media.files().objects.length, media.files().staged], [before + 1, []]);
    assert.equal(await reserved('acme'), 0);
  });

  test('the files of an organization are 413 beyond its limit, exactly; a duplicate costs nothing', async () => {
    const quota = await startMediaFront(database.postgres, {
      limits: { fileBytesMax: 1_000, organizationBytesMax: 2_500 },
    });
    try {
      const first = randomBytes(1_000);
      assert.equal((await quota.upload('acme', first)).status, 200);
      assert.equal((await quota.upload('acme', first)).body.deduped, true);
      assert.equal((await quota.upload('acme', randomBytes(1_000))).status, 200);
      const beyond = await quota.upload('acme', randomBytes(501));
      assert.equal(beyond.status, 413);
      assert.match(beyond.text, /limit of 2500 bytes together/);
      // Also one for which there would be no room.
      assert.equal((await quota.upload('acme', first)).body.deduped, true);
      assert.equal((await quota.upload('acme', randomBytes(500))).status, 200);
      assert.equal((await quota.upload('acme', first)).body.deduped, true);
      for (const bytes of [0, 1, 1_000]) {
        const full = await quota.upload('acme', randomBytes(bytes));
        assert.deepEqual([full.status, /limit of 2500 bytes together/.test(full.text)], [413, true], `${bytes}`);
      }
      assert.match((await quota.upload('acme', randomBytes(1_001))).text, /limit of 1000 bytes/);
      assert.deepEqual([quota.files().objects.length, quota.files().staged], [3, []]);
      // Another organization's quota is its own.
      assert.equal((await quota.upload('other', randomBytes(1_000))).status, 200);
      const { rows } = await database.postgres.query(
        'SELECT stored_bytes, reserved_bytes FROM media_quotas WHERE organization_id = $1',
        [quota.organizations.acme],
      );
      assert.deepEqual(rows, [{ stored_bytes: '2500', reserved_bytes: '0' }]);
    } finally {
      await quota.stop();
    }
  });

  async function reserved(name: 'acme' | 'other'): Promise<number> {
    const { rows } = await database.postgres.query<{ reserved_bytes: string }>(
      'SELECT reserved_bytes FROM media_quotas WHERE organization_id = $1',
      [media.organizations[name]],
    );
    return Number(rows[0]?.reserved_bytes);
  }

  const INVALID: readonly (readonly [string, Buffer | readonly FormEntry[], RegExp])[] = [
    ['no file', [{ name: 'purpose', value: 'x' }], /no file in a part named/],
    ['another name', [{ name: 'image', filename: 'a', value: 'x' }], /another part than/],
    ['a capital letter', [{ name: 'File', filename: 'a', value: 'x' }], /another part than/],
    ['no filename', [{ name: 'file', value: 'x' }], /no filename/],
    [
      'two files',
      [
        { name: 'file', filename: 'a', value: 'x' },
        { name: 'file', filename: 'b', value: 'y' },
      ],
      /more than one file/,
    ],
    [
      'a file in base64',
      [{ name: 'file', filename: 'a', headers: ['Content-Transfer-Encoding: base64'], value: 'eA==' }],
      /encoded once more/,
    ],
    ['no end', writeForm(BOUNDARY, [{ name: 'file', filename: 'a', value: 'x' }]).subarray(0, -10), /closing boundary/],
    ['nothing', Buffer.alloc(0), /closing boundary/],
    ['another boundary', writeForm('another', [{ name: 'file', filename: 'a', value: 'x' }]), /./],
    ['thousands of parts', Buffer.from(`--${BOUNDARY}\r\n\r\n\r\n`.repeat(5_000)), /too many parts/],
    ['many fields', Array.from({ length: 60 }, () => ({ name: 'x', value: 'y' })), /too many parts/],
  ];
  for (const [what, body, reason] of INVALID) {
    test(`a form with ${what} is 400 and leaves nothing`, async () => {
      const answer = await media.call('acme', '/v1/media/upload', {
        body: Buffer.isBuffer(body) ? body : writeForm(BOUNDARY, body as readonly FormEntry[]),
        headers: FORM_TYPE,
      });
      assert.equal(answer.status, 400, answer.body.toString());
      assert.match(answer.body.toString(), reason);
      assert.deepEqual(Object.keys(JSON.parse(answer.body.toString())), ['code', 'error', 'message', 'request_id']);
      assert.deepEqual(media.files().staged, []);
      assert.equal(await reserved('acme'), 0);
    });
  }

  test('what is no form is 415, and a form without a boundary is 400', async () => {
    for (const type of ['application/json', 'text/plain', 'multipart/mixed; boundary=x', 'multipart/form-datax']) {
      const refused = await media.call('acme', '/v1/media/upload', { body: '{}', headers: { 'content-type': type } });
      assert.equal(refused.status, 415, type);
      assert.match(refused.body.toString(), /Send the body as multipart\/form-data,/);
    }
    const answer = await media.call('acme', '/v1/media/upload', {
      body: 'x',
      headers: { 'content-type': 'multipart/form-data' },
    });
    assert.equal(answer.status, 400);
  });

  test('the bytes of a file come by ranges, as slices of it', async () => {
    const bytes = randomBytes(200_000);
    const { id } = (await media.upload('acme', bytes)).body;
    const ask = (range: string, more: Record<string, string> = {}) =>
      media.call('acme', `/v1/media/${id}`, { headers: { range, ...more } });
    const length = bytes.length;
    const asked: readonly (readonly [string, number, number])[] = [
      ['bytes=0-0', 0, 1],
      ['bytes=0-', 0, length],
      ['bytes=1-65536', 1, 65_537],
      ['bytes=65535-131073', 65_535, 131_074],
      ['bytes=199999-', 199_999, length],
      ['bytes=100-999999', 100, length],
      ['bytes=-1', length - 1, length],
      ['bytes=-70000', length - 70_000, length],
      ['bytes=-999999', 0, length],
      ['bytes=5-99999999999999999999', 5, length],
      ['bytes=-99999999999999999999', 0, length],
      ['Bytes = 5-9', 5, 10],
    ];
    for (const [range, from, to] of asked) {
      const answer = await ask(range);
      assert.equal(answer.status, 206, range);
      assert.equal(answer.headers['content-range'], `bytes ${from}-${to - 1}/${length}`, range);
      assert.ok(answer.body.equals(bytes.subarray(from, to)), range);
    }
    for (const range of ['bytes=200000-', 'bytes=5-4', 'bytes=-0', 'bytes=a-b', 'bytes=', 'bytes=--1']) {
      const answer = await ask(range);
      assert.equal(answer.status, 416, range);
      assert.equal(answer.headers['content-range'], `bytes */${length}`, range);
    }
    for (const range of ['bytes=0-1,5-6', 'lines=1-2', 'x']) {
      const answer = await ask(range);
      assert.equal(answer.status, 200, range);
      assert.ok(answer.body.equals(bytes), range);
    }
    assert.equal((await ask('bytes=0-9', { 'if-range': `"${id}"` })).status, 206);
    for (const ifRange of [`"${randomUUID()}"`, `W/"${id}"`, 'Wed, 21 Oct 2026 07:28:00 GMT'])
      assert.equal((await ask('bytes=0-9', { 'if-range': ifRange })).status, 200, ifRange);
  });

  test('HEAD says what GET would, and If-None-Match gets 304', async () => {
    const bytes = randomBytes(70_000);
    const { id } = (await media.upload('acme', bytes)).body;
    const whole = await media.call('acme', `/v1/media/${id}`);
    const head = await media.call('acme', `/v1/media/${id}`, { method: 'HEAD' });
    const names = [
      'content-type',
      'content-length',
      'content-disposition',
      'etag',
      'accept-ranges',
      'cache-control',
      'vary',
    ];
    for (const name of names) assert.equal(head.headers[name], whole.headers[name], name);
    assert.deepEqual([head.status, head.headers['content-length']], [200, '70000']);
    assert.equal(head.body.length, 0);
    // RFC 9110, 14.2: a range is asked of GET alone.
    const part = await media.call('acme', `/v1/media/${id}`, { method: 'HEAD', headers: { range: 'bytes=5-9' } });
    assert.deepEqual([part.status, part.headers['content-length']], [200, '70000']);
    for (const tag of [`"${id}"`, `W/"${id}"`, `"x", "${id}"`, '*']) {
      const answer = await media.call('acme', `/v1/media/${id}`, { headers: { 'if-none-match': tag } });
      assert.deepEqual([answer.status, answer.body.length, answer.headers.etag], [304, 0, `"${id}"`], tag);
    }
    assert.equal((await media.call('acme', `/v1/media/${id}`, { headers: { 'if-none-match': '"x"' } })).status, 200);
    assert.equal((await media.call('acme', `/v1/media/${randomUUID()}`, { method: 'HEAD' })).status, 404);
  });

  test('an empty file is a file', async () => {
    const { body, status } = await media.upload('acme', '');
    assert.deepEqual([status, body.bytes, body.mime], [200, 0, 'application/octet-stream']);
    const answer = await media.call('acme', `/v1/media/${body.id}`);
    assert.deepEqual([answer.status, answer.body.length], [200, 0]);
    assert.equal((await media.call('acme', `/v1/media/${body.id}`, { headers: { range: 'bytes=0-' } })).status, 416);
  });

  test('a file is served as what it is, never as what was declared, under headers that no browser runs it with', async () => {
    const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';
    const files: readonly (readonly [string | Buffer, string, string])[] = [
      [PNG, 'image/png', 'inline'],
      [svg, 'image/svg+xml', 'attachment'],
      ['<!doctype html><script>alert(1)</script>', 'text/html', 'attachment'],
      ['hello', 'text/plain; charset=utf-8', 'attachment'],
      ['%PDF-1.7 ...', 'application/pdf', 'attachment'],
      [Buffer.from([0, 1, 2, 3]), 'application/octet-stream', 'attachment'],
    ];
    for (const [value, type, disposition] of files) {
      const { id } = (await media.upload('acme', value, { filename: 'x".png\\', headers: ['Content-Type: image/png'] }))
        .body;
      const { headers } = await media.call('acme', `/v1/media/${id}`);
      assert.equal(headers['content-type'], type);
      assert.match(
        String(headers['content-disposition']),
        new RegExp(`^${disposition}; filename="${id}\\.[a-z0-9]+"$`),
      );
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['content-security-policy'], "default-src 'none'; sandbox");
      assert.equal(headers['etag'], `"${id}"`);
    }
  });

  test('where the installation keeps no files, all of it is 404 for whoever has a credential', async () => {
    const calls = [
      off.call('acme', '/v1/media/upload', { body: 'x', headers: FORM_TYPE }),
      off.call('acme', '/v1/files', { body: 'x', headers: FORM_TYPE }),
      off.call('acme', `/v1/media/${randomUUID()}`),
      off.call('acme', `/v1/files/${randomUUID()}`),
      off.call('acme', `/v1/media/${randomUUID()}/metadata`),
    ];
    for (const answer of await Promise.all(calls)) {
      assert.equal(answer.status, 404);
      assert.match(answer.body.toString(), /keeps no uploaded files/);
    }
    assert.equal((await off.call('nobody', '/v1/media/upload', { body: 'x', headers: FORM_TYPE })).status, 401);
  });

  test('nobody deletes, lists or publishes as a client (spec 4.7)', async () => {
    const { id } = (await media.upload('acme', randomBytes(10))).body;
    for (const [method, path] of [
      ['DELETE', `/v1/media/${id}`],
      ['DELETE', `/v1/files/${id}`],
      ['GET', '/v1/files'],
      ['PUT', `/v1/media/${id}`],
    ] as const)
      assert.equal((await media.call('acme', path, { method })).status, 405, `${method} ${path}`);
  });

  test('administrators list files, delete them, and read what they take and were used for; others do not', async () => {
    const bytes = randomBytes(3_000);
    const { id } = (await media.upload('other', bytes)).body;
    await media.upload('other', bytes);
    await media.call('other', `/v1/media/${id}`);
    // A client has its last byte before it is counted.
    await waitFor(
      'what was served to be counted',
      async () => {
        await media.media?.flush();
        const { rows } = await database.postgres.query<{ bytes: number }>(
          'SELECT coalesce(sum(served_bytes), 0)::int AS bytes FROM media_usage WHERE organization_id = $1',
          [media.organizations.other],
        );
        return rows[0]?.bytes ?? 0;
      },
      (bytes) => bytes >= 3_000,
    );
    const own = '/v1/admin/active-org/media';
    const named = `/v1/admin/organizations/${media.organizations.other}/media`;
    for (const [as, path] of [
      ['otherOwner', own],
      ['platform', named],
    ] as const) {
      const { data } = JSON.parse((await media.call(as, `${path}?limit=100`)).body.toString());
      const listed = data.find((one: { id: string }) => one.id === id);
      assert.deepEqual([listed.content_type, listed.size], ['application/octet-stream', 3_000]);
      const usage = JSON.parse((await media.call(as, `${path}/usage`)).body.toString()).data;
      const today = usage.days.at(-1);
      assert.equal(usage.reserved_bytes, 0);
      assert.ok(usage.files >= 1 && usage.stored_bytes >= 3_000 && today.stored_bytes_max >= 3_000);
      assert.ok(
        today.uploads >= 2 && today.deduped_uploads >= 1 && today.downloads >= 1 && today.served_bytes >= 3_000,
      );
    }
    const one = `${own}/${id}`;
    for (const as of ['other', 'acme']) assert.equal((await media.call(as, one, { method: 'DELETE' })).status, 403);
    assert.equal((await media.call('owner', one, { method: 'DELETE' })).status, 404);
    assert.equal((await media.call('otherOwner', one, { method: 'DELETE' })).status, 200);
    assert.equal((await media.call('other', `/v1/media/${id}`)).status, 404);
    assert.equal((await media.call('otherOwner', one, { method: 'DELETE' })).status, 404);
    const { rows } = await database.postgres.query(
      `SELECT actor_kind, before ->> 'bytes' AS bytes FROM audit_log WHERE action = 'media.remove' AND target_id = $1`,
      [id],
    );
    assert.deepEqual(rows, [{ actor_kind: 'token', bytes: '3000' }]);
    // Who uploads the same bytes again has a new file.
    assert.equal((await media.upload('other', bytes)).body.deduped, false);
  });
});
