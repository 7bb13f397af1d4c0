// The spool writer under every fault of a disk, by seed (SPOOL_SEED replays one): what it acknowledged is there, also
// after a power cut, nothing else is, nothing is admitted while it is not healthy, and it becomes healthy by itself.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Clock } from '../../src/platform/clock.ts';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import { SpoolFault } from '../../src/storage/spool/spool-fault.ts';
import { findNextFrame } from '../../src/storage/spool/spool-format.ts';
import { readSegment } from '../../src/storage/spool/spool-reader.ts';
import { SpoolWriter } from '../../src/storage/spool/spool-writer.ts';
import { howMany } from '../support/at-length.ts';
import { admittedRecord, executionStart, terminalRecord } from '../support/execution-records.ts';
import { FaultyDisk } from '../support/faulty-disk.ts';
import { silentLog } from '../support/postgres.ts';
import { appendRecords } from '../support/spool-records.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const SEEDS =
  process.env['SPOOL_SEED'] === undefined
    ? Array.from({ length: howMany({ short: 120, long: 3_000 }) }, (_, index) => index + 1)
    : [Number(process.env['SPOOL_SEED'])];
const STEPS = 250;
const ROUNDS_TO_RECOVER = 60;

/** Mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The writer's one timer, fired by the test. */
class HandTimer {
  #callback: (() => void) | null = null;
  #armed = false;

  install(context: TestContext): void {
    context.mock.method(globalThis, 'setTimeout', (callback: () => void) => {
      this.#callback = callback;
      this.#armed = true;
      return { refresh: () => (this.#armed = true) };
    });
    context.mock.method(globalThis, 'clearTimeout', () => {
      this.#armed = false;
    });
  }

  get armed(): boolean {
    return this.#armed;
  }

  fire(): void {
    if (!this.#armed) return;
    this.#armed = false;
    this.#callback?.();
  }
}

/**
 * What a gateway does with a spool: admits while it is healthy, ends what it admitted, and appends again what was not
 * taken.
 */
class Driver {
  readonly acknowledged = new Set<string>();
  readonly appended = new Set<string>();
  pending: ExecutionRecord[] = [];
  #open: ExecutionRecord[] = [];
  readonly #writer: SpoolWriter;
  readonly #random: () => number;

  constructor(writer: SpoolWriter, random: () => number) {
    this.#writer = writer;
    this.#random = random;
  }

  step(): void {
    const batch: ExecutionRecord[] = [];
    for (let count = Math.floor(this.#random() * 4); count > 0; count--) {
      const ending = this.#random() < 0.5 ? this.#open.shift() : undefined;
      if (ending !== undefined) batch.push(terminalRecord(ending));
      else if (this.#writer.healthy)
        batch.push(admittedRecord(executionStart({ requestedModel: 'x'.repeat(Math.floor(this.#random() * 300)) })));
    }
    this.append(batch);
  }

  append(batch: readonly ExecutionRecord[]): void {
    if (batch.length === 0) return;
    for (const record of batch) this.appended.add(textOf(record));
    let written = batch.length;
    try {
      appendRecords(this.#writer, ...batch);
    } catch (error) {
      if (!(error instanceof SpoolFault)) throw error;
      written = error.recordsWritten;
      assert.equal(this.#writer.healthy, false, 'a fault stops admission');
    }
    for (const [index, record] of batch.entries()) {
      if (index < written) {
        this.acknowledged.add(textOf(record));
        if (record.type === 'admitted') this.#open.push(record);
      } else if (record.type === 'terminal') {
        this.pending.push(record);
      }
    }
  }

  appendPending(): void {
    const { pending } = this;
    this.pending = [];
    this.append(pending);
  }
}

function textOf({ type, id, requestedModel }: ExecutionRecord): string {
  return `${type} ${id} ${requestedModel}`;
}

function readTexts(segments: readonly Buffer[]): string[] {
  return segments.flatMap((segment) => {
    const texts: string[] = [];
    for (let offset = 0; offset !== -1 && offset < segment.length; ) {
      const { records, nextOffset } = readSegment(segment, offset);
      for (const record of records) texts.push(textOf(record));
      offset = nextOffset >= segment.length ? -1 : findNextFrame(segment, nextOffset);
    }
    return texts;
  });
}

function runSeed(seed: number, context: TestContext, timer: HandTimer): void {
  const random = randomOf(seed);
  const disk = new FaultyDisk(random);
  let nowMs = 0;
  const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const options = {
    directory: temporaryDirectory(context),
    epoch: seed,
    segmentBytesMax: 3_000,
    fsyncIntervalMs: 20,
    log: silentLog,
    clock,
  };
  const writer = SpoolWriter.open({ ...options, freeBytesMin: 2_000, reserveFileBytes: 4_000, fileSystem: disk });
  disk.endBackgroundWork();
  const driver = new Driver(writer, random);
  for (let step = 0; step < STEPS; step++) {
    if (random() < 0.03) disk.trouble = disk.trouble === 0 ? random() * 0.6 : 0;
    if (random() < 0.02)
      disk.room = disk.room === Number.POSITIVE_INFINITY ? Math.floor(random() * 6_000) : Number.POSITIVE_INFINITY;
    if (random() < 0.5) driver.step();
    else if (random() < 0.2) driver.appendPending();
    if (random() < 0.4) timer.fire();
    if (random() < 0.3) disk.endBackgroundWork();
    nowMs += Math.floor(random() * 200);
    if (random() < 0.15) writer.check();
  }
  disk.trouble = 0;
  disk.room = Number.POSITIVE_INFINITY;
  let rounds = 0;
  for (; !(writer.healthy && driver.pending.length === 0 && disk.isIdle && !timer.armed); rounds++) {
    assert.ok(rounds < ROUNDS_TO_RECOVER, 'it does not become healthy by itself');
    nowMs += 1_000;
    writer.check();
    driver.appendPending();
    timer.fire();
    disk.endBackgroundWork();
  }
  const durable = new Set(readTexts(disk.segments({ afterPowerCut: true })));
  const missing = [...driver.acknowledged].filter((text) => !durable.has(text));
  assert.deepEqual(missing, [], 'acknowledged, and lost in a power cut');
  const visible = new Set(readTexts(disk.segments({ afterPowerCut: false })));
  assert.deepEqual(
    [...driver.acknowledged].filter((text) => !visible.has(text)),
    [],
    'acknowledged, and not to be read',
  );
  const strange = [...visible].filter((text) => !(disk.isUncertain ? driver.appended : driver.acknowledged).has(text));
  assert.deepEqual(strange, [], 'in the spool, and never taken');
}

describe('the spool on a faulty disk', () => {
  test(`${SEEDS.length} seeds`, (context) => {
    const timer = new HandTimer();
    timer.install(context);
    for (const seed of SEEDS) {
      try {
        runSeed(seed, context, timer);
      } catch (error) {
        throw new Error(`SPOOL_SEED=${seed}`, { cause: error });
      }
    }
  });
});
