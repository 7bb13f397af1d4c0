// Uploaded files in a bucket, against a strict double of an S3-compatible service that fails, stalls and lies: what is
// answered 200 is there as it was sent, and of what is not, nothing stays.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { openObjects } from '../../src/storage/media/open-objects.ts';
import { S3Objects } from '../../src/storage/media/s3-objects.ts';
import { BUCKET_LIMITS, type BucketOfTest, FOLDER, testBucket } from '../support/bucket-cases.ts';
import { type MediaFront, startMediaFront } from '../support/media-front.ts';
import { openTestDatabase, silentLog, type TestDatabase } from '../support/postgres.ts';
import { S3_KEY, type StrictS3, startStrictS3 } from '../support/strict-s3.ts';

describe('uploaded files in a bucket', () => {
  let database: TestDatabase;
  let bucket: StrictS3;
  let media: MediaFront;

  const storage = () => ({ url: `${bucket.url}/files/${FOLDER}`, ...S3_KEY });
  const seen: BucketOfTest = {
    has: async (key) => bucket.objects.has(`/files/${key}`),
    put: async (key) => void bucket.objects.set(`/files/${key}`, { bytes: Buffer.from('x'), type: '' }),
  };

  before(async () => {
    database = await openTestDatabase();
    bucket = await startStrictS3();
    media = await startMediaFront(database.postgres, { storage: storage(), limits: BUCKET_LIMITS });
  });
  after(async () => {
    await media?.stop();
    await bucket?.stop();
    await database?.close();
  });
  beforeEach(() => {
    bucket.fault = 'none';
    bucket.refused.length = 0;
  });

  async function reserved(): Promise<unknown> {
    const { rows } = await database.postgres.query(
      'SELECT reserved_bytes::int AS reserved FROM media_quotas WHERE organization_id = $1',
      [media.organizations.acme],
    );
    return rows[0]?.['reserved'];
  }

  testBucket(() => ({ postgres: database.postgres, bucket: seen, storage: storage(), media }), 5);

  test('every call has a good signature', async () => {
    const { id } = (await media.upload('acme', randomBytes(1_000_000))).body;
    await media.call('acme', `/v1/media/${id}`);
    await media.media?.objects.remove(id);
    assert.deepEqual(bucket.refused, []);
  });

  test('a service that fails once, or whose answer is lost, is asked again', async () => {
    for (const fault of ['fail once', 'lose the answer'] as const) {
      const bytes = randomBytes(200_000);
      bucket.fault = fault;
      const { status, body } = await media.upload('acme', bytes);
      assert.equal(status, 200, fault);
      assert.ok((await media.call('acme', `/v1/media/${body.id}`)).body.equals(bytes), fault);
    }
  });

  test('one that fails, cuts or has another hash than it was sent: 503, and nothing stays', async () => {
    const before = bucket.objects.size;
    for (const fault of ['fail', 'cut', 'lie about the hash'] as const) {
      bucket.fault = fault;
      const { status, text } = await media.upload('acme', randomBytes(100_000));
      assert.equal(status, 503, `${fault}: ${text}`);
      assert.equal(await reserved(), 0, fault);
    }
    bucket.fault = 'none';
    assert.equal(bucket.objects.size, before);
    assert.deepEqual(media.files().staged, []);
  });

  test('one that cuts a file short cuts the client’s answer too', async () => {
    const { id } = (await media.upload('acme', randomBytes(300_000))).body;
    bucket.fault = 'short';
    const answer = await media.call('acme', `/v1/media/${id}`);
    assert.equal(answer.complete, false);
  });

  test('one that stalls is given up', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
    const objects = new S3Objects(storage(), directory, 100);
    bucket.fault = 'stall';
    await assert.rejects(objects.read(randomUUID(), { first: 0, last: 1 }), /Timeout/);
    rmSync(directory, { recursive: true });
  });

  test('a wrong secret, or another place than before: nothing starts; a bucket that is away is no reason', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
    await database.postgres.query('DELETE FROM media_home');
    const open = (place: 'disk' | ReturnType<typeof storage>) =>
      openObjects({ postgres: database.postgres, storage: place, dataDirectory: directory, log: silentLog });
    await assert.rejects(open({ ...storage(), secret: 'another' }), /MEDIA_BUCKET_URL: the bucket cannot be used/);
    await assert.rejects(open('disk'), /MEDIA: the uploaded files of this installation lie in http/);
    // One that is away now keeps nobody from generating.
    bucket.fault = 'fail';
    await open(storage());
    rmSync(directory, { recursive: true });
  });

  test('a service that stalls at the start is tried again with each file, and keeps nothing from starting', {
    timeout: 20_000,
  }, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
    await database.postgres.query('DELETE FROM media_home');
    bucket.fault = 'stall';
    const warned: string[] = [];
    const log = { warn: (_: object, message: string) => void warned.push(message) };
    const { postgres } = database;
    await openObjects({ postgres, storage: storage(), dataDirectory: directory, log, checkMs: 100 });
    assert.deepEqual(warned, ['the bucket of uploaded files cannot be reached; it is tried again with each file']);
    rmSync(directory, { recursive: true });
  });

  test('public addresses: whoever has one reads the file, until it is deleted; nobody guesses one', async () => {
    const open = await startMediaFront(database.postgres, {
      storage: storage(),
      publicUrl: 'https://files.test',
      limits: BUCKET_LIMITS,
    });
    try {
      const bytes = randomBytes(1_000);
      const { id, url } = (await open.upload('acme', bytes)).body;
      const { origin, pathname } = new URL(url);
      assert.equal(origin, 'https://files.test');
      const answer = await open.call(null, pathname);
      assert.ok(answer.body.equals(bytes));
      assert.match(String(answer.headers['cache-control']), /^public, max-age=300/);
      const other = (await open.upload('acme', randomBytes(10))).body;
      const signature = pathname.split('/').at(-1) ?? '';
      assert.match(signature, /^[\w-]{22}$/);
      for (const wrong of [
        pathname.slice(0, -1),
        `${pathname}A`,
        pathname.replace(id, other.id),
        pathname.replace(id, id.toUpperCase()),
        pathname.replace(signature, ''),
        pathname.replace(signature, 'AAAAAAAAAAAAAAAAAAAAAA'),
        // The last character has bits that mean nothing.
        pathname.slice(0, -1) + 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('').find((one) => pathname.at(-1) !== one),
      ])
        assert.equal((await open.call(null, wrong)).status, 404, wrong);
      await open.call('owner', `/v1/admin/active-org/media/${id}`, { method: 'DELETE' });
      assert.equal((await open.call(null, pathname)).status, 404);
    } finally {
      await open.stop();
    }
  });
});
