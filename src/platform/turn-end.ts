// The end of a turn of the event loop: all sockets that it found ready have been read, and those of the next turn have not been looked for yet.

let waiting: (() => void)[] = [];
let running = false;
let count = 0;
let moment = 0;

/** Calls `run` at the end of this turn; of the next one when it is called at the end of a turn. It must not throw. */
export function atTurnEnd(run: () => void): void {
  if (waiting.length === 0) setImmediate(runAll);
  waiting.push(run);
}

function runAll(): void {
  const due = waiting;
  waiting = [];
  count += 1;
  moment += 1;
  running = true;
  try {
    for (const run of due) run();
  } finally {
    running = false;
    moment += 1;
  }
}

/** The same number as before means that the event loop has not waited since: only what lies between two waits, or is done at the end of a turn, has it in common. */
export function turnMoment(): number {
  // While something is due at the end of the turn the loop does not wait before it.
  if (!running && waiting.length === 0) atTurnEnd(nothing);
  return moment;
}

function nothing(): void {}

/** Whether what calls this was called at the end of a turn. */
export function isTurnEnd(): boolean {
  return running;
}

/** Grows with the turns at whose end there was something to do. Two more than it was: the sockets have all been looked at in between. */
export function turnCount(): number {
  return count;
}
