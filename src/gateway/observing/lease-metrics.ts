// What this process has leased of wallets and limits, as metrics.

import type { QuotaKind } from '../../domain/quotas/lease.ts';
import { LIMIT_KINDS } from '../../domain/quotas/limit-kinds.ts';
import type { QuotaLeases } from '../../generation/admission/leases/quota-leases.ts';
import type { MetricsRegistry } from '../../platform/metrics.ts';

const KINDS: readonly QuotaKind[] = ['credit', ...LIMIT_KINDS];
const PICO_USD_PER_USD = 1e12;

/** Returns the function that brings the gauges by kind up to date; for the coarse clock. */
export function registerLeaseMetrics(metrics: MetricsRegistry, leases: QuotaLeases): () => void {
  metrics.gauge('tollgate_lease_free_usd', 'Credit leased from wallets that no request holds', {
    read: () => Number(leases.totals('credit').available) / PICO_USD_PER_USD,
  });
  metrics.gauge('tollgate_lease_held_usd', 'Credit held for requests under way', {
    read: () => Number(leases.totals('credit').held) / PICO_USD_PER_USD,
  });
  const labelNames = ['kind'] as const;
  const free = metrics.gauge(
    'tollgate_lease_free',
    'Leased and held by no request: dollars of credit and budget, else requests or tokens.',
    { labelNames },
  );
  const held = metrics.gauge(
    'tollgate_lease_held',
    'Held for requests under way: dollars of credit and budget, else requests or tokens.',
    { labelNames },
  );
  return () => {
    for (const kind of KINDS) {
      const totals = leases.totals(kind);
      const unit = kind === 'credit' || kind === 'budget' ? PICO_USD_PER_USD : 1;
      free.labels(kind).set(Number(totals.available) / unit);
      held.labels(kind).set(Number(totals.held) / unit);
    }
  };
}
