// Gauges of a gateway process that must return to their base value when it is idle.

import type { RelayContext } from '../generation/reply/relay-params.ts';
import type { MetricsRegistry } from '../platform/metrics.ts';
import type { SpoolWriter } from '../storage/spool/spool-writer.ts';

export function registerGauges(metrics: MetricsRegistry, records: SpoolWriter, relay: RelayContext): void {
  metrics.gauge(
    'tollgate_spool_blocked',
    'Processes that admit nothing because of their spool; above zero is an alarm.',
    {
      read: () => (records.healthy ? 0 : 1),
    },
  );
  metrics.gauge('tollgate_relays_open', 'Requests handed to the relay whose end is not complete', {
    read: () => relay.open.size,
  });
}
