// The thread behind a fixed rate: wakes its parent at each scheduled time, to some tens of microseconds, and tells it
// that time.

import { parentPort, workerData } from 'node:worker_threads';

const { intervalMs } = workerData as { intervalMs: number };
const never = new Int32Array(new SharedArrayBuffer(4));

function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

for (let nextMs = monotonicMs() + intervalMs; ; nextMs += intervalMs) {
  const waitMs = nextMs - monotonicMs();
  if (waitMs > 0) Atomics.wait(never, 0, 0, waitMs);
  parentPort?.postMessage(nextMs);
}
