// Measures for /metrics how long the event loop was blocked, which shows synchronous work first.

import { LoopDelay } from '../../platform/event-loop/loop-delay.ts';
import type { MetricsRegistry } from '../../platform/metrics.ts';

/** Returns the measurement, for other readers of it. */
export function watchEventLoop(metrics: MetricsRegistry): LoopDelay {
  const loopDelay = new LoopDelay('gateway');
  const read = loopDelay.reader();
  metrics.gauge('tollgate_event_loop_delay_max_seconds', 'Longest delay of the event loop since the last scrape', {
    merge: 'max',
    read: () => read() / 1_000,
  });
  metrics.gauge('tollgate_resident_memory_bytes', 'Resident memory', { read: () => process.memoryUsage.rss() });
  return loopDelay;
}
