// A gateway that is killed at any step of an upload leaves no row without an object; and once its reservation has
// expired and the sweep has run, no object without a row, and the quota exact. So does one that stands still until then
// and goes on.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { JobContext } from '../../jobs/scheduling/job.ts';
import { createJobGauges } from '../../jobs/scheduling/job-gauges.ts';
import { retireMedia } from '../../jobs/tasks/retire-media.ts';
import { sweepMedia } from '../../jobs/tasks/sweep-media.ts';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { DiskObjects } from '../../src/storage/media/disk-objects.ts';
import { removeMediaObject } from '../../src/storage/postgres/media/media-objects.ts';
import { howMany } from '../support/at-length.ts';
import { fundOrganization } from '../support/executions.ts';
import { httpCall } from '../support/http-call.ts';
import { writeForm } from '../support/multipart-forms.ts';
import { openTestDatabase, silentLog, type TestDatabase } from '../support/postgres.ts';
import { waitFor } from '../support/waiting.ts';

const BOUNDARY = 'a-boundary';
const PROGRAM = new URL('../support/fake-media-gateway.ts', import.meta.url);
const STEPS = ['reserve', 'stage', 'write', 'sync', 'look', 'keep', 'finish'] as const;
/** Of the steps before which the row is there. */
const DONE: ReadonlySet<string> = new Set(['finish after']);
const DAY_MS = 86_400_000;
/** 503: the sweep has removed what was received. 408: it was kept too late to get a row. */
const STOPPED_STATUS: Readonly<Record<string, number>> = {
  stage: 408,
  write: 503,
  sync: 503,
  look: 503,
  keep: 503,
  finish: 408,
};

const skip = existsSync('/proc/self/stat') ? false : 'only Linux tells of a process that stands still';

/** Of a process, as /proc has it: `T` for one that stands still. */
function stateOf(child: ChildProcess | null): string {
  return readFileSync(`/proc/${child?.pid}/stat`, 'latin1').split(') ')[1]?.[0] ?? '';
}

