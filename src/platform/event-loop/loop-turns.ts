// Lets pieces of long work go on one in each turn of the event loop, in the order in which they asked, so that
// everything else of the process comes in between; and after each lets the process be for a while, so that all of them
// together take at most a part of its time.

import type { Clock } from '../clock.ts';

/** Times as long as a turn took with a piece in it nothing goes on: at most a quarter is for the pieces. */
const REST = 3;

export class LoopTurns {
  private readonly clock: Pick<Clock, 'monotonicMs'>;
  private readonly waiting: (() => void)[] = [];
  private isUnderWay = false;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.clock = clock;
  }

  /** Resolves in a turn in which nobody else goes on. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      if (this.isUnderWay) return;
      this.isUnderWay = true;
      setImmediate(this.goOn);
    });
  }

  private readonly goOn = (): void => {
    const goesOn = this.waiting.shift();
    if (goesOn === undefined) {
      this.isUnderWay = false;
      return;
    }
    const startMs = this.clock.monotonicMs();
    goesOn();
    // By then the loop has also read what the piece let come. The timer's own grain is a millisecond.
    setImmediate(() => setTimeout(this.goOn, REST * (this.clock.monotonicMs() - startMs)));
  };
}
