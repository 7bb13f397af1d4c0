// Measures the longest delay of this process's event loop, for several readers: each gets the longest since it read
// last.

import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

/**
 * How often the delay is measured. Each measurement wakes the process for 50 µs, even an idle one; the alarm is about a
 * whole second.
 */
const RESOLUTION_MS = { gateway: 100, jobs: 500 } as const;
const NANOSECONDS_PER_MS = 1e6;

export class LoopDelay {
  private readonly resolutionMs: number;
  private readonly measured: IntervalHistogram;
  private readonly longestMs: number[] = [];

  constructor(kind: keyof typeof RESOLUTION_MS) {
    this.resolutionMs = RESOLUTION_MS[kind];
    this.measured = monitorEventLoopDelay({ resolution: this.resolutionMs });
    this.measured.enable();
  }

  /** Returns a function that gives the longest delay in milliseconds since its last call. */
  reader(): () => number {
    const index = this.longestMs.push(0) - 1;
    return () => {
      const sinceMs = Math.max(0, this.measured.max / NANOSECONDS_PER_MS - this.resolutionMs);
      this.measured.reset();
      for (const [other, known] of this.longestMs.entries()) this.longestMs[other] = Math.max(known, sinceMs);
      const longest = this.longestMs[index] ?? 0;
      this.longestMs[index] = 0;
      return longest;
    };
  }
}