describe('a gateway that is killed in an upload', () => {
  let database: TestDatabase;
  let directory: string;
  let organizationId: string;
  let child: ChildProcess | null = null;

  before(async () => {
    database = await openTestDatabase();
  });
  after(() => database?.close());
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
    await database.postgres.query(
      'TRUNCATE media_home, media_objects, media_reservations, media_removals, media_quotas',
    );
    ({ organizationId } = await fundOrganization(database.postgres, 0n));
  });
  afterEach(() => {
    child?.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });

  async function start(step: string, when: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<string> {
    child = fork(PROGRAM, [database.url, directory, organizationId, step, when, signal]);
    const [url] = (await once(child, 'message')) as [string];
    return url;
  }

  function upload(url: string, value: Buffer) {
    return httpCall(`${url}/v1/media/upload`, {
      body: writeForm(BOUNDARY, [{ name: 'file', filename: 'a', value }]),
      headers: { authorization: 'Bearer x', 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    });
  }

  function filesIn(folder: string): { readonly name: string; readonly path: string }[] {
    return readdirSync(join(directory, 'media', folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name, parentPath }) => ({ name, path: join(parentPath, name) }));
  }

  async function rows() {
    const { rows: found } = await database.postgres.query<{ id: string; sha256: Buffer; bytes: string }>(
      'SELECT id, sha256, bytes FROM media_objects',
    );
    return found;
  }

  async function quota() {
    const { rows: found } = await database.postgres.query<{ stored: number; reserved: number }>(
      'SELECT stored_bytes::int AS stored, reserved_bytes::int AS reserved FROM media_quotas',
    );
    return found[0] ?? { stored: 0, reserved: 0 };
  }

  async function everyRowHasItsObject(): Promise<void> {
    for (const { id, sha256, bytes } of await rows()) {
      const file = filesIn('objects').find(({ name }) => name === id);
      assert.ok(file !== undefined, 'a row without an object');
      const content = readFileSync(file.path);
      assert.equal(content.length, Number(bytes));
      assert.ok(createHash('sha256').update(content).digest().equals(sha256));
    }
  }

  /** As jobs does, at a time at which every reservation has expired. */
  async function runJobs(): Promise<{ retired: unknown; swept: unknown }> {
    await database.postgres.query("UPDATE media_reservations SET expires_at = now() - interval '1 second'");
    const clock: Clock = { nowMs: () => Date.parse('2100-01-01') + DAY_MS, monotonicMs: () => 0 };
    const context = {
      postgres: database.postgres,
      log: silentLog,
      clock,
      gauges: createJobGauges(new MetricsRegistry()),
      media: { objects: new DiskObjects(join(directory, 'media')), retentionDays: null },
    } as unknown as JobContext;
    return { retired: await retireMedia(context), swept: await sweepMedia(context) };
  }

  for (const step of STEPS) {
    // Behind a step is before the next one.
    for (const when of step === 'finish' ? ['before', 'after'] : ['before']) {
      test(`${when} ${step}: no row without an object, no object without a row, the quota exact`, async () => {
        const url = await start(step, when);
        const value = randomBytes(300_000);
        const ended = once(child as ChildProcess, 'exit');
        await assert.rejects(upload(url, value));
        await ended;
        await everyRowHasItsObject();
        const isKept = DONE.has(`${step} ${when}`);
        assert.equal((await rows()).length, isKept ? 1 : 0);
        await runJobs();
        await everyRowHasItsObject();
        const kept = await rows();
        assert.equal(kept.length, isKept ? 1 : 0);
        assert.deepEqual(
          filesIn('objects').map(({ name }) => name),
          kept.map(({ id }) => id),
        );
        assert.deepEqual(filesIn('staged'), []);
        assert.deepEqual(await quota(), { stored: isKept ? value.length : 0, reserved: 0 });
      });
    }
  }

  for (const step of howMany({ short: ['keep', 'finish'], long: STEPS.filter((one) => one !== 'reserve') }))
    test(`a gateway that stands still before ${step} until its reservation is gone and swept: the same`, {
      skip,
    }, async () => {
      const url = await start(step, 'before', 'SIGSTOP');
      const value = randomBytes(300_000);
      const answering = upload(url, value);
      await waitFor(
        'it to stand still',
        () => stateOf(child),
        (state) => state === 'T',
      );
      await runJobs();
      child?.kill('SIGCONT');
      const { status } = await answering;
      assert.equal(status, step === 'release' ? 200 : STOPPED_STATUS[step], step);
      await everyRowHasItsObject();
      await runJobs();
      const kept = await rows();
      assert.equal(kept.length, status === 200 ? 1 : 0);
      assert.deepEqual(
        filesIn('objects').map(({ name }) => name),
        kept.map(({ id }) => id),
      );
      assert.deepEqual(filesIn('staged'), []);
      assert.deepEqual(await quota(), { stored: status === 200 ? value.length : 0, reserved: 0 });
    });

  test('the sweep leaves alone what an upload under way has reserved', async () => {
    const url = await start('keep', 'after');
    await assert.rejects(upload(url, randomBytes(1_000)));
    const context = {
      postgres: database.postgres,
      log: silentLog,
      clock: { nowMs: () => Date.parse('2100-01-01'), monotonicMs: () => 0 },
      media: { objects: new DiskObjects(join(directory, 'media')), retentionDays: null },
    } as unknown as JobContext;
    assert.deepEqual(await sweepMedia(context), { objects: 1, swept: 0, drift: 0 });
    assert.equal(filesIn('objects').length, 1);
  });

  test('a deleted file is gone at once, its bytes with the next run; a row without its object is an alarm', async () => {
    const url = await start('none', 'never');
    const ids: string[] = [];
    for (const value of [randomBytes(1_000), randomBytes(2_000)])
      ids.push((JSON.parse((await upload(url, value)).body.toString()) as { id: string }).id);
    const [first = '', second = ''] = ids;
    const actor = { kind: 'cli', userId: null, label: 'test' } as const;
    const removed = await removeMediaObject(database.postgres, actor, { organizationId, id: first });
    assert.deepEqual(removed, { removed: true });
    const headers = { authorization: 'Bearer x' };
    assert.equal((await httpCall(`${url}/v1/media/${first}`, { headers })).status, 404);
    assert.deepEqual(await quota(), { stored: 2_000, reserved: 0 });
    await runJobs();
    const [left] = filesIn('objects');
    assert.equal(left?.name, second);
    rmSync(left?.path ?? '');
    const { swept } = await runJobs();
    assert.deepEqual(swept, { objects: 0, swept: 0, drift: 1 });
    assert.equal((await httpCall(`${url}/v1/media/${second}`, { headers })).status, 503);
  });

  test('files that nobody uploads again are deleted when they are old; the others stay', async () => {
    const url = await start('none', 'never');
    const old = randomBytes(1_000);
    await upload(url, old);
    await upload(url, randomBytes(2_000));
    await database.postgres.query(`UPDATE media_objects SET uploaded_at = now() - interval '10 days'`);
    // Uploaded once more, under its old id.
    assert.match((await upload(url, old)).body.toString(), /"deduped":true/);
    const context = {
      postgres: database.postgres,
      log: silentLog,
      clock: { nowMs: () => systemClock.nowMs(), monotonicMs: () => 0 },
      media: { objects: new DiskObjects(join(directory, 'media')), retentionDays: 7 },
    } as unknown as JobContext;
    assert.deepEqual(await retireMedia(context), { retired: 1, removed: 1, expired: 0 });
    assert.deepEqual(await quota(), { stored: 1_000, reserved: 0 });
    assert.equal(filesIn('objects').length, 1);
  });
});
