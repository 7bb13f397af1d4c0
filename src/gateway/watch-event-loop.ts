// Measures for /metrics how long the event loop was blocked, which shows synchronous work first.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { MetricsRegistry } from '../platform/metrics.ts';

const RESOLUTION_MS = 20;
const NANOSECONDS_PER_SECOND = 1e9;

export function watchEventLoop(metrics: MetricsRegistry): void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  metrics.gauge('tollgate_event_loop_delay_max_seconds', 'Longest delay of the event loop since the last scrape', {
    merge: 'max',
    read: () => {
      const longest = delay.max / NANOSECONDS_PER_SECOND;
      delay.reset();
      return Math.max(0, longest - RESOLUTION_MS / 1_000);
    },
  });
  metrics.gauge('tollgate_resident_memory_bytes', 'Resident memory', { read: () => process.memoryUsage.rss() });
}
