// The flag by which a worker task tells its caller that it has begun. It is not in worker-pool.ts, so that no worker
// thread loads piscina.

/** Memory that a task's thread shares with its caller: 1 once the task runs. */
export type BegunFlag = Int32Array<SharedArrayBuffer>;

export function begunFlag(): BegunFlag {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/** Called by the task when it begins: from then on the deadline of its work runs. */
export function tellBegun(begun: BegunFlag): void {
  Atomics.store(begun, 0, 1);
  Atomics.notify(begun, 0);
}
