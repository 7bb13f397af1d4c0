// The end of a tick of the event loop: all sockets that the tick found ready have been read, and those of the next tick
// have not been looked for yet.

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

/** Whether what calls this was called at the end of a tick. */
export function isTickEnd(): boolean {
  return running;
}

/**
 * Grows with the ticks at whose end there was something to do. When it has grown by two, every socket has been looked
 * at in between.
 */
export function tickCount(): number {
  return count;
}
