// What real clients upload arrives byte for byte: the `openai` client with a stream, a Blob and a path, fetch with a
// form as a browser writes it, and curl. A gigabyte passes without being held, and what a strict reader of forms finds
// in one is what is kept.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import OpenAI, { toFile } from 'openai';
import { scanMultipart } from '../../src/generation/request/multipart-scan.ts';
import { boundReceiveBuffers } from '../../src/http/receive-buffer.ts';
import { howMany } from '../support/at-length.ts';
import { answerTo } from '../support/http-call.ts';
import { BOUNDARY, type MediaFront, startMediaFront } from '../support/media-front.ts';
import { writeForm } from '../support/multipart-forms.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';

const MEBIBYTE = 1_048_576;
const run = promisify(execFile);

describe('clients that upload files', () => {
  let database: TestDatabase;
  let media: MediaFront;
  let directory: string;

  before(async () => {
    database = await openTestDatabase();
    media = await startMediaFront(database.postgres, {
      limits: { fileBytesMax: 2_000 * MEBIBYTE, organizationBytesMax: 20_000 * MEBIBYTE },
    });
    directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  });
  after(async () => {
    await media?.stop();
    await database?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function assertKept(id: string, bytes: Buffer): Promise<void> {
    assert.ok((await media.call('acme', `/v1/media/${id}`)).body.equals(bytes));
  }

  test('the openai client: a path’s stream, a Blob, bytes', async () => {
    const client = new OpenAI({ apiKey: 'acme', baseURL: `${media.url}/v1`, maxRetries: 0 });
    const path = join(directory, 'größe "1".jsonl');
    const bytes = randomBytes(300_000);
    writeFileSync(path, bytes);
    const files = [
      createReadStream(path),
      new File([bytes, 'blob'], 'b.bin', { type: 'image/png' }),
      await toFile(Buffer.concat([bytes, Buffer.from('bytes')]), 'c.bin'),
    ];
    const ends = ['', 'blob', 'bytes'];
    for (const [index, file] of files.entries()) {
      const { id, bytes: size } = await client.files.create({ file, purpose: 'assistants' });
      const expected = Buffer.concat([bytes, Buffer.from(ends[index] ?? '')]);
      assert.equal(size, expected.length);
      await assertKept(id, expected);
    }
    await assert.rejects(
      client.files.create({ file: await toFile(Buffer.alloc(1), 'x'), purpose: 'batch' }, { path: '/no/such' }),
      /404/,
    );
  });

  test('a form of fetch, as of a browser', async () => {
    const bytes = randomBytes(100_000);
    const form = new FormData();
    form.set('note', 'with a field before it');
    form.set('file', new File([bytes], 'ein "Name"\r\n.png', { type: 'text/html' }));
    // oxlint-disable-next-line no-restricted-globals -- it writes forms as browsers do
    const answer = await fetch(`${media.url}/v1/media/upload`, {
      method: 'POST',
      headers: { authorization: 'Bearer acme' },
      body: form,
    });
    assert.equal(answer.status, 200);
    await assertKept(((await answer.json()) as { id: string }).id, bytes);
  });

  test('curl', async (context) => {
    const path = join(directory, 'x.bin');
    const bytes = randomBytes(2 * MEBIBYTE);
    writeFileSync(path, bytes);
    const args = ['-sS', '-H', 'Authorization: Bearer acme', '-F', `file=@${path}`, `${media.url}/v1/media/upload`];
    const answer = await run('curl', args).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      return null;
    });
    if (answer === null) return context.skip('curl is not installed here');
    await assertKept((JSON.parse(answer.stdout) as { id: string }).id, bytes);
  });

  test('what a strict reader finds in a form is what is kept', async () => {
    for (let round = 0; round < howMany({ short: 25, long: 500 }); round += 1) {
      const value = randomForm(round);
      const form = writeForm(BOUNDARY, [
        { name: 'purpose', value: 'x' },
        { name: 'file', filename: 'a', value },
      ]);
      const scanned = scanMultipart(form, `multipart/form-data; boundary=${BOUNDARY}`);
      const { status, body } = await media.upload('acme', value);
      if ('fault' in scanned) continue;
      assert.equal(status, 200);
      await assertKept(body.id, value);
    }
  });

  test('a large file passes without being held', { timeout: 300_000 }, async () => {
    if (process.platform === 'linux') assert.ok(await boundReceiveBuffers(media.front.port));
    const mebibytes = howMany({ short: 128, long: 1_024 });
    const piece = randomBytes(MEBIBYTE);
    const hash = createHash('sha256');
    const [head = Buffer.alloc(0), tail = Buffer.alloc(0)] = splitForm();
    let highest = 0;
    const look = setInterval(() => (highest = Math.max(highest, process.memoryUsage.rss())), 10);
    const startBytes = process.memoryUsage.rss();
    const upload = request(`${media.url}/v1/media/upload`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer acme',
        'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
        'content-length': head.length + mebibytes * MEBIBYTE + tail.length,
      },
    });
    const answering = answerTo(upload);
    upload.write(head);
    for (let index = 0; index < mebibytes; index += 1) {
      hash.update(piece);
      if (!upload.write(piece)) await new Promise((resolve) => upload.once('drain', resolve));
    }
    upload.end(tail);
    const answer = await answering;
    clearInterval(look);
    assert.equal(answer.status, 200, answer.body.toString());
    const grownBytes = highest - startBytes;
    assert.ok(grownBytes < 64 * MEBIBYTE, `${Math.round(grownBytes / MEBIBYTE)} MB`);
    const { rows } = await database.postgres.query<{ sha256: Buffer }>(
      'SELECT sha256 FROM media_objects WHERE bytes = $1',
      [mebibytes * MEBIBYTE],
    );
    assert.ok(rows[0]?.sha256.equals(hash.digest()));
  });
});

function splitForm(): readonly Buffer[] {
  const form = writeForm(BOUNDARY, [{ name: 'file', filename: 'large', value: 'HERE' }]);
  const at = form.indexOf('HERE');
  return [form.subarray(0, at), form.subarray(at + 4)];
}

/** Bytes with much in them that is nearly a delimiter. */
function randomForm(round: number): Buffer {
  const pieces = [
    '\r\n',
    '--',
    '-',
    BOUNDARY.slice(0, -1),
    `\r\n--${BOUNDARY.slice(0, 5)}`,
    '\r',
    '\n',
    '\r\n\r\n',
    'x',
  ];
  const random = randomBytes(200);
  const chosen = [...random].map((byte) => pieces[byte % pieces.length] ?? '');
  return Buffer.concat([Buffer.from(chosen.join('')), randomBytes(round * 37)]);
}
