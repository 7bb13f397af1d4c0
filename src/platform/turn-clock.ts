// The time as of this turn of the event loop: read once for all that the turn does, since a busy turn would read it a
// hundred times. It is behind by what the turn has taken so far, and never by a wait.

import type { Clock } from './clock.ts';
import { turnMoment } from './turn-end.ts';

export class TurnClock implements Clock {
  private readonly clock: Clock;
  private wallMoment = -1;
  private wallMs = 0;
  private monotonicMoment = -1;
  private sinceStartMs = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  nowMs(): number {
    const moment = turnMoment();
    if (moment !== this.wallMoment) {
      this.wallMoment = moment;
      this.wallMs = this.clock.nowMs();
    }
    return this.wallMs;
  }

  monotonicMs(): number {
    const moment = turnMoment();
    if (moment !== this.monotonicMoment) {
      this.monotonicMoment = moment;
      this.sinceStartMs = this.clock.monotonicMs();
    }
    return this.sinceStartMs;
  }
}
