// How many statements of reports run at once, and how many may wait: the rest of the process, and its ClickHouse, have
// other work.

/** Too many wait already. */
export class TurnstileFull extends Error {
  constructor() {
    super('too many reports wait to be read');
    this.name = 'TurnstileFull';
  }
}

export class Turnstile {
  readonly #waiting: (() => void)[] = [];
  readonly #waitingMax: number;
  #free: number;

  constructor(options: { readonly atOnce: number; readonly waitingMax: number }) {
    this.#free = options.atOnce;
    this.#waitingMax = options.waitingMax;
  }

  /** First come, first served. Whoever leaves is not served, and stands in nobody's way. */
  async run<T>(left: AbortSignal, work: () => Promise<T>): Promise<T> {
    left.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(left);
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  #wait(left: AbortSignal): Promise<void> {
    if (this.#waiting.length >= this.#waitingMax) throw new TurnstileFull();
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        left.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(left.reason as Error);
      };
      this.#waiting.push(enter);
      left.addEventListener('abort', leave, { once: true });
    });
  }
}
