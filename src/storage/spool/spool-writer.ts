// A gateway process's append-only spool: one synchronous write per append, fdatasync in the background, a new segment when one is full.
// After any fault it takes no more records (`healthy` is false); what it holds is read and posted by jobs.
//
//   <directory>/<epoch>/owner.json       written first: who may still write here
//   <directory>/<epoch>/00000001.spool   complete as soon as 00000002.spool exists, or the owner is gone
//   <directory>/<epoch>/closed           the owner said that it is done

import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionRecord } from '../../domain/executions/execution-record.ts';
import { assert } from '../../platform/assert.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { makeDirectoryDurably, syncDirectory, writeFileDurably } from './durable-file.ts';
import { readProcessIdentity } from './process-identity.ts';
import { CLOSED_FILE, OWNER_FILE, type SpoolOwner, segmentFileName } from './spool-directory.ts';
import { nodeFileSystem, type SpoolFileSystem } from './spool-file-system.ts';
import { HEADER_BYTES, RECORD_BYTES_MAX, writeFrame } from './spool-format.ts';

export interface SpoolWriterOptions {
  /** The directory of all spools; this one lies in a directory named by the epoch. */
  readonly directory: string;
  readonly epoch: number;
  readonly segmentBytesMax: number;
  readonly fsyncIntervalMs: number;
  readonly log: Log;
  readonly clock: Clock;
  readonly fileSystem?: SpoolFileSystem;
}

/** The spool cannot take records. `recordsWritten` counts those of the failed call that are in it all the same. */
export class SpoolFault extends Error {
  override readonly name = 'SpoolFault';
  readonly recordsWritten: number;
  constructor(message: string, recordsWritten: number, options?: ErrorOptions) {
    super(message, options);
    this.recordsWritten = recordsWritten;
  }
}

const SCRATCH_BYTES = 64 * 1024;

export class SpoolWriter {
  readonly directory: string;
  readonly #options: SpoolWriterOptions;
  readonly #files: SpoolFileSystem;
  #scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  #segment = 0;
  #fd = -1;
  #segmentBytes = 0;
  #fault: Error | null = null;
  #closed = false;
  #dirty = false;
  #syncing = false;
  /** Descriptors that a background fdatasync may still be using. */
  readonly #retired: number[] = [];
  readonly #timer: NodeJS.Timeout;
  #onSyncEnd: (() => void) | null = null;
  /** Since opening; for metrics. */
  recordsAppended = 0;
  bytesAppended = 0;

  static open(options: SpoolWriterOptions): SpoolWriter {
    return new SpoolWriter(options);
  }

  private constructor(options: SpoolWriterOptions) {
    this.#options = options;
    this.#files = options.fileSystem ?? nodeFileSystem;
    this.directory = join(options.directory, String(options.epoch));
    createOwnedDirectory(options, this.directory);
    this.#openNextSegment();
    // One timer for the writer's life, armed only while something is unsynced: an idle process is not woken.
    this.#timer = setTimeout(() => this.#syncInBackground(), options.fsyncIntervalMs);
  }

  /** False once a write or a sync has failed: admission must stop, the process should be replaced. */
  get healthy(): boolean {
    return this.#fault === null;
  }

