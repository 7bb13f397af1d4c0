// Where files lie when that is full, and when several gateways share it: what is refused leaves nothing behind, and
// what one gateway has kept or deleted is so for the others at once.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type MediaFront, startMediaFront } from '../support/media-front.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { S3_KEY, startStrictS3 } from '../support/strict-s3.ts';

const LIMITS = { fileBytesMax: 6_000_000, organizationBytesMax: 50_000_000 };
const DISK_MEBIBYTES = 4;

describe('where uploaded files lie', () => {
  let database: TestDatabase;

  before(async () => {
    database = await openTestDatabase();
  });
  after(() => database?.close());

  async function quotaOf(media: MediaFront): Promise<unknown> {
    const { rows } = await database.postgres.query(
      'SELECT stored_bytes::int AS stored, reserved_bytes::int AS reserved FROM media_quotas WHERE organization_id = $1',
      [media.organizations.acme],
    );
    return rows[0];
  }

  test('a full disk: 503, nothing stays of it, and what fits is kept', async (context) => {
    const dataDirectory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MEBIBYTES}m`, 'tmpfs', dataDirectory], {
        stdio: 'ignore',
      });
    } catch {
      rmSync(dataDirectory, { recursive: true });
      return context.skip('nobody but root on Linux can mount a small disk');
    }
    const media = await startMediaFront(database.postgres, { limits: LIMITS }, { dataDirectory });
    try {
      const fits = randomBytes(1_000_000);
      const { id } = (await media.upload('acme', fits)).body;
      const full = await Promise.all([5_000_000, 5_500_000].map((bytes) => media.upload('acme', randomBytes(bytes))));
      for (const { status, text } of full) {
        assert.equal(status, 503, text);
        assert.match(text, /has no room/);
      }
      assert.deepEqual(await quotaOf(media), { stored: 1_000_000, reserved: 0 });
      assert.deepEqual(media.files(), { objects: [id], staged: [] });
      assert.ok((await media.call('acme', `/v1/media/${id}`)).body.equals(fits));
      assert.equal((await media.upload('acme', randomBytes(1_000_000))).status, 200);
    } finally {
      await media.stop();
      execFileSync('umount', [dataDirectory]);
      rmSync(dataDirectory, { recursive: true });
    }
  });

  test('two gateways, one bucket: what one keeps or deletes the other knows at once, and bytes at both are one file', async () => {
    const bucket = await startStrictS3();
    const config = { storage: { url: `${bucket.url}/files`, ...S3_KEY }, limits: LIMITS };
    const one = await startMediaFront(database.postgres, config);
    const other = await startMediaFront(database.postgres, config, { beside: one });
    try {
      const bytes = randomBytes(300_000);
      const { id, url } = (await one.upload('acme', bytes)).body;
      assert.ok((await other.call('acme', new URL(url).pathname)).body.equals(bytes));
      assert.deepEqual(
        [(await other.upload('colleague', bytes)).body.deduped, (await other.call('other', `/v1/media/${id}`)).status],
        [true, 404],
      );
      await one.call('owner', `/v1/admin/active-org/media/${id}`, { method: 'DELETE' });
      assert.equal((await other.call('acme', `/v1/media/${id}`)).status, 404);
      const atBoth = randomBytes(200_000);
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, at) => (at % 2 === 0 ? one : other).upload('acme', atBoth)),
      );
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
      assert.equal(answers.filter(({ body }) => !body.deduped).length, 1);
      assert.deepEqual(await quotaOf(one), { stored: 200_000, reserved: 0 });
      assert.deepEqual(bucket.refused, []);
    } finally {
      await one.stop();
      await other.stop();
      await bucket.stop();
    }
  });

  test('two gateways of one disk: the limit of an organization is one for both, exactly', async () => {
    const one = await startMediaFront(database.postgres, {
      limits: { fileBytesMax: 10_000, organizationBytesMax: 100_000 },
    });
    const config = { limits: { fileBytesMax: 10_000, organizationBytesMax: 100_000 } };
    const other = await startMediaFront(database.postgres, config, {
      beside: one,
      dataDirectory: one.dataDirectory,
    });
    try {
      for (let round = 0; round < 3; round += 1)
        await Promise.all(
          Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? one : other).upload('acme', randomBytes(10_000))),
        );
      assert.deepEqual(await quotaOf(one), { stored: 100_000, reserved: 0 });
      assert.equal(one.files().objects.length, 10);
    } finally {
      await other.stop();
      await one.stop();
    }
  });
});
