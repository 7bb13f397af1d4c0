// The end of a tick of the event loop: all sockets that the tick found ready have been read, and the next tick has not
// polled for any yet.

let waiting: (() => void)[] = [];
let isDue = false;
let running = false;
let count = 0;

function runSoon(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(runAll);
}

/** Calls `run` at the end of this tick; of the next one when it is called at the end of a tick. It must not throw. */
export function atTickEnd(run: () => void): void {
  runSoon();
  waiting.push(run);
}

function runAll(): void {
  count += 1;
  isDue = false;
  const due = waiting;
  waiting = [];
  running = true;
  try {
    for (const run of due) run();
  } finally {
    running = false;
  }
}

/** Resolves at the end of this tick; of the next one when it is called at the end of a tick. */
export function tickEnd(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Resolves once every socket that is ready by now has been read: at the end of the next tick at the latest. */
export function socketsRead(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

/**
 * Returns what was looked up for a client, after all ready sockets have been read. The end of the client's connection
 * may lie unread in its socket when the look-up returns; afterwards it is known that the client has left.
 */
export async function withSocketsRead<T>(lookUp: Promise<T>): Promise<T> {
  const found = await lookUp;
  await socketsRead();
  return found;
}

/** Whether the caller runs at the end of a tick. */
export function isTickEnd(): boolean {
  return running;
}

/**
 * Counts the ticks at whose end there was something to do. When it has grown by two, every socket has been polled in
 * between.
 */
export function tickCount(): number {
  return count;
}
