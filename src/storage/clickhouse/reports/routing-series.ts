// Selects the series of the routing report (spec 2.5), by bucket and tier and by bucket alone, and counts all requests,
// routed or not.

import { formatUsdString } from '../../../domain/money/format.ts';
import { bucketsOf } from '../../../domain/reports/time-buckets.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import { picoOf } from '../decimal-text.ts';
import { type Cells, checkedCells } from './cells.ts';
import type { MergedRow } from './metric-columns.ts';
import { IS_ERROR, IS_NOT_REFUSED, SERIES_COLUMNS, type SeriesRow, SPEND } from './metrics.ts';
import { conditionParameters, type ReportParams } from './report-params.ts';
import { compareText } from './routing-conversations.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

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

interface BucketKeys {
  readonly is_routed: number;
  /** In epoch seconds; 0 where the request was not routed. */
  readonly bucket_start: number;
  readonly tier_name: string;
}

type BucketRow = BucketKeys & SeriesRow;

const REQUESTS = SERIES_COLUMNS.checkedState('requests');

/** Cells by quarter of an hour. The buckets of all time zones consist of whole quarters of an hour. */
export const SERIES_CELLS = seriesCells('toUInt32(intDiv(toUnixTimestamp(admitted_at), 900) * 900)');

/** Cells that are made from facts for one report. They are by the report's own buckets, so that there are fewer. */
const READ_CELLS = seriesCells(
  'if(routed, roundDown(toUnixTimestamp(admitted_at), {starts:Array(UInt32)}), toUInt32(0))',
);

function seriesCells(quarter: string): Cells {
  return {
    table: 'sealed_series',
    counted: IS_NOT_REFUSED,
    keys: [
      ['is_routed', 'toUInt8(routed)'],
      ['quarter', quarter],
      ['tier', 'route_tier'],
    ],
    values: SERIES_COLUMNS.states,
    sums: [
      [`countIf(${IS_NOT_REFUSED})`, `sum(${REQUESTS})`],
      [`sumIf(ifNull(${SPEND}, 0), ${IS_NOT_REFUSED})`, `sum(${SERIES_COLUMNS.checkedState('spend')})`],
      // These two check the status keys that the cells of sealed days have besides their own keys (cells.ts).
      [`countIf(${IS_NOT_REFUSED} AND (${IS_ERROR}))`, `sumIf(${REQUESTS}, of_error = 1)`],
      [`sumIf(toUInt64(ifNull(status, 0)), ${IS_NOT_REFUSED})`, `sum(${REQUESTS} * of_status)`],
    ],
  };
}

export async function selectRoutingSeries(client: ClickHouseReader, params: ReportParams): Promise<RoutingSeries> {
  const buckets = new Map(bucketsOf(params.window).map(({ startMs, start }) => [startMs / 1000, start]));
  const merged = await selectReport<BucketKeys & MergedRow>(
    client,
    `SELECT is_routed, if(is_routed = 1, roundDown(quarter, {starts:Array(UInt32)}), 0) AS bucket_start,
       toString(tier) AS tier_name,
       ${SERIES_COLUMNS.checkedMerged()}
     FROM (${checkedCells(READ_CELLS, params)})
     GROUP BY is_routed, bucket_start, tier_name
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(params), starts: [...buckets.keys()] },
  );
  const rows = merged.map((row) => SERIES_COLUMNS.rowOf(row));
  const routed = rows.filter((row) => row.is_routed === 1);
  const points = pointsOf(routed, buckets, ({ tier_name }) => tier_name);
  return {
    allRequests: requestsOf(rows),
    routedRequests: requestsOf(routed),
    series: points.map(({ tier, ...point }) => ({ ...showPoint(point), tier })),
    totals: pointsOf(routed, buckets, () => '').map(showPoint),
  };
}

function requestsOf(rows: readonly BucketRow[]): number {
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

/** Adds up rows with the same bucket and tier. Buckets without requests are left out. */
function pointsOf(
  rows: readonly BucketRow[],
  buckets: ReadonlyMap<number, string>,
  tierOf: (row: BucketRow) => string,
): Point[] {
  const points = new Map<string, Point>();
  for (const row of rows) {
    const tier = tierOf(row);
    const key = `${row.bucket_start} ${tier}`;
    let point = points.get(key);
    if (point === undefined) {
      const bucket = buckets.get(row.bucket_start) ?? '';
      const startMs = row.bucket_start * 1000;
      point = { startMs, bucket, tier, requests: 0, spend: 0n, baselineCost: 0n, baselineSpend: 0n };
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
