// Computes what the series of usage must say from the facts in plain TypeScript, independent of the SQL.

import type { SeriesDimension } from '../../src/domain/reports/owners.ts';
import type { RequestFact } from '../../src/storage/clickhouse/facts.ts';
import type { ReportWindow } from '../../src/storage/clickhouse/reports/report-params.ts';
import type { SeriesKey, SeriesParams } from '../../src/storage/clickhouse/reports/series-rows.ts';
import type { FigureSeries, Figures, UsageSeries } from '../../src/storage/clickhouse/reports/usage-series.ts';
import {
  countWhere,
  ExpectedBuckets,
  grouped,
  isError,
  latencyOf,
  matching,
  quantile,
  spendOf,
  sumOf,
  usageOf,
} from './report-oracle.ts';

type Value = string | number | null;

const VALUES: Readonly<Record<SeriesDimension, readonly [keyof SeriesKey, (fact: RequestFact) => readonly Value[]]>> = {
  model: ['model', ({ model }) => [model]],
  provider: ['provider', ({ provider }) => [provider]],
  organization: ['organization_id', ({ organizationId }) => [organizationId]],
  team: ['team_id', ({ teamId }) => [teamId]],
  user: ['user_id', ({ userId }) => [userId]],
  api_key: ['api_key_id', ({ apiKeyId }) => [apiKeyId]],
  tag: ['tag', ({ tags }) => (tags.length === 0 ? [null] : tags)],
  status: ['status', ({ status }) => [status]],
};

export function expectedSeries(facts: readonly RequestFact[], params: SeriesParams): UsageSeries {
  const found = matching(facts, params);
  const { window, groupBy, top } = params;
  const seriesOf = (some: readonly RequestFact[]): FigureSeries => ({
    ...figuresOf(some),
    series: grouped(some, ({ admittedAtMs }) => bucketAt(window, admittedAtMs))
      .sort(([a], [b]) => Date.parse(a) - Date.parse(b))
      .map(([bucket, of]) => ({ bucket, ...figuresOf(of) })),
  });
  const buckets = [...allBuckets(window)];
  if (groupBy === null) return { buckets, totals: seriesOf(found), groups: [], remainder: null };
  const [member, read] = VALUES[groupBy];
  const values = new Map<string, Value>(found.flatMap(read).map((value) => [String(value ?? ''), value]));
  const having = (names: readonly string[]): RequestFact[] =>
    found.filter((fact) => read(fact).some((value) => names.includes(String(value ?? ''))));
  const cost = (name: string): bigint => sumOf(having([name]), spendOf);
  const ranked = [...values.keys()]
    .map((name) => ({ name, cost: cost(name), requests: having([name]).length }))
    .sort((a, b) => Number(b.cost - a.cost) || b.requests - a.requests || (rank(groupBy, a.name, b.name) ? -1 : 1))
    .map(({ name }) => name);
  const others = ranked.slice(top);
  return {
    buckets,
    totals: seriesOf(found),
    groups: ranked
      .slice(0, top)
      .map((name) => ({ [member]: values.get(name) ?? null, ...seriesOf(having([name])) }) as SeriesKey & FigureSeries),
    remainder: others.length === 0 ? null : { groups: others.length, ...seriesOf(having(others)) },
  };
}

const NO_OWNER = '00000000-0000-0000-0000-000000000000';
/** The value that replaces a missing one when groups tie; the other dimensions use `NO_OWNER`. */
const NONE: Partial<Record<SeriesDimension, string>> = { model: '', provider: '', tag: '', status: '0' };

/** Groups with the same cost and number of requests are ordered by their text. */
function rank(groupBy: SeriesDimension, one: string, other: string): boolean {
  const none = NONE[groupBy] ?? NO_OWNER;
  return (one === '' ? none : one) < (other === '' ? none : other);
}

function bucketAt({ timeZone, granularity }: ReportWindow, atMs: number): string {
  return ExpectedBuckets.of(timeZone, granularity).at(atMs);
}

/** Steps of a quarter of an hour find every bucket, because none begins in between; steps of a minute would be slow. */
function allBuckets(window: ReportWindow): Set<string> {
  const names = new Set<string>();
  for (let atMs = window.fromMs; atMs < window.untilMs; atMs += 900_000) names.add(bucketAt(window, atMs));
  return names.add(bucketAt(window, window.untilMs - 1));
}

function figuresOf(facts: readonly RequestFact[]): Figures {
  const latencies = facts.map(latencyOf);
  const ttfts = facts.map(({ ttftMs }) => ttftMs);
  return {
    ...usageOf(facts),
    errors: countWhere(facts, isError),
    p50_latency_ms: quantile(latencies, 0.5),
    p95_latency_ms: quantile(latencies, 0.95),
    p50_ttft_ms: quantile(ttfts, 0.5),
    p95_ttft_ms: quantile(ttfts, 0.95),
  };
}
