// The end of a turn of the event loop: all sockets that it found ready have been read, and those of the next turn have
// not been looked for yet.

let waiting: (() => void)[] = [];
let isDue = false;
let running = false;
let count = 0;
let moment = 0;

function runSoon(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(runAll);
}

/** Calls `run` at the end of this turn; of the next one when it is called at the end of a turn. It must not throw. */
export function atTurnEnd(run: () => void): void {
  runSoon();
  waiting.push(run);
}

/**
 * A kind of work that is left until all sockets of a turn have been read, and done for all then, one after the other,
 * before what `atTurnEnd` calls: what a kind of work needs of the processor's caches, its code above all, is there for
 * the next.
 */
export class TurnWork<Item> {
  private readonly work: (item: Item) => void;
  private items: Item[] = [];

  /** `work` must not throw. Kinds are done in the order in which they were made. */
  constructor(work: (item: Item) => void) {
    this.work = work;
    kinds.push(this);
  }

  add(item: Item): void {
    runSoon();
    this.items.push(item);
  }

  get waits(): boolean {
    return this.items.length > 0;
  }

  doAll(): void {
    if (!this.waits) return;
    const { items } = this;
    this.items = [];
    for (const item of items) this.work(item);
  }
}

const kinds: { readonly waits: boolean; doAll(): void }[] = [];

function runAll(): void {
  count += 1;
  moment += 1;
  try {
    for (const kind of kinds) kind.doAll();
  } finally {
    isDue = false;
  }
  for (const kind of kinds) if (kind.waits) runSoon();
  // What the work has left for the end of the turn is part of this one.
  const due = waiting;
  waiting = [];
  running = true;
  try {
    for (const run of due) run();
  } finally {
    running = false;
    moment += 1;
  }
}

/**
 * The same number as before means that the event loop has not waited since: only what lies between two waits, or is
 * done at the end of a turn, has it in common.
 */
export function turnMoment(): number {
  // While something is due at the end of the turn the loop does not wait before it.
  if (!running) runSoon();
  return moment;
}

/** Whether what calls this was called at the end of a turn. */
export function isTurnEnd(): boolean {
  return running;
}

/**
 * Grows with the turns at whose end there was something to do. Two more than it was: the sockets have all been looked
 * at in between.
 */
export function turnCount(): number {
  return count;
}
