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

/**
 * A kind of work that is left until all sockets of a tick have been read, and done for all then, one after the other,
 * before what `atTickEnd` calls: what a kind of work needs of the processor's caches, its code above all, is there for
 * the next.
 */
export class TickWork<Item> {
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
  try {
    for (const kind of kinds) kind.doAll();
  } finally {
    isDue = false;
  }
  for (const kind of kinds) if (kind.waits) runSoon();
  // What the work has left for the end of the tick is part of this one.
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
