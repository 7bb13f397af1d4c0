// The longest delay of this process's event loop, for several readers, each since it read last.

import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Each look wakes the process, an idle one too, for 50 µs. What the alarm asks about is a second. */
const RESOLUTION_MS = 100;
const NANOSECONDS_PER_MS = 1e6;

export class LoopDelay {
  private readonly measured = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  private readonly longestMs: number[] = [];

  constructor() {
    this.measured.enable();
  }

  /** Returns what tells the longest delay in milliseconds since it was called last. */
  reader(): () => number {
    const index = this.longestMs.push(0) - 1;
    return () => {
      const sinceMs = Math.max(0, this.measured.max / NANOSECONDS_PER_MS - RESOLUTION_MS);
      this.measured.reset();
      for (const [other, known] of this.longestMs.entries()) this.longestMs[other] = Math.max(known, sinceMs);
      const longest = this.longestMs[index] ?? 0;
      this.longestMs[index] = 0;
      return longest;
    };
  }
}
