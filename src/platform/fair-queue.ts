// A bounded queue for a scarce resource such as database connections or worker threads. It limits how much work runs at
// once, how much waits and for how long, and refuses the rest. Sources take turns, and a full queue is shared between
// them, so that a flood from one source does not delay the others. Where work may take as long as its source likes, a
// source has at most a part of the places.

interface Waiting {
  readonly begin: () => void;
  readonly refuse: () => void;
}

export interface FairQueueLimits {
  readonly underWayMax: number;
  /** How many of these one source may have; absent: all. */
  readonly underWayOfSourceMax?: number;
  readonly waitingMax: number;
  readonly waitMsMax: number;
}

export class FairQueue {
  private readonly underWayMax: number;
  private readonly waitingMax: number;
  private readonly waitMsMax: number;
  private readonly underWayOfSourceMax: number;
  private underWay = 0;
  private readonly underWayOf = new Map<string, number>();
  private waitingCount = 0;
  /** The waiting work by source, the source whose turn is next first; within a source in order of arrival. */
  private readonly waiting = new Map<string, Set<Waiting>>();

  constructor(limits: FairQueueLimits) {
    this.underWayMax = limits.underWayMax;
    this.waitingMax = limits.waitingMax;
    this.waitMsMax = limits.waitMsMax;
    this.underWayOfSourceMax = limits.underWayOfSourceMax ?? limits.underWayMax;
  }

  /**
   * Resolves with the result of `work`, or with `refused` when the queue is full or the wait took too long. `source`
   * takes turns with the other sources.
   */
  run<T, R>(work: () => Promise<T>, refused: R, source = ''): Promise<T | R> {
    if (this.hasPlace(source)) return this.start(work, source);
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
          resolve(this.start(work, source));
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
   * Refuses the newest waiting work of the source with the most, if that source has more than this one would have.
   * Returns false if it does not.
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

  private hasPlace(source: string): boolean {
    return this.underWay < this.underWayMax && (this.underWayOf.get(source) ?? 0) < this.underWayOfSourceMax;
  }

  private async start<T>(work: () => Promise<T>, source: string): Promise<T> {
    this.underWay += 1;
    this.underWayOf.set(source, (this.underWayOf.get(source) ?? 0) + 1);
    try {
      return await work();
    } finally {
      this.underWay -= 1;
      const rest = (this.underWayOf.get(source) ?? 0) - 1;
      if (rest > 0) this.underWayOf.set(source, rest);
      else this.underWayOf.delete(source);
      this.beginNext();
    }
  }

  /** One place is free, so at most one begins: the first whose source may have another place. */
  private beginNext(): void {
    const next = this.nextSource();
    if (next === null) return;
    const [source, ones] = next;
    const [one] = ones;
    if (one === undefined) return;
    this.remove(source, one);
    // The source's other work comes after that of all other sources.
    if (ones.size > 0) {
      this.waiting.delete(source);
      this.waiting.set(source, ones);
    }
    one.begin();
  }

  private nextSource(): readonly [string, Set<Waiting>] | null {
    for (const next of this.waiting) if (this.hasPlace(next[0])) return next;
    return null;
  }
}
