// Uploaded files in the bucket of a real S3 server, Versity's gateway over a directory: that the strict double is no
// stricter, and no laxer, where it matters. `go install github.com/versity/versitygw/cmd/versitygw@v1.8.0` makes it;
// VERSITYGW names it where it is not on the PATH.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { AwsV4Signer } from 'aws4fetch';
import { openObjects } from '../../src/storage/media/open-objects.ts';
import { BUCKET_LIMITS, type BucketOfTest, FOLDER, testBucket } from '../support/bucket-cases.ts';
import { findFreePort } from '../support/free-port.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type MediaFront, startMediaFront } from '../support/media-front.ts';
import { openTestDatabase, silentLog, type TestDatabase } from '../support/postgres.ts';
import { S3_KEY } from '../support/strict-s3.ts';
import { waitFor } from '../support/waiting.ts';

const COMMAND = process.env['VERSITYGW'] ?? 'versitygw';
const isThere = spawnSync(COMMAND, ['--version']).error === undefined;
/** More than S3 lists on one page. */
const ORPHANS = 1_010;

describe('uploaded files in the bucket of a real server', { skip: isThere ? false : `${COMMAND} is not here` }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-s3-'));
  let server: ChildProcess;
  let origin: string;
  let database: TestDatabase;
  let media: MediaFront;

  const storage = () => ({ url: `${origin}/files/${FOLDER}`, ...S3_KEY });
  const bucket: BucketOfTest = {
    has: async (key) => (await signed('HEAD', `/files/${key}`)).status === 200,
    put: async (key) => assert.equal((await signed('PUT', `/files/${key}`, 'x')).status, 200),
  };

  async function signed(method: string, path: string, body?: string): Promise<HttpAnswer> {
    const { keyId, secret, region } = S3_KEY;
    const signer = new AwsV4Signer({
      accessKeyId: keyId,
      secretAccessKey: secret,
      region,
      service: 's3',
      method,
      url: `${origin}${path}`,
      headers: {
        'x-amz-content-sha256': createHash('sha256')
          .update(body ?? '')
          .digest('hex'),
      },
    });
    const { headers } = await signer.sign();
    return httpCall(`${origin}${path}`, {
      method,
      headers: Object.fromEntries(headers),
      ...(body === undefined ? {} : { body }),
    });
  }

  before(async () => {
    const port = await findFreePort();
    origin = `http://127.0.0.1:${port}`;
    const [files, sidecar] = ['files', 'sidecar'].map((name) => join(directory, name));
    for (const path of [files, sidecar]) mkdirSync(path ?? '');
    const { keyId, secret, region } = S3_KEY;
    const own = ['--access', keyId, '--secret', secret, '--region', region, '--port', `127.0.0.1:${port}`, '--quiet'];
    // Beside the files, since not every file system keeps attributes.
    server = spawn(COMMAND, [...own, 'posix', '--sidecar', sidecar ?? '', files ?? ''], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    server.stderr?.on('data', (text: Buffer) => (said += text.toString()));
    await waitFor(
      'the server to make a bucket',
      () => signed('PUT', '/files').catch(() => null),
      (answer) => answer?.status === 200,
    ).catch((fault: unknown) => assert.fail(`${String(fault)}: ${said}`));
    database = await openTestDatabase();
    media = await startMediaFront(database.postgres, { storage: storage(), limits: BUCKET_LIMITS });
  });
  after(async () => {
    await media?.stop();
    await database?.close();
    if (server !== undefined && server.exitCode === null) {
      const ended = once(server, 'exit');
      server.kill();
      await ended;
    }
    rmSync(directory, { recursive: true, force: true });
  });

  testBucket(() => ({ postgres: database.postgres, bucket, storage: storage(), media }), ORPHANS);

  test('an object that is there already is not written once more', async () => {
    const objects = media.media?.objects;
    assert.ok(objects);
    const { id } = (await media.upload('acme', randomBytes(1_000))).body;
    const staged = await objects.stage(id);
    const bytes = randomBytes(1_000);
    await staged.write(bytes);
    await staged.finish();
    const file = { sha256: createHash('sha256').update(bytes).digest(), bytes: 1_000, contentType: 'text/plain' };
    // It answers 412, which may be our own lost attempt; what is there tells that it was none.
    await assert.rejects(objects.keep(staged, file), /other bytes than were sent/);
    await staged.discard();
  });

  test('a wrong secret, and a bucket that is not there: nothing starts', async () => {
    const dataDirectory = join(directory, 'data');
    for (const wrong of [
      { ...storage(), secret: 'another' },
      { ...storage(), url: `${origin}/missing/${FOLDER}` },
    ]) {
      await database.postgres.query('DELETE FROM media_home');
      await assert.rejects(
        openObjects({ postgres: database.postgres, storage: wrong, dataDirectory, log: silentLog }),
        /MEDIA_BUCKET_URL: the bucket cannot be used/,
      );
    }
  });
});
