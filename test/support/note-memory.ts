// Preloaded into the processes of an installation by a soak (NODE_OPTIONS). Every few seconds each one records its
// JavaScript memory and how long its event loop was held up; the metrics only have these of all processes together.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

const EVERY_MS = 5_000;
const RESOLUTION_MS = 20;

export interface MemoryNote {
  readonly heapBytes: number;
  /** Memory of buffers outside the heap. */
  readonly externalBytes: number;
  /** The longest delay and the 99th percentile since the last note, in milliseconds. */
  readonly loopDelayMaxMs: number;
  readonly loopDelayP99Ms: number;
}

const directory = process.env['TOLLGATE_TEST_MEMORY'];
if (directory !== undefined && isMainThread && !import.meta.main) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  setInterval(() => note(join(directory, String(process.pid)), delay), EVERY_MS).unref();
}

/** The environment that makes an installation's processes write their notes into `into`. */
export function memoryNotes(into: string): Record<string, string> {
  return { NODE_OPTIONS: `--import=${fileURLToPath(import.meta.url)}`, TOLLGATE_TEST_MEMORY: into };
}

/** The newest note of a process; null: it has written none yet, or is not one of ours. */
export function readMemoryNote(from: string, pid: number): MemoryNote | null {
  try {
    return JSON.parse(readFileSync(join(from, String(pid)), 'utf8')) as MemoryNote;
  } catch {
    return null;
  }
}

function note(file: string, delay: IntervalHistogram): void {
  const { heapUsed, external } = process.memoryUsage();
  const inMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
  const found: MemoryNote = {
    heapBytes: heapUsed,
    externalBytes: external,
    loopDelayMaxMs: inMs(delay.max),
    loopDelayP99Ms: inMs(delay.percentile(99)),
  };
  delay.reset();
  try {
    // The file is replaced as a whole, because it may be read at any moment.
    writeFileSync(`${file}.new`, JSON.stringify(found));
    renameSync(`${file}.new`, file);
  } catch {
    // The run is over, and the directory was removed.
  }
}
