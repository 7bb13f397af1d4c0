// Reports usage by hour or day for charts: in total, for each of the groups that cost most, and for the other groups
// together.

import { bucketsOf } from '../../../domain/reports/time-buckets.ts';
import { type TokenSum, tokenSum } from '../../../domain/usage/token-sum.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import { type FigureRow, quantileOf } from './metrics.ts';
import {
  OF_ALL,
  OF_PLACE,
  OF_PLACE_AND_START,
  OF_START,
  REMAINDER,
  type SeriesKey,
  type SeriesLimits,
  type SeriesParams,
  type SeriesRow,
  selectSeriesRows,
  seriesKeyOf,
} from './series-rows.ts';

export interface Figures {
  readonly requests: number;
  readonly errors: number;
  readonly tokens_prompt: TokenSum;
  readonly tokens_completion: TokenSum;
  /** Dollars. */
  readonly cost: string;
  readonly p50_latency_ms: number | null;
  readonly p95_latency_ms: number | null;
  readonly p50_ttft_ms: number | null;
  readonly p95_ttft_ms: number | null;
}

export interface FigureSeries extends Figures {
  /** The buckets that have requests, first to last. */
  readonly series: readonly ({ readonly bucket: string } & Figures)[];
}

export interface UsageSeries {
  /** Starts of all buckets, first to last. */
  readonly buckets: readonly string[];
  readonly totals: FigureSeries;
  readonly groups: readonly (SeriesKey & FigureSeries)[];
  /** All groups that are not in `groups`, and their number; null: there are no others. */
  readonly remainder: ({ readonly groups: number } & FigureSeries) | null;
}

/** The most points of an answer, over all of its series. More could not be drawn. */
const POINTS_MAX = 30_000;

/** null: more points than POINTS_MAX. */
export async function usageSeries(
  client: ClickHouseReader,
  params: SeriesParams,
  limits?: SeriesLimits,
): Promise<UsageSeries | null> {
  const buckets = bucketsOf(params.window);
  const { groupBy, top } = params;
  if (buckets.length * (groupBy === null ? 1 : top + 2) > POINTS_MAX) return null;
  const starts = new Map(buckets.map(({ startMs, start }) => [startMs / 1000, start]));
  const { ofAll, ofGroups } = await selectSeriesRows(client, params, [...starts.keys()], limits);
  const answer = { buckets: [...starts.values()], totals: seriesOf(ofAll, [OF_ALL, OF_START], starts) };
  if (groupBy === null) return { ...answer, groups: [], remainder: null };
  const atPlace = (place: number): FigureSeries =>
    seriesOf(
      ofGroups.filter((row) => row.place === place),
      [OF_PLACE, OF_PLACE_AND_START],
      starts,
    );
  const shown = ofGroups
    .filter(({ grouped_by, place }) => grouped_by === OF_PLACE && place !== REMAINDER)
    .toSorted((one, other) => one.place - other.place);
  const others = Math.max(0, ...ofGroups.map(({ groups }) => groups)) - shown.length;
  return {
    ...answer,
    groups: shown.map(({ place, value }) => ({ ...seriesKeyOf(groupBy, value), ...atPlace(place) })),
    remainder: others === 0 ? null : { groups: others, ...atPlace(REMAINDER) },
  };
}

/** Makes a series of the row that is grouped by `inAll` and of the rows that are grouped by `ofBuckets`. */
function seriesOf(
  rows: readonly SeriesRow[],
  [inAll, ofBuckets]: readonly [number, number],
  starts: ReadonlyMap<number, string>,
): FigureSeries {
  return {
    ...figuresOf(rows.find(({ grouped_by }) => grouped_by === inAll) ?? NO_FIGURES),
    series: rows
      .filter(({ grouped_by }) => grouped_by === ofBuckets)
      .toSorted((one, other) => one.at_start - other.at_start)
      .map((row) => ({ bucket: starts.get(row.at_start) ?? '', ...figuresOf(row) })),
  };
}

const NO_FIGURES: FigureRow = {
  m_requests: 0,
  m_spend: '0',
  m_errors: 0,
  m_prompt: '0',
  m_completion: '0',
  m_latency: [0, 0],
  m_latency_known: 0,
  m_ttft: [0, 0],
  m_ttft_known: 0,
};

function figuresOf(row: FigureRow): Figures {
  return {
    requests: row.m_requests,
    errors: row.m_errors,
    tokens_prompt: tokenSum(row.m_prompt),
    tokens_completion: tokenSum(row.m_completion),
    cost: row.m_spend,
    p50_latency_ms: quantileOf(row.m_latency, 0, row.m_latency_known),
    p95_latency_ms: quantileOf(row.m_latency, 1, row.m_latency_known),
    p50_ttft_ms: quantileOf(row.m_ttft, 0, row.m_ttft_known),
    p95_ttft_ms: quantileOf(row.m_ttft, 1, row.m_ttft_known),
  };
}
