// The metrics of shipping.

import type { CounterCell, GaugeCell, MetricsRegistry } from '../../src/platform/metrics.ts';

export interface ShippingMetrics {
  readonly recordsPosted: CounterCell;
  readonly factsInserted: CounterCell;
  readonly postingFaults: CounterCell;
  readonly factFaults: CounterCell;
  readonly unpostedBytes: GaugeCell;
  readonly bytesWithoutFacts: GaugeCell;
  readonly epochs: GaugeCell;
  /** Above zero is an alarm: a spool whose owner is unknown is not shipped. */
  readonly unreadableSpools: GaugeCell;
  /** Above zero is an alarm: acknowledged bytes could not be posted and need a person. */
  readonly quarantinedFiles: GaugeCell;
}

export function createShippingMetrics(metrics: MetricsRegistry): ShippingMetrics {
  const faults = metrics.counter(
    'tollgate_shipping_faults_total',
    'Failed attempts to ship spooled records, by destination.',
    ['destination'],
  );
  const lag = metrics.gauge('tollgate_spool_lag_bytes', 'Spooled bytes that are not yet in the destination.', {
    labelNames: ['destination'],
  });
  return {
    recordsPosted: metrics
      .counter('tollgate_spool_records_posted_total', 'Spooled records posted to Postgres.')
      .labels(),
    factsInserted: metrics.counter('tollgate_facts_inserted_total', 'Request facts inserted into ClickHouse.').labels(),
    postingFaults: faults.labels('postgres'),
    factFaults: faults.labels('clickhouse'),
    unpostedBytes: lag.labels('postgres'),
    bytesWithoutFacts: lag.labels('clickhouse'),
    epochs: metrics.gauge('tollgate_spool_epochs', 'Process epochs with a spool on this machine.').labels(),
    unreadableSpools: metrics
      .gauge('tollgate_spool_unreadable', 'Spools that cannot be read and are not shipped; above zero is an alarm.')
      .labels(),
    quarantinedFiles: metrics
      .gauge(
        'tollgate_spool_quarantined_files',
        'Files of spooled bytes that could not be posted; above zero is an alarm.',
      )
      .labels(),
  };
}
