// The results of the last reconciliation as gauges. Any value but zero is an alarm.

import type { GaugeCell, MetricsRegistry } from '../../src/platform/metrics.ts';

export interface JobGauges {
  readonly ledgerDrift: GaugeCell;
  readonly factsDrift: GaugeCell;
  readonly cellsDrift: GaugeCell;
  readonly mediaDrift: GaugeCell;
}

export function createJobGauges(metrics: MetricsRegistry): JobGauges {
  return {
    ledgerDrift: metrics
      .gauge(
        'tollgate_ledger_drift',
        'Invariants of the ledger that did not hold when it was last checked; above zero is an alarm.',
        { merge: 'max' },
      )
      .labels(),
    factsDrift: metrics
      .gauge(
        'tollgate_facts_drift',
        'Hours whose facts differed from the ledger after repair; above zero is an alarm.',
        { merge: 'max' },
      )
      .labels(),
    cellsDrift: metrics
      .gauge(
        'tollgate_cells_drift',
        'Sealed days whose cells differed from their facts when they were last compared; above zero is an alarm.',
        { merge: 'max' },
      )
      .labels(),
    mediaDrift: metrics
      .gauge(
        'tollgate_media_drift',
        'Uploaded files whose bytes were missing when they were last looked for; above zero is an alarm.',
        { merge: 'max' },
      )
      .labels(),
  };
}
