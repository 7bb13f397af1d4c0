// Writes the access log: a line of JSON for each ended execution, in rotated files of the data directory, which
// `tollgate logs` reads. A line has ids, counts and amounts, but no texts, keys or names of persons.

import { appendFile, open, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import type { Log } from '../../src/platform/log.ts';
import type { CounterCell, MetricsRegistry } from '../../src/platform/metrics.ts';
import { ACCESS_LOG_FILES, accessLogFile, accessLogLine } from '../../src/records/access-log-line.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { StoppableSleep } from '../scheduling/stoppable-sleep.ts';
import type { EndObserver } from './end-observer.ts';

/** Lines are collected for this long, because one write costs as much as making the lines of a hundred executions. */
const COLLECT_MS = 500;
const FILE_BYTES_MAX = 64 * 1024 * 1024;
/** While the disk takes no lines, this much waits in memory; further lines are dropped. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;

export interface AccessLogParts {
  readonly dataDirectory: string;
  readonly log: Log;
  readonly metrics: MetricsRegistry;
  readonly fileBytesMax?: number;
}

export class AccessLog implements EndObserver {
  private readonly path: string;
  private readonly fileBytesMax: number;
  private readonly log: Log;
  private readonly dropped: CounterCell;
  private waiting = '';
  private writing: Promise<void> | null = null;
  private readonly collecting = new StoppableSleep();
  /** The size of the present file; null: not known yet. */
  private bytes: number | null = null;
  private isFailing = false;

  constructor({ dataDirectory, log, metrics, fileBytesMax = FILE_BYTES_MAX }: AccessLogParts) {
    this.path = accessLogFile(dataDirectory, 0);
    this.fileBytesMax = fileBytesMax;
    this.log = log;
    this.dropped = metrics
      .counter('tollgate_access_log_dropped_total', 'Executions without a line in the access log: the disk took none.')
      .labels();
  }

  ended(records: readonly TerminalRecord[]): void {
    if (this.waiting.length > WAITING_BYTES_MAX) {
      this.dropped.increment(records.length);
      return;
    }
    for (const record of records) this.waiting += accessLogLine(record);
    this.writing ??= this.writeAll().finally(() => {
      this.writing = null;
    });
  }

  /** Writes the remaining lines, for at most `limitMs`: a disk may hang. */
  async stop(limitMs: number): Promise<void> {
    this.collecting.stop();
    const limit = new AbortController();
    await Promise.race([this.writing, pass(limitMs, undefined, { signal: limit.signal }).catch(() => undefined)]);
    limit.abort();
  }

  private async writeAll(): Promise<void> {
    while (this.waiting !== '') {
      await this.collecting.forMs(COLLECT_MS);
      const text = this.waiting;
      this.waiting = '';
      try {
        await this.write(text);
        this.isFailing = false;
      } catch (error) {
        this.dropped.increment(text.split('\n').length - 1);
        if (!this.isFailing) this.log.error({ err: error, path: this.path }, 'the access log cannot be written');
        this.isFailing = true;
        this.bytes = null;
      }
    }
  }

  private async write(text: string): Promise<void> {
    let lines = text;
    if (this.bytes === null) {
      const { bytes, isTorn } = await inspect(this.path);
      this.bytes = bytes;
      // A power cut or a full disk can leave part of a line. The line feed makes that part a line of its own, which
      // readers skip.
      if (isTorn) lines = `\n${text}`;
    }
    if (this.bytes > 0 && this.bytes + lines.length > this.fileBytesMax) await this.beginFile();
    await appendFile(this.path, lines, { mode: 0o600 });
    this.bytes += Buffer.byteLength(lines);
  }

  /** Renames each file to the next age. The second oldest file replaces the oldest. */
  private async beginFile(): Promise<void> {
    const directory = dirname(this.path);
    for (let age = ACCESS_LOG_FILES - 1; age > 0; age--)
      await rename(accessLogFile(directory, age - 1), accessLogFile(directory, age)).catch(ifAbsent);
    this.bytes = 0;
  }
}

const LINE_FEED = 0x0a;

/** The size of the file, and whether its last line is incomplete. */
async function inspect(path: string): Promise<{ bytes: number; isTorn: boolean }> {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  if (size === 0) return { bytes: 0, isTorn: false };
  const file = await open(path, 'r');
  try {
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
    return { bytes: size, isTorn: buffer[0] !== LINE_FEED };
  } finally {
    await file.close();
  }
}

/** A missing file was never filled. Any other error is thrown, because without renaming the present file would grow. */
function ifAbsent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
