// Calls back at even intervals, precise to some tens of microseconds. Timers of the event loop are whole milliseconds,
// too coarse for a schedule of thousands of requests a second: a thread sleeps on a futex instead.

import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

interface PacerData {
  readonly pacerIntervalMs: number;
}

/**
 * Resolves at the first wake-up, because a thread takes tens of milliseconds to start. Several wake-ups may arrive
 * together after the event loop was busy, so `onDue` sends everything that is due.
 */
export async function startPacer(intervalMs: number, onDue: () => void): Promise<Worker> {
  const data: PacerData = { pacerIntervalMs: intervalMs };
  const worker = new Worker(new URL(import.meta.url), { workerData: data });
  await once(worker, 'message');
  worker.on('message', onDue);
  return worker;
}

if (!isMainThread && hasInterval(workerData)) pace(workerData.pacerIntervalMs);

function hasInterval(data: unknown): data is PacerData {
  return typeof data === 'object' && data !== null && 'pacerIntervalMs' in data;
}

function pace(intervalMs: number): never {
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (let nextMs = performance.now() + intervalMs; ; nextMs += intervalMs) {
    const waitMs = nextMs - performance.now();
    if (waitMs > 0) Atomics.wait(never, 0, 0, waitMs);
    parentPort?.postMessage(null);
  }
}
