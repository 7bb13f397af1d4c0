// What one process counted between two beats and how it stands at the second, taken out of its metrics by one table.

import type { FamilySnapshot, MetricsSnapshot, SeriesSnapshot } from '../../platform/metrics.ts';

/** Between two beats of a process. */
export const BEAT_INTERVAL_MS = 5_000;

export interface ProcessSample {
  /** What happened, by key (`countKey`); what did not happen is left out. */
  readonly counts: Readonly<Record<string, number>>;
  readonly gauges: Readonly<Partial<Record<GaugeName, number>>>;
}

/** A name, and the values of the labels that are kept: JSON, which is the same text for the same values. */
export function countKey(...parts: readonly string[]): string {
  return JSON.stringify(parts);
}

/** Metrics that grow: their name here, and the labels of which figures are told apart. Other labels are added up. */
const COUNTED = {
  tollgate_requests_total: { as: 'requests', labels: ['status_class'] },
  tollgate_tokens_total: { as: 'tokens', labels: ['direction'] },
  tollgate_refusals_total: { as: 'refusals', labels: ['code'] },
  tollgate_upstream_errors_total: { as: 'failed_calls', labels: ['provider', 'kind'] },
  tollgate_request_duration_seconds: { as: 'latency', labels: [] },
  tollgate_ttft_seconds: { as: 'first_byte', labels: [] },
} as const;

/** How a process stands: the metric, and which of its series. */
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

/** All that was ever counted, by key. */
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

/** Of a histogram each bucket by its bounds in seconds, since a bucket that is empty is left out. */
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

/** Those that the process has. */
export function gaugesOf(snapshot: MetricsSnapshot): ProcessSample['gauges'] {
  const found = Object.entries(GAUGES).flatMap(([name, { family, labelValue }]) => {
    const series = snapshot.find((one) => one.name === family)?.series;
    const value = series?.find(({ labelValues }) => (labelValues[0] ?? null) === labelValue)?.values[0];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
}
