// The end of a turn of the event loop: all sockets that it found ready have been read, and those of the next turn have not been looked for yet.

let waiting: (() => void)[] = [];
let running = false;
let count = 0;

/** Calls `run` at the end of this turn; of the next one when it is called at the end of a turn. It must not throw. */
export function atTurnEnd(run: () => void): void {
  if (waiting.length === 0) setImmediate(runAll);
  waiting.push(run);
}

function runAll(): void {
  const due = waiting;
  waiting = [];
  count += 1;
  running = true;
  try {
    for (const run of due) run();
  } finally {
    running = false;
  }
}

/** Whether what calls this was called at the end of a turn. */
export function isTurnEnd(): boolean {
  return running;
}

/** Grows with the turns at whose end there was something to do. Two more than it was: the sockets have all been looked at in between. */
export function turnCount(): number {
  return count;
}
