// Look-ups that wait for their turn: so many run at once, so many wait for so long, and what is beyond that is refused.

export class LookUpQueue {
  private readonly underWayMax: number;
  private readonly waitingMax: number;
  private readonly waitMsMax: number;
  private underWay = 0;
  /** In the order they came. */
  private readonly waiting = new Set<() => void>();

  constructor(limits: { readonly underWayMax: number; readonly waitingMax: number; readonly waitMsMax: number }) {
    this.underWayMax = limits.underWayMax;
    this.waitingMax = limits.waitingMax;
    this.waitMsMax = limits.waitMsMax;
  }

  /** What `work` resolves to; `refused` when too many wait before it, or it would wait for too long. */
  run<T, R>(work: () => Promise<T>, refused: R): Promise<T | R> {
    if (this.underWay < this.underWayMax) return this.start(work);
    if (this.waiting.size >= this.waitingMax) return Promise.resolve(refused);
    return new Promise((resolve) => {
      const begin = (): void => {
        clearTimeout(timer);
        resolve(this.start(work));
      };
      const timer = setTimeout(() => {
        this.waiting.delete(begin);
        resolve(refused);
      }, this.waitMsMax);
      this.waiting.add(begin);
    });
  }

  private start<T>(work: () => Promise<T>): Promise<T> {
    this.underWay += 1;
    return work().finally(() => {
      this.underWay -= 1;
      const [next] = this.waiting;
      if (next === undefined) return;
      this.waiting.delete(next);
      next();
    });
  }
}