  /** When this returns the record survives the death of the process; a power cut can still take what the last sync interval wrote. */
  append(record: ExecutionRecord): void {
    this.#assertUsable();
    const end = this.#frame(JSON.stringify(record), 0);
    if (this.#segmentBytes > 0 && this.#segmentBytes + end > this.#options.segmentBytesMax) this.#rotate();
    this.#write(end, null);
    this.recordsAppended++;
  }

  /** Several records in one write; cheaper than one by one. */
  appendMany(records: readonly ExecutionRecord[]): void {
    this.appendTexts(records.map((record) => JSON.stringify(record)));
  }

  /** Several records, already as the JSON text of an ExecutionRecord each, in one write. */
  appendTexts(texts: readonly string[]): void {
    this.#assertUsable();
    if (texts.length === 0) return;
    const ends: number[] = [];
    let end = 0;
    for (const text of texts) {
      end = this.#frame(text, end);
      ends.push(end);
    }
    if (this.#segmentBytes > 0 && this.#segmentBytes + end > this.#options.segmentBytesMax) this.#rotate();
    this.#write(end, ends);
    this.recordsAppended += texts.length;
  }

  /** Syncs, then marks the spool as finished, so that jobs may ship its end and close the epoch. Faults do not stop the closing. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    if (this.#syncing) await new Promise<void>((resolve) => (this.#onSyncEnd = resolve));
    try {
      if (this.#fault === null) this.#files.fdatasyncSync(this.#fd);
    } catch (error) {
      this.#fail('fdatasync', error);
    }
    if (this.#fd !== -1) this.#files.close(this.#fd);
    writeFileDurably(join(this.directory, CLOSED_FILE), '');
  }

  #assertUsable(): void {
    assert(!this.#closed, 'spool: append after close');
    if (this.#fault !== null) throw new SpoolFault('the spool takes no more records after a fault', 0, { cause: this.#fault });
  }

  #frame(payload: string, offset: number): number {
    let end = writeFrame(this.#scratch, offset, payload);
    while (end === -1) {
      assert(payload.length <= RECORD_BYTES_MAX, `spool: a record of ${payload.length} characters`);
      const larger = Buffer.allocUnsafeSlow((this.#scratch.length + payload.length) * 2);
      this.#scratch.copy(larger, 0, 0, offset);
      this.#scratch = larger;
      end = writeFrame(this.#scratch, offset, payload);
    }
    assert(end - offset <= RECORD_BYTES_MAX + HEADER_BYTES, `spool: a record of ${end - offset} bytes`);
    return end;
  }

  #write(length: number, ends: readonly number[] | null): void {
    let written = 0;
    try {
      written = this.#files.write(this.#fd, this.#scratch, 0, length);
    } catch (error) {
      // Here a preallocated reserve will be given back to the disk, so that executions in flight can still settle.
      this.#fail('write', error);
      throw new SpoolFault('the spool cannot be written', 0, { cause: error });
    }
    if (written !== length) this.#cutBack(written, ends ?? []);
    this.#segmentBytes += length;
    this.bytesAppended += length;
    if (!this.#dirty) {
      this.#dirty = true;
      if (!this.#syncing) this.#timer.refresh();
    }
  }

  /** A short write (the disk is full): whole records stay, since jobs may have read them already, the torn one goes. Always throws. */
  #cutBack(written: number, ends: readonly number[]): never {
    const whole = ends.filter((end) => end <= written);
    const keep = whole.at(-1) ?? 0;
    const cause = new Error(`short write: ${written} bytes`);
    this.#fail('write', cause);
    try {
      this.#files.ftruncate(this.#fd, this.#segmentBytes + keep);
    } catch (error) {
      this.#options.log.error({ err: error, epoch: this.#options.epoch }, 'spool: a torn record could not be cut off; it stays as the torn tail');
    }
    this.#segmentBytes += keep;
    this.recordsAppended += whole.length;
    throw new SpoolFault('the spool is full', whole.length, { cause });
  }

  /** The old segment is durable before the new one exists, so only the last segment can have lost its end in a power cut. */
  #rotate(): void {
    try {
      this.#files.fdatasyncSync(this.#fd);
      if (this.#syncing) this.#retired.push(this.#fd);
      else this.#files.close(this.#fd);
      this.#fd = -1;
      this.#openNextSegment();
    } catch (error) {
      this.#fail('rotate', error);
      throw new SpoolFault('the spool cannot begin a segment', 0, { cause: error });
    }
  }

  #openNextSegment(): void {
    this.#segment++;
    this.#fd = this.#files.open(join(this.directory, segmentFileName(this.#segment)));
    this.#segmentBytes = 0;
    this.#files.syncDirectory(this.directory);
  }

  #syncInBackground(): void {
    if (!this.#dirty || this.#syncing || this.#closed || this.#fault !== null) return;
    this.#dirty = false;
    this.#syncing = true;
    this.#files.fdatasync(this.#fd, (error) => {
      this.#syncing = false;
      for (const fd of this.#retired.splice(0)) this.#files.close(fd);
      // The kernel may have dropped the pages it could not write: trying again would report success over a hole. Never retried.
      if (error !== null) this.#fail('fdatasync', error);
      if (this.#dirty && !this.#closed) this.#timer.refresh();
      this.#onSyncEnd?.();
    });
  }

  #fail(operation: string, cause: unknown): void {
    if (this.#fault !== null) return;
    this.#fault = cause instanceof Error ? cause : new Error(String(cause));
    this.#options.log.error({ err: cause, epoch: this.#options.epoch, operation }, 'spool: fault, no more records are taken');
  }
}

/** Under its final name only together with its owner, so that no reader meets a spool whose owner is not known. */
function createOwnedDirectory(options: SpoolWriterOptions, directory: string): void {
  assert(!existsSync(directory), `spool: epoch ${options.epoch} has a spool already`);
  const unnamed = `${directory}.partial-${process.pid}`;
  makeDirectoryDurably(unnamed);
  const owner: SpoolOwner = { epoch: options.epoch, ...readProcessIdentity(), openedAtMs: options.clock.nowMs() };
  writeFileDurably(join(unnamed, OWNER_FILE), `${JSON.stringify(owner)}\n`);
  renameSync(unnamed, directory);
  syncDirectory(options.directory);
}
