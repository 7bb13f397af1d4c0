// A bounded queue before something scarce, such as database connections or worker threads. It bounds how much work runs
// at once, how much waits and for how long, and refuses the rest. Sources take turns, and a full queue is shared out
// between them, so that a flood from one source does not delay the others.

interface Waiting {
  readonly begin: () => void;
  readonly refuse: () => void;
}

export class FairQueue {
  private readonly underWayMax: number;
  private readonly waitingMax: number;
  private readonly waitMsMax: number;
  private underWay = 0;
  private waitingCount = 0;
  /** By source, the next one's first; of each in the order they came. */
  private readonly waiting = new Map<string, Set<Waiting>>();

  constructor(limits: { readonly underWayMax: number; readonly waitingMax: number; readonly waitMsMax: number }) {
    this.underWayMax = limits.underWayMax;
    this.waitingMax = limits.waitingMax;
    this.waitMsMax = limits.waitMsMax;
  }

  /** What `work` resolves to; `refused` when the queue is full or the wait took too long. `source`: who takes turns. */
  run<T, R>(work: () => Promise<T>, refused: R, source = ''): Promise<T | R> {
    if (this.underWay < this.underWayMax) return this.start(work);
    if (this.waitingCount >= this.waitingMax && !this.makeRoom(source)) return Promise.resolve(refused);
    return new Promise((resolve) => {
      const refuse = (): void => {
        this.remove(source, one);
        resolve(refused);
      };
      const timer = setTimeout(refuse, this.waitMsMax);
      const one: Waiting = {
        begin: () => {
          clearTimeout(timer);
          resolve(this.start(work));
        },
        refuse: () => {
          clearTimeout(timer);
          refuse();
        },
      };
      this.add(source, one);
    });
  }

  /**
   * Refuses the newest of the source with the most, where that has more than this one would have. False: it has not.
   */
  private makeRoom(source: string): boolean {
    const own = this.waiting.get(source)?.size ?? 0;
    if (own * this.waiting.size >= this.waitingMax) return false;
    let most: Set<Waiting> | null = null;
    for (const ones of this.waiting.values()) if (most === null || ones.size > most.size) most = ones;
    if (most === null || most.size <= own + 1) return false;
    [...most].at(-1)?.refuse();
    return true;
  }

  private add(source: string, one: Waiting): void {
    const ones = this.waiting.get(source);
    if (ones === undefined) this.waiting.set(source, new Set([one]));
    else ones.add(one);
    this.waitingCount += 1;
  }

  private remove(source: string, one: Waiting): void {
    const ones = this.waiting.get(source);
    if (ones?.delete(one) !== true) return;
    this.waitingCount -= 1;
    if (ones.size === 0) this.waiting.delete(source);
  }

  private async start<T>(work: () => Promise<T>): Promise<T> {
    this.underWay += 1;
    try {
      return await work();
    } finally {
      this.underWay -= 1;
      this.beginNext();
    }
  }

  private beginNext(): void {
    const [next] = this.waiting;
    if (next === undefined) return;
    const [source, ones] = next;
    const [one] = ones;
    if (one === undefined) return;
    this.remove(source, one);
    // The others of this source come after those of all others.
    if (ones.size > 0) {
      this.waiting.delete(source);
      this.waiting.set(source, ones);
    }
    one.begin();
  }
}
