// What a load has measured: a histogram for each kind of duration, and the errors by kind. Durations include only good
// replies, so that a quick refusal does not look like a quick reply.

import { Histogram } from './histogram.ts';

/** Durations of one kind of replies: whole ones or streams. */
export class Series {
  /** From when the request was due to the last byte. */
  readonly latency = new Histogram();
  /** From when the request was due to the first byte of the reply's body. */
  readonly firstByte = new Histogram();
  /** Between two events of a stream. */
  readonly betweenEvents = new Histogram();
}

export class Measurements {
  readonly requests = new Series();
  readonly streams = new Series();
  /** How much later than due this process sent a request: shows how far its own figures can be trusted. */
  readonly ownDelay = new Histogram();
  readonly errors = new Map<string, number>();
  begun = 0;
  open = 0;
  openStreams = 0;
  events = 0;

  get good(): number {
    return this.requests.latency.count + this.streams.latency.count;
  }

  get failed(): number {
    return [...this.errors.values()].reduce((sum, count) => sum + count, 0);
  }

  fail(kind: string): void {
    this.errors.set(kind, (this.errors.get(kind) ?? 0) + 1);
  }
}
