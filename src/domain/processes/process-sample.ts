// What one process counted between two beats, and its gauges at the second beat, taken from its metrics by one table.

import type { FamilySnapshot, MetricsSnapshot, SeriesSnapshot } from '../../platform/metrics.ts';

/** The time between two beats of a process. */
export const BEAT_INTERVAL_MS = 5_000;

export interface ProcessSample {
  /** Counts by key (`countKey`); a count of zero is left out. */
  readonly counts: Readonly<Record<string, number>>;
  readonly gauges: Readonly<Partial<Record<GaugeName, number>>>;
}

/** The key of a name and of the kept label values, as JSON: equal values give the same text. */
export function countKey(...parts: readonly string[]): string {
  return JSON.stringify(parts);
}

/**
 * Counters and histograms: their name in samples, and the labels that are kept. Figures are summed over all other
 * labels.
 */
const COUNTED = {
  tollgate_requests_total: { as: 'requests', labels: ['status_class'] },
  tollgate_tokens_total: { as: 'tokens', labels: ['direction'] },
  tollgate_refusals_total: { as: 'refusals', labels: ['code'] },
  tollgate_upstream_errors_total: { as: 'failed_calls', labels: ['provider', 'kind'] },
  tollgate_request_duration_seconds: { as: 'latency', labels: [] },
  tollgate_ttft_seconds: { as: 'first_byte', labels: [] },
} as const;

/** The metric of each gauge, and which of its series is taken. */
const GAUGES = {
  in_flight: { family: 'tollgate_inflight', labelValue: null },
  connections: { family: 'tollgate_connections_open', labelValue: null },
  paused_models: { family: 'tollgate_upstream_paused', labelValue: null },
  lent_usd: { family: 'tollgate_lease_free_usd', labelValue: null },
  held_usd: { family: 'tollgate_lease_held_usd', labelValue: null },
  blocked: { family: 'tollgate_spool_blocked', labelValue: null },
  unposted_bytes: { family: 'tollgate_spool_lag_bytes', labelValue: 'postgres' },
  unreported_bytes: { family: 'tollgate_spool_lag_bytes', labelValue: 'clickhouse' },
  quarantined_files: { family: 'tollgate_spool_quarantined_files', labelValue: null },
} as const;

export type CountName = (typeof COUNTED)[keyof typeof COUNTED]['as'];
export type GaugeName = keyof typeof GAUGES | 'memory_bytes' | 'loop_delay_ms';

/** The metrics that a sample is made of. */
export const SAMPLED: ReadonlySet<string> = new Set([
  ...Object.keys(COUNTED),
  ...Object.values(GAUGES).map(({ family }) => family),
]);

/** The present totals of all counters, by key. */
export function totalsOf(snapshot: MetricsSnapshot): ReadonlyMap<string, number> {
  const totals = new Map<string, number>();
  const add = (key: string, count: number): void => void totals.set(key, (totals.get(key) ?? 0) + count);
  for (const family of snapshot) {
    const row = Object.hasOwn(COUNTED, family.name) ? COUNTED[family.name as keyof typeof COUNTED] : undefined;
    if (row === undefined) continue;
    for (const series of family.series)
      for (const [labels, count] of countsOf(family, series, row.labels)) add(countKey(row.as, ...labels), count);
  }
  return totals;
}

/** A histogram has one count per bucket, named by its bounds in seconds, since empty buckets are left out later. */
function countsOf(
  family: FamilySnapshot,
  { labelValues, values }: SeriesSnapshot,
  labels: readonly string[],
): readonly (readonly [readonly string[], number])[] {
  if (family.type === 'histogram')
    return [...family.buckets, Number.POSITIVE_INFINITY].map((upper, index) => [
      [String(family.buckets[index - 1] ?? 0), String(upper)],
      values[index] ?? 0,
    ]);
  const kept = labels.map((label) => labelValues[family.labelNames.indexOf(label)] ?? '');
  return [[kept, values[0] ?? 0]];
}

export function countsBetween(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): ProcessSample['counts'] {
  const grown = [...after].map(([key, total]) => [key, total - (before.get(key) ?? 0)] as const);
  return Object.fromEntries(grown.filter(([, count]) => count > 0));
}

/** The gauges that the process has. */
export function gaugesOf(snapshot: MetricsSnapshot): ProcessSample['gauges'] {
  const found = Object.entries(GAUGES).flatMap(([name, { family, labelValue }]) => {
    const series = snapshot.find((one) => one.name === family)?.series;
    const value = series?.find(({ labelValues }) => (labelValues[0] ?? null) === labelValue)?.values[0];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
}
