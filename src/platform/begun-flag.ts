// How a worker task says that it has begun. Apart from worker-pool.ts, whose piscina no thread is to load.

/** Memory that a task's thread shares with its caller: 1 once the task runs. */
export type BegunFlag = Int32Array<SharedArrayBuffer>;

export function begunFlag(): BegunFlag {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/** From here on the deadline of the task's work runs. */
export function tellBegun(begun: BegunFlag): void {
  Atomics.store(begun, 0, 1);
  Atomics.notify(begun, 0);
}
