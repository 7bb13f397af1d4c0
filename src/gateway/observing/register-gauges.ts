// Gauges of a gateway process that must return to their base value when it is idle, and its counter of refusals.

import type { ReportForwarder } from '../../control-plane/reports/forward-report.ts';
import { REFUSAL_RULES } from '../../domain/refusals/refusal-rules.ts';
import type { RelayContext } from '../../generation/reply/relay-params.ts';
import type { Server } from '../../http/server.ts';
import type { BufferPool } from '../../platform/buffer-pool.ts';
import type { Counter, MetricsRegistry } from '../../platform/metrics.ts';
import type { SpoolWriter } from '../../storage/spool/spool-writer.ts';

export function registerGauges(metrics: MetricsRegistry, records: SpoolWriter, relay: RelayContext): void {
  metrics.gauge(
    'tollgate_spool_blocked',
    'Processes that admit nothing because of their spool; above zero is an alarm.',
    {
      read: () => (records.healthy ? 0 : 1),
    },
  );
  metrics.gauge(
    'tollgate_upstream_paused',
    'Providers’ models that are not called for now: the provider asked for it',
    {
      merge: 'max',
      read: () => relay.cooldowns.size,
    },
  );
  metrics.gauge('tollgate_relays_open', 'Requests handed to the relay whose end is not complete', {
    read: () => relay.open.size,
  });
}

interface ServingParts {
  readonly server: Server;
  readonly reports: ReportForwarder;
  readonly buffers: BufferPool;
}

export function registerServerGauges(metrics: MetricsRegistry, { server, reports, buffers }: ServingParts): void {
  metrics.gauge('tollgate_inflight', 'Exchanges whose response is not complete', { read: () => server.openExchanges });
  metrics.gauge('tollgate_connections_open', 'Connections of clients', { read: () => server.openConnections });
  metrics.gauge('tollgate_bodies_arriving', 'Request bodies on their way, also those dropped behind an early refusal', {
    read: () => server.arrivingBodies,
  });
  metrics.gauge('tollgate_body_bytes_lent', 'Bytes of the buffers that request bodies lie in', {
    read: () => buffers.lentBytes,
  });
  metrics.gauge('tollgate_reports_open', 'Reports that this process waits for or streams', {
    read: () => reports.open,
  });
}

/**
 * The counter has all kinds of refusals from the start: to monitoring, a series that first appears as 1 has not risen.
 */
export function registerRefusals(metrics: MetricsRegistry): {
  readonly refusals: Counter<readonly ['code']>;
  readonly connectionsRefused: Counter<readonly ['cap']>;
} {
  const refusals = metrics.counter('tollgate_refusals_total', 'Requests refused, by reason', ['code']);
  for (const kind of Object.keys(REFUSAL_RULES)) refusals.labels(kind);
  const connectionsRefused = metrics.counter(
    'tollgate_connections_refused_total',
    'Connections closed as they came, by the cap that was reached',
    ['cap'],
  );
  return { refusals, connectionsRefused };
}
