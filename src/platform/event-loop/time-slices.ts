// Lets pieces of long work run, one in each tick of the event loop, in the order in which they asked, so that the rest
// of the process runs in between. After each piece comes a pause, so that all pieces together take at most a part of
// the process's time.

import type { Clock } from '../clock.ts';

/**
 * The pause after a piece, as a multiple of the time that the tick with the piece took: pieces take at most a quarter.
 */
const REST = 3;

export class TimeSlices {
  private readonly clock: Pick<Clock, 'monotonicMs'>;
  private readonly waiting: (() => void)[] = [];
  private isUnderWay = false;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.clock = clock;
  }

  /** Resolves in a tick in which no other piece runs. */
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
    // The time of a piece includes the reading that it has made possible in its tick. The timer's own grain is a
    // millisecond.
    setImmediate(() => setTimeout(this.goOn, REST * (this.clock.monotonicMs() - startMs)));
  };
}
