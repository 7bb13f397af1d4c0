// Uploads and downloads as an attacker sends them: forms that end anywhere or are damaged, clients that leave at any
// byte, lengths that lie, requests behind an upload, one file uploaded by many at once, and clients so slow that others
// would wait. Nothing of it throws, stays, or is paid by others.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobContext } from '../../jobs/scheduling/job.ts';
import { retireMedia } from '../../jobs/tasks/retire-media.ts';
import { DOWNLOADS_MAX } from '../../src/control-plane/media/download-places.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { howMany } from '../support/at-length.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { BOUNDARY, type MediaFront, startMediaFront } from '../support/media-front.ts';
import { writeForm } from '../support/multipart-forms.ts';
import { openTestDatabase, silentLog, type TestDatabase } from '../support/postgres.ts';
import { RawClient } from '../support/raw-client.ts';
import { exchangeRaw, finalStatuses } from '../support/raw-connection.ts';
import { waitFor } from '../support/waiting.ts';

const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const LIMITS = { fileBytesMax: 30_000_000, organizationBytesMax: 500_000_000 };
/** Of uploads of one organization. */
const AT_ONCE = 4;
const LONG = 'b'.repeat(1_000);

describe('attacks on uploaded files', () => {
  let database: TestDatabase;
  let media: MediaFront;

  before(async () => {
    database = await openTestDatabase();
    media = await startMediaFront(database.postgres, { limits: LIMITS, publicUrl: 'https://files.test' });
  });
  after(async () => {
    // Throws what a route threw.
    await media?.stop();
    await database?.close();
  });

  const post = (body: Buffer, headers: Readonly<Record<string, string>> = { 'content-type': FORM_TYPE }) =>
    media.call('acme', '/v1/media/upload', { body, headers });
  const headOf = (length: number | string, as = 'acme'): string =>
    `POST /v1/media/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${as}\r\n` +
    `Content-Type: ${FORM_TYPE}\r\n${typeof length === 'number' ? `Content-Length: ${length}` : length}\r\n\r\n`;
  const fileForm = (value: Buffer | string): Buffer => writeForm(BOUNDARY, [{ name: 'file', filename: 'a', value }]);

  /** Nothing is reserved, received or held any more, and what is stored is what the rows say. */
  async function assertNothingStays(): Promise<void> {
    const read = async () => {
      const { rows } = await database.postgres.query<Record<string, string>>(
        `SELECT (SELECT count(*) FROM media_reservations)::int AS reservations,
                coalesce(sum(q.reserved_bytes), 0)::int AS reserved,
                coalesce(sum(q.stored_bytes), 0)::bigint - (SELECT coalesce(sum(bytes), 0) FROM media_objects) AS drift
           FROM media_quotas q`,
      );
      return JSON.stringify([...Object.values(rows[0] ?? {}).map(Number), media.files().staged.length]);
    };
    await waitFor('all to be given back', read, (seen) => seen === '[0,0,0,0]');
  }

  test('a form that ends at any byte is refused, or kept from its closing boundary on', {
    timeout: 60_000,
  }, async () => {
    const form = writeForm(
      BOUNDARY,
      [
        { name: 'purpose', value: 'x' },
        { name: 'file', filename: 'a', headers: ['Content-Type: text/plain'], value: 'the file' },
        { name: 'note', value: 'y' },
      ],
      { preamble: 'before', epilogue: 'after' },
    );
    const closedAt = form.lastIndexOf(`--${BOUNDARY}--`) + BOUNDARY.length + 4;
    const step = howMany({ short: 7, long: 1 });
    await inTurns(Math.ceil((form.length + 1) / step), async (index) => {
      const length = form.length - index * step;
      const { status, body } = await post(form.subarray(0, length));
      assert.equal(status, length >= closedAt ? 200 : 400, `${length} of ${form.length}: ${String(body)}`);
    });
    await assertNothingStays();
  });

  test('a damaged form is kept or refused, and never a fault', { timeout: 300_000 }, async () => {
    const whole = writeForm(BOUNDARY, [
      { name: 'purpose', value: 'x' },
      { name: 'file', filename: 'a', headers: ['Content-Type: text/plain'], value: 'the file\r\n--a-bound' },
    ]);
    await inTurns(howMany({ short: 80, long: 5_000 }), async (seed) => {
      const { status, body } = await post(damage(whole, seed));
      assert.ok(status === 200 || status === 400, `seed ${seed}: ${status} ${String(body)}`);
    });
    await assertNothingStays();
  });

  const ODD: readonly (readonly [string, number, string, Buffer])[] = [
    ['a boundary of 70 bytes', 200, `multipart/form-data; boundary=${'b'.repeat(70)}`, oddForm('b'.repeat(70))],
    ['a boundary of 1,000 bytes', 400, `multipart/form-data; boundary=${LONG}`, oddForm(LONG)],
    ['a quoted boundary', 200, 'multipart/form-data; boundary="a b:c"', oddForm('a b:c')],
    ['two boundaries', 400, `${FORM_TYPE}; boundary=x`, oddForm('x')],
    ['a boundary of RFC 2231', 400, `multipart/form-data; boundary*=utf-8''${BOUNDARY}`, oddForm(BOUNDARY)],
    ['a boundary without a value', 400, 'multipart/form-data; boundary', oddForm('x')],
    ['__proto__ for a boundary', 200, 'multipart/form-data; boundary=__proto__', oddForm('__proto__')],
    ['line ends without CR', 400, FORM_TYPE, Buffer.from(String(oddForm(BOUNDARY)).replaceAll('\r\n', '\n'))],
    ['a header of 100,000 bytes', 200, FORM_TYPE, oddForm(BOUNDARY, [`X-Long: ${'x'.repeat(100_000)}`])],
    [
      'a thousand headers',
      200,
      FORM_TYPE,
      oddForm(
        BOUNDARY,
        Array.from({ length: 1_000 }, (_, at) => `X-${at}: y`),
      ),
    ],
    ['an unknown character set', 200, FORM_TYPE, oddForm(BOUNDARY, ['Content-Type: text/plain; charset=nonsense'])],
    ['a file of a name that is none', 400, FORM_TYPE, oddForm(BOUNDARY, [], '__proto__')],
  ];
  for (const [what, expected, type, body] of ODD)
    test(`a form with ${what} gets ${expected}`, async () => {
      const answer = await post(body, { 'content-type': type });
      assert.equal(answer.status, expected, answer.body.toString());
      await assertNothingStays();
    });

  test('what a file is called has no part in where it lies or how it is served', async () => {
    const names = ['../../../x', '/etc/passwd', 'a\0.png', '', '.', 'x\u202egnp.exe', 'n'.repeat(5_000)];
    for (const filename of names) {
      const bytes = randomBytes(20);
      const { status, body, text } = await media.upload('acme', bytes, { filename });
      assert.equal(status, 200, `${JSON.stringify(filename)}: ${text}`);
      const read = await media.call('acme', `/v1/media/${body.id}`);
      assert.ok(read.body.equals(bytes));
      assert.equal(read.headers['content-disposition'], `attachment; filename="${body.id}.bin"`);
    }
    await assertNothingStays();
  });

  test('a client that leaves at any moment leaves nothing behind, and its place is free', async () => {
    const form = fileForm(randomBytes(50_000));
    const head = headOf(form.length);
    const whole = Buffer.concat([Buffer.from(head), form]);
    const chunk = Buffer.concat([Buffer.from(headOf('Transfer-Encoding: chunked')), Buffer.from('C350\r\n'), form]);
    const moments = [head.length, head.length + 1, head.length + 120, 10_000, whole.length - 1, whole.length];
    for (const bytes of [whole, chunk])
      for (const moment of moments) {
        const client = await RawClient.open(media.front.port);
        await client.write(bytes.subarray(0, moment));
        client.leave();
      }
    await assertNothingStays();
    for (let count = 0; count < 2 * AT_ONCE; count += 1)
      assert.equal((await media.upload('acme', randomBytes(10))).status, 200);
  });

  test('a length that says too little, and requests behind an upload: one answer, which is its own', async () => {
    const form = fileForm(randomBytes(1_000));
    const behind = Buffer.from('GET /v1/media/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer other\r\n\r\n');
    const cases: readonly (readonly [string, Buffer])[] = [
      ['too little', Buffer.concat([Buffer.from(headOf(form.length - 30)), form])],
      ['a request behind it', Buffer.concat([Buffer.from(headOf(form.length)), form, behind])],
      [
        'a request behind its chunks',
        Buffer.concat([
          Buffer.from(headOf('Transfer-Encoding: chunked')),
          Buffer.from(`${form.length.toString(16)}\r\n`),
          form,
          Buffer.from('\r\n0\r\n\r\n'),
          behind,
        ]),
      ],
      [
        'two lengths',
        Buffer.concat([Buffer.from(headOf(`Content-Length: ${form.length}\r\nContent-Length: 3`)), form, behind]),
      ],
    ];
    for (const [what, bytes] of cases) {
      const { received } = await exchangeRaw(media.front.port, bytes, { kind: 'whole' });
      assert.ok(finalStatuses(received).length <= 1, `${what}: ${received}`);
      assert.doesNotMatch(received, /^HTTP\/1.1 404/m, what);
    }
    await assertNothingStays();
  });

  test('the same bytes by two keys at once, twenty times: one file, stored once, and one answer says so', async () => {
    const bytes = randomBytes(100_000);
    const before = media.files().objects.length;
    const uploads = Array.from({ length: 20 }, (_, at) => media.upload(at % 2 === 0 ? 'acme' : 'colleague', bytes));
    const answers = await Promise.all(uploads);
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
    assert.equal(answers.filter(({ body }) => !body.deduped).length, 1);
    assert.equal(media.files().objects.length, before + 1);
    await assertNothingStays();
  });

  test('bytes that are deleted while others upload them again: each answer names a file that is served', async () => {
    const bytes = randomBytes(1_000);
    for (let round = 0; round < howMany({ short: 3, long: 50 }); round += 1) {
      const { id } = (await media.upload('acme', bytes)).body;
      const [, ...again] = await Promise.all([
        media.call('owner', `/v1/admin/active-org/media/${id}`, { method: 'DELETE' }),
        ...Array.from({ length: 6 }, () => media.upload('acme', bytes)),
      ]);
      await removeDeleted();
      for (const { status, body } of again) {
        assert.equal(status, 200);
        const read = await media.call('acme', `/v1/media/${body.id}`);
        assert.ok(body.id === id ? [200, 404].includes(read.status) : read.body.equals(bytes), String(read.status));
      }
    }
    await assertNothingStays();
  });

  test('a file that is deleted while it is served comes whole, and is gone for the next', async () => {
    const bytes = randomBytes(20_000_000);
    const { id } = (await media.upload('acme', bytes)).body;
    const reading = media.call('acme', `/v1/media/${id}`);
    await waitFor(
      'the download to begin',
      () => media.media?.downloads.underWay ?? 0,
      (underWay) => underWay > 0,
    );
    assert.equal((await media.call('owner', `/v1/admin/active-org/media/${id}`, { method: 'DELETE' })).status, 200);
    await removeDeleted();
    const { body, complete } = await reading;
    assert.ok(complete && hashOf(body) === hashOf(bytes));
    assert.equal((await media.call('acme', `/v1/media/${id}`)).status, 404);
  });

  test('an organization whose clients send slowly keeps nobody else from uploading', async () => {
    const form = fileForm(randomBytes(1_000));
    const slow = await Promise.all(
      Array.from({ length: 4 * AT_ONCE }, async () => {
        const client = await RawClient.open(media.front.port);
        await client.write(Buffer.concat([Buffer.from(headOf(form.length)), form.subarray(0, 300)]));
        return client;
      }),
    );
    // One that sends nothing is disconnected soon.
    let sent = 300;
    const trickle = setInterval(() => {
      for (const client of slow) void client.write(form.subarray(sent, sent + 1));
      sent += 1;
    }, 1_000);
    await waitFor(
      'the slow uploads to be received',
      () => media.files().staged.length,
      (staged) => staged >= AT_ONCE,
    );
    const other = await media.upload('other', randomBytes(1_000));
    clearInterval(trickle);
    for (const client of slow) client.leave();
    assert.equal(other.status, 200);
    await assertNothingStays();
  });

  test('what clients sent that left while they waited keeps nobody waiting: nothing is reserved for them', async () => {
    const { media: held } = media;
    assert.ok(held);
    const form = fileForm(randomBytes(1_000_000));
    const send = async (bytes: number): Promise<RawClient> => {
      const client = await RawClient.open(media.front.port);
      void client.write(Buffer.concat([Buffer.from(headOf(form.length)), form.subarray(0, bytes)]));
      return client;
    };
    const underWay = await Promise.all(Array.from({ length: AT_ONCE }, () => send(500)));
    await waitFor(
      'all places to be taken',
      () => media.files().staged.length,
      (staged) => staged === AT_ONCE,
    );
    const { store } = held;
    const reserve = store.reserve.bind(store);
    const reservedBy: number[] = [];
    const leavers: RawClient[] = [];
    try {
      store.reserve = (upload, bytes) => {
        reservedBy.push(bytes);
        return reserve(upload, bytes);
      };
      for (let count = 0; count < 12; count += 1) leavers.push(await send(form.length - 1));
      await sleep(100);
      for (const client of [...leavers, ...underWay]) client.leave();
      assert.equal((await media.upload('acme', randomBytes(10))).status, 200);
    } finally {
      store.reserve = reserve;
    }
    assert.equal(reservedBy.length, 1);
    await assertNothingStays();
  });

  test('an organization whose files are read slowly keeps nobody else’s from being read', async () => {
    const own = (await media.upload('acme', randomBytes(100))).body.id;
    const others = (await media.upload('other', randomBytes(100))).body.id;
    const { organizations, media: held } = media;
    assert.ok(held);
    const read = { id: own, organizationId: organizations.acme };
    const take = () => held.downloads.take(read, 'organization');
    for (let count = 0; count < DOWNLOADS_MAX.organization; count += 1) assert.ok(take());
    assert.equal((await media.call('acme', `/v1/media/${own}`)).status, 503);
    assert.equal((await media.call('other', `/v1/media/${others}`)).status, 200);
    for (let count = 0; count < DOWNLOADS_MAX.organization; count += 1) held.downloads.giveBack(read, 'organization');
    assert.equal((await media.call('acme', `/v1/media/${own}`)).status, 200);
    await waitFor(
      'all downloads to end',
      () => held.downloads.underWay,
      (underWay) => underWay === 0,
    );
  });

  test('one public address read slowly leaves places for others, and all of them for the organization itself', async () => {
    const { organizations, media: held } = media;
    assert.ok(held);
    const [one, other] = [await media.upload('acme', randomBytes(100)), await media.upload('acme', randomBytes(101))];
    const statusOf = async ({ body }: typeof one) => (await media.call(null, new URL(body.url).pathname)).status;
    const statuses = async () => [
      await statusOf(one),
      await statusOf(other),
      (await media.call('acme', `/v1/media/${one.body.id}`)).status,
    ];
    const taken: { id: string; organizationId: string }[] = [];
    const takeAllOf = (id: string): void => {
      const read = { id, organizationId: organizations.acme };
      while (held.downloads.take(read, 'everybody')) taken.push(read);
    };
    assert.deepEqual(await statuses(), [200, 200, 200]);
    takeAllOf(one.body.id);
    assert.deepEqual(await statuses(), [503, 200, 200]);
    for (let count = 0; count < 4; count += 1) takeAllOf(`another ${count}`);
    assert.deepEqual(await statuses(), [503, 503, 200]);
    for (const read of taken) held.downloads.giveBack(read, 'everybody');
    assert.deepEqual(await statuses(), [200, 200, 200]);
    await waitFor(
      'all downloads to end',
      () => held.downloads.underWay,
      (underWay) => underWay === 0,
    );
  });

  async function removeDeleted(): Promise<void> {
    const { postgres } = database;
    const objects = media.media?.objects;
    const context = { postgres, log: silentLog, clock: systemClock, media: { objects, retentionDays: null } };
    await retireMedia(context as unknown as JobContext);
  }
});

function oddForm(boundary: string, headers: readonly string[] = [], name = 'file'): Buffer {
  return writeForm(boundary, [{ name, filename: 'a', headers, value: 'the file' }]);
}

/** A few bytes are changed, left out or repeated. */
function damage(form: Buffer, seed: number): Buffer {
  const random = seededRandom(seed);
  const bytes = [...form];
  const signs = [...Buffer.from('\r\n-";:=\0 \t\xff', 'latin1')];
  for (let changes = 1 + Math.floor(random() * 4); changes > 0; changes -= 1) {
    const at = Math.floor(random() * bytes.length);
    const choice = random();
    if (choice < 0.4) bytes[at] = signs[Math.floor(random() * signs.length)] ?? 0;
    else if (choice < 0.7) bytes.splice(at, 1 + Math.floor(random() * 20));
    else bytes.splice(at, 0, ...bytes.slice(at, at + Math.floor(random() * 60)));
  }
  return Buffer.from(bytes);
}

/** A few at once. */
async function inTurns(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (; next < count; ) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
