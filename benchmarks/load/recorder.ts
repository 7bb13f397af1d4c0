// Collects what a job saw and turns it into its result. Only events in the measuring window count; errors count from
// the first request.

import type { JobResult } from './job.ts';
import { Samples } from './samples.ts';

const ERRORS_KEPT = 5;

export class Recorder {
  measuring = false;
  private startedAtMs = 0;
  private elapsedMs = 0;
  private errors = 0;
  private readonly firstErrors: string[] = [];
  private replyBytes = 0;
  private readonly latencyUs = new Samples();
  private readonly firstByteUs = new Samples();
  private readonly eventUs = new Samples();

  start(): void {
    this.measuring = true;
    this.startedAtMs = performance.now();
  }

  stop(): void {
    this.measuring = false;
    this.elapsedMs = performance.now() - this.startedAtMs;
  }

  /** A good reply. */
  reply(sentAtMs: number, firstByteAtMs: number, bodyBytes: number): void {
    this.replyBytes = bodyBytes;
    if (!this.measuring) return;
    this.latencyUs.add((performance.now() - sentAtMs) * 1000);
    this.firstByteUs.add((firstByteAtMs - sentAtMs) * 1000);
  }

  event(stampNs: number): void {
    if (this.measuring) this.eventUs.add((Number(process.hrtime.bigint()) - stampNs) / 1000);
  }

  /** Errors count from the first request on, also while warming up. */
  error(reason: string): void {
    this.errors++;
    if (this.firstErrors.length < ERRORS_KEPT) this.firstErrors.push(reason);
  }

  result(): JobResult {
    return {
      requests: this.latencyUs.count,
      errors: this.errors,
      firstErrors: this.firstErrors,
      elapsedMs: this.elapsedMs,
      requestsPerSecond: this.latencyUs.count / (this.elapsedMs / 1000),
      replyBytes: this.replyBytes,
      latencyUs: this.latencyUs.quantiles(),
      firstByteUs: this.firstByteUs.quantiles(),
      events: this.eventUs.count,
      eventUs: this.eventUs.quantiles(),
    };
  }
}
