// The tests of uploaded files in a bucket, for every S3-compatible service: the strict double, and a real one.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { JobContext } from '../../jobs/scheduling/job.ts';
import { sweepMedia } from '../../jobs/tasks/sweep-media.ts';
import type { BucketConfig } from '../../src/domain/media/object-store.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { httpCall } from './http-call.ts';
import { type MediaFront, startMediaFront } from './media-front.ts';
import { silentLog } from './postgres.ts';

export const BUCKET_LIMITS = { fileBytesMax: 5_000_000, organizationBytesMax: 50_000_000 };
/** The folder in the bucket `files`; only objects in it belong to the installation. */
export const FOLDER = 'of-tests';

/** The bucket as a test sees it, independent of the product. Keys are those of the bucket. */
export interface BucketOfTest {
  has(key: string): Promise<boolean>;
  put(key: string): Promise<void>;
}

export interface BucketCaseParts {
  readonly postgres: Postgres;
  readonly bucket: BucketOfTest;
  readonly storage: BucketConfig;
  readonly media: MediaFront;
}

/** `orphans`: how many objects without a row to make; so many that the service lists them on several pages. */
export function testBucket(parts: () => BucketCaseParts, orphans: number): void {
  test('are kept, served by ranges and removed', async () => {
    const { media, bucket } = parts();
    const bytes = randomBytes(1_000_000);
    const { id, deduped } = (await media.upload('acme', bytes)).body;
    assert.equal(deduped, false);
    assert.ok(await bucket.has(`${FOLDER}/${id}`));
    assert.ok((await media.call('acme', `/v1/media/${id}`)).body.equals(bytes));
    const part = await media.call('acme', `/v1/media/${id}`, { headers: { range: 'bytes=65530-131080' } });
    assert.ok(part.body.equals(bytes.subarray(65_530, 131_081)));
    const last = await media.call('acme', `/v1/media/${id}`, { headers: { range: 'bytes=-1' } });
    assert.ok(last.body.equals(bytes.subarray(-1)));
    assert.equal((await media.upload('acme', bytes)).body.deduped, true);
    const empty = (await media.upload('acme', '')).body;
    assert.equal((await media.call('acme', `/v1/media/${empty.id}`)).body.length, 0);
    await media.media?.objects.remove(id);
    await media.media?.objects.remove(id);
    assert.equal(await bucket.has(`${FOLDER}/${id}`), false);
    assert.equal((await media.call('acme', `/v1/media/${id}`)).status, 503);
  });

  test('an object without a row is swept, over several pages; the others stay', async () => {
    const { media, bucket, postgres } = parts();
    const ids = [];
    for (let index = 0; index < 5; index += 1) ids.push((await media.upload('acme', randomBytes(10 + index))).body.id);
    const nobodys = Array.from({ length: orphans }, () => `${FOLDER}/${randomUUID()}`);
    const elsewhere = `elsewhere/${randomUUID()}`;
    for (const key of [...nobodys, elsewhere]) await bucket.put(key);
    const objects = media.media?.objects;
    const context = { postgres, log: silentLog, clock: systemClock, media: { objects, retentionDays: null } };
    await sweepMedia(context as unknown as JobContext);
    for (const key of nobodys) assert.equal(await bucket.has(key), false);
    assert.ok(await bucket.has(elsewhere));
    for (const id of ids) assert.ok(await bucket.has(`${FOLDER}/${id}`));
  });

  test('where GET answers with addresses, one is good for what it names and for nothing else', async () => {
    const { postgres, storage } = parts();
    const addresses = await startMediaFront(postgres, { storage, retrieval: 'url', limits: BUCKET_LIMITS });
    try {
      const bytes = Buffer.from('<svg onload="alert(1)"/>');
      const { id } = (await addresses.upload('acme', bytes)).body;
      const answer = await addresses.call('acme', `/v1/media/${id}`);
      assert.equal(answer.headers['content-type'], 'application/json');
      const { url } = JSON.parse(answer.body.toString()) as { url: string };
      const read = await httpCall(url);
      assert.ok(read.body.equals(bytes));
      assert.equal(read.headers['content-type'], 'image/svg+xml');
      assert.match(String(read.headers['content-disposition']), /^attachment; filename="/);
      for (const tampered of [
        url.replace('image%2Fsvg%2Bxml', 'text%2Fhtml'),
        url.replace(id, randomUUID()),
        url.replace('attachment', 'inline'),
        url.replace('Expires=900', 'Expires=9000'),
      ]) {
        assert.notEqual(tampered, url);
        assert.equal((await httpCall(tampered)).status, 403, tampered);
      }
    } finally {
      await addresses.stop();
    }
  });
}
