// Lets pieces of long work go on one in each turn of the event loop, in the order in which they asked, so that
// everything else of the process comes in between.

export class LoopTurns {
  private readonly waiting: (() => void)[] = [];

  /** Resolves in a turn in which nobody else goes on. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      if (this.waiting.length === 1) setImmediate(this.goOn);
    });
  }

  private readonly goOn = (): void => {
    this.waiting.shift()?.();
    if (this.waiting.length > 0) setImmediate(this.goOn);
  };
}
