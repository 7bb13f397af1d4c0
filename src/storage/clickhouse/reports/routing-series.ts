// The series of the routing report (spec 2.5) by bucket and tier and by bucket alone, and the number of all requests,
// routed or not.

import { formatUsdString } from '../../../domain/money/format.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import { picoOf } from '../decimal-text.ts';
import { SERIES_COLUMNS, type SeriesRow } from './metrics.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { compareText } from './routing-conversations.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';
import { slotSeconds, TimeBuckets } from './time-buckets.ts';

/** All tiers together. */
export interface SeriesTotal {
  /** Start of the hour or day, RFC 3339 in the window's time zone. */
  readonly bucket: string;
  readonly requests: number;
  readonly spend_usd: string;
  readonly baseline_cost_usd: string;
  readonly baseline_spend_usd: string;
}

export interface SeriesPoint extends SeriesTotal {
  readonly tier: string;
}

export interface RoutingSeries {
  readonly allRequests: number;
  readonly routedRequests: number;
  readonly series: readonly SeriesPoint[];
  readonly totals: readonly SeriesTotal[];
}

interface SlotRow extends SeriesRow {
  readonly is_routed: number;
  readonly slot: number;
  readonly tier: string;
}

export async function selectRoutingSeries(client: ClickHouseReader, params: ReportParams): Promise<RoutingSeries> {
  const rows = await selectReport<SlotRow>(
    client,
    `SELECT toUInt8(routed) AS is_routed, if(routed, intDiv(toUnixTimestamp(admitted_at), {slot_seconds:UInt32}),
      0) AS slot, toString(route_tier) AS tier,
       ${SERIES_COLUMNS}
     FROM request_facts FINAL
     WHERE ${checkedConditions(params)}
     GROUP BY is_routed, slot, tier
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(params), slot_seconds: slotSeconds(params.window) },
  );
  const routed = rows.filter((row) => row.is_routed === 1);
  const points = pointsOf(routed, params, ({ tier }) => tier);
  return {
    allRequests: requestsOf(rows),
    routedRequests: requestsOf(routed),
    series: points.map(({ tier, ...point }) => ({ ...showPoint(point), tier })),
    totals: pointsOf(routed, params, () => '').map(showPoint),
  };
}

function requestsOf(rows: readonly SlotRow[]): number {
  return rows.reduce((sum, row) => sum + row.m_requests, 0);
}

interface Point {
  readonly startMs: number;
  readonly bucket: string;
  readonly tier: string;
  requests: number;
  spend: bigint;
  baselineCost: bigint;
  baselineSpend: bigint;
}

/** Adds slots up to buckets; buckets without requests are left out. */
function pointsOf(rows: readonly SlotRow[], { window }: ReportParams, tierOf: (row: SlotRow) => string): Point[] {
  const buckets = new TimeBuckets(window);
  const slotMs = slotSeconds(window) * 1000;
  const points = new Map<string, Point>();
  for (const row of rows) {
    const { startMs, start } = buckets.bucketAt(row.slot * slotMs);
    const tier = tierOf(row);
    const key = `${startMs} ${tier}`;
    let point = points.get(key);
    if (point === undefined) {
      point = { startMs, bucket: start, tier, requests: 0, spend: 0n, baselineCost: 0n, baselineSpend: 0n };
      points.set(key, point);
    }
    point.requests += row.m_requests;
    point.spend += picoOf(row.m_spend);
    point.baselineCost += picoOf(row.m_baseline_cost);
    point.baselineSpend += picoOf(row.m_baseline_spend);
  }
  return [...points.values()].sort((a, b) => a.startMs - b.startMs || compareText(a.tier, b.tier));
}

function showPoint({ bucket, requests, spend, baselineCost, baselineSpend }: Omit<Point, 'tier'>): SeriesTotal {
  return {
    bucket,
    requests,
    spend_usd: formatUsdString(spend),
    baseline_cost_usd: formatUsdString(baselineCost),
    baseline_spend_usd: formatUsdString(baselineSpend),
  };
}
