// What this process has borrowed of wallets and limits, as metrics.

import type { AllowanceLeases } from '../generation/admission/allowance-leases.ts';
import type { AllowanceKind } from '../generation/admission/allowance-store.ts';
import type { MetricsRegistry } from '../platform/metrics.ts';

const KINDS: readonly AllowanceKind[] = [
  'credit',
  'budget',
  'concurrent_requests',
  'requests_per_minute',
  'tokens_per_minute',
];
const PICO_USD_PER_USD = 1e12;

/** Returns what brings those by kind up to date; for the coarse clock. */
export function registerLeaseMetrics(metrics: MetricsRegistry, leases: AllowanceLeases): () => void {
  metrics.gauge('tollgate_lease_free_usd', 'Credit borrowed from wallets that no request holds', {
    read: () => Number(leases.totals('credit').free) / PICO_USD_PER_USD,
  });
  metrics.gauge('tollgate_lease_held_usd', 'Credit held for requests under way', {
    read: () => Number(leases.totals('credit').held) / PICO_USD_PER_USD,
  });
  const labelNames = ['kind'] as const;
  const free = metrics.gauge(
    'tollgate_lease_free',
    'Borrowed and held by no request: dollars of credit and budget, else requests or tokens.',
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
      free.labels(kind).set(Number(totals.free) / unit);
      held.labels(kind).set(Number(totals.held) / unit);
    }
  };
}
