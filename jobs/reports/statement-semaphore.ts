// Bounds how many report statements run at once and how many wait, because jobs and its ClickHouse have other work.

/** The queue is full. */
export class SemaphoreFull extends Error {
  constructor() {
    super('too many reports wait to be read');
    this.name = 'SemaphoreFull';
  }
}

export class StatementSemaphore {
  private readonly waiting: (() => void)[] = [];
  private readonly waitingMax: number;
  private free: number;

  constructor(options: { readonly atOnce: number; readonly waitingMax: number }) {
    this.free = options.atOnce;
    this.waitingMax = options.waitingMax;
  }

  /** First come, first served. A reader that disconnects leaves the queue. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.free > 0) this.free -= 1;
    else await this.wait(signal);
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.free += 1;
      else next();
    }
  }

  private wait(signal: AbortSignal): Promise<void> {
    if (this.waiting.length >= this.waitingMax) throw new SemaphoreFull();
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        this.waiting.splice(this.waiting.indexOf(enter), 1);
        reject(signal.reason as Error);
      };
      this.waiting.push(enter);
      signal.addEventListener('abort', leave, { once: true });
    });
  }
}
