// Usage by hour or day, in all and by the groups that cost most, with the rest summed up: what charts are drawn of.

import type { OwnerIds, SeriesDimension } from '../../../domain/reports/owners.ts';
import { bucketsOf } from '../../../domain/reports/time-buckets.ts';
import { type TokenSum, tokenSum } from '../../../domain/usage/token-sum.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import type { MergedRow } from './metric-columns.ts';
import { EVERY_VALUE_MAX, type FigureRow, figureColumns, quantileOf, SPEND } from './metrics.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';
import { checkedColumns } from './sql-column.ts';

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

/** What a group's requests have in common; null: they have none. */
export type SeriesKey = OwnerIds & {
  readonly model?: string;
  readonly provider?: string;
  readonly tag?: string | null;
  readonly status?: number | null;
};

export interface UsageSeries {
  /** Starts of all buckets, first to last. */
  readonly buckets: readonly string[];
  readonly totals: FigureSeries;
  readonly groups: readonly (SeriesKey & FigureSeries)[];
  /** `groups`: how many there are. */
  readonly remainder: ({ readonly groups: number } & FigureSeries) | null;
}

export interface SeriesParams extends ReportParams {
  readonly groupBy: SeriesDimension | null;
  /** The number of groups that are shown one by one. */
  readonly top: number;
}

/** Buckets of an answer, over all of its series: more are no picture. */
const POINTS_MAX = 30_000;

interface GroupColumn {
  /** Of a fact; what is not there is `none`. */
  readonly value: string;
  readonly type: 'String' | 'UUID' | 'UInt16';
  readonly none: string;
  readonly member: keyof SeriesKey;
  /** A fact has several: the value is an array of them. */
  readonly isMany?: true;
}

const NO_ID = '00000000-0000-0000-0000-000000000000';
const ofOwner = (member: keyof OwnerIds): GroupColumn => ({
  value: `ifNull(${member}, toUUID('${NO_ID}'))`,
  type: 'UUID',
  none: NO_ID,
  member,
});
const ofText = (member: 'model' | 'provider'): GroupColumn => ({ value: member, type: 'String', none: '', member });

const GROUP_COLUMNS: Readonly<Record<SeriesDimension, GroupColumn>> = {
  model: ofText('model'),
  provider: ofText('provider'),
  organization: ofOwner('organization_id'),
  team: ofOwner('team_id'),
  user: ofOwner('user_id'),
  api_key: ofOwner('api_key_id'),
  tag: { value: "if(empty(tags), [''], arrayDistinct(tags))", type: 'String', none: '', member: 'tag', isMany: true },
  status: { value: 'ifNull(status, 0)', type: 'UInt16', none: '0', member: 'status' },
};

/** null: more points than POINTS_MAX. */
export async function usageSeries(client: ClickHouseReader, params: SeriesParams): Promise<UsageSeries | null> {
  const buckets = bucketsOf(params.window);
  const { groupBy, top } = params;
  if (buckets.length * (groupBy === null ? 1 : top + 2) > POINTS_MAX) return null;
  const starts = new Map(buckets.map(({ startMs, start }) => [startMs / 1000, start]));
  const column = groupBy === null ? null : GROUP_COLUMNS[groupBy];
  const ranked = await selectRanked(client, params, column);
  const read = (grouped: GroupColumn | null): Promise<SeriesRow[]> =>
    selectFigures(client, params, { column: grouped, ranked, starts: [...starts.keys()] });
  const rows = await read(column);
  // A request with two tags is in two groups, and counts once in all.
  const totals = seriesAt(column?.isMany === true ? await read(null) : rows, OF_ALL, starts);
  if (column === null) return { buckets: [...starts.values()], totals, groups: [], remainder: null };
  const others = ranked.groups - ranked.values.length;
  return {
    buckets: [...starts.values()],
    totals,
    groups: ranked.values.map((value, index) => ({ ...keyOf(column, value), ...seriesAt(rows, index + 1, starts) })),
    remainder: others === 0 ? null : { groups: others, ...seriesAt(rows, REMAINDER, starts) },
  };
}

interface Ranked {
  /** The values of the groups that are shown one by one, in their order. */
  readonly values: readonly string[];
  /** The number of all groups. */
  readonly groups: number;
  readonly requests: number;
}

/** The groups that cost most; among those that cost the same, the ones with most requests, then by their values. */
async function selectRanked(
  client: ClickHouseReader,
  params: SeriesParams,
  column: GroupColumn | null,
): Promise<Ranked> {
  const rows = await selectReport<{ value: string; groups: number; requests: number }>(
    client,
    `SELECT value, count() OVER () AS groups, sum(group_requests) OVER () AS requests
     FROM (
       SELECT ${checkedValue(column)} AS group_value, toString(group_value) AS value, count() AS group_requests,
         sum(ifNull(${SPEND}, 0)) AS group_cost
       FROM request_facts FINAL
       WHERE ${checkedConditions(params)}
       GROUP BY group_value
     )
     ORDER BY group_cost DESC, group_requests DESC, value
     LIMIT {top:UInt32}
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(params), top: params.top },
  );
  return { values: rows.map(({ value }) => value), groups: rows[0]?.groups ?? 0, requests: rows[0]?.requests ?? 0 };
}

/** Groups by their place in the ranking, from 1. */
const REMAINDER = 0;
const OF_ALL = null;

/** The bits of `grouped_by`, each set for a key by which the row is not grouped. */
const NO_PLACE = 0b10;
const NO_START = 0b01;

interface SeriesKeys {
  readonly place: number;
  readonly at_start: number;
  readonly grouped_by: number;
}

type SeriesRow = SeriesKeys & FigureRow;

async function selectFigures(
  client: ClickHouseReader,
  params: SeriesParams,
  asked: { readonly column: GroupColumn | null; readonly ranked: Ranked; readonly starts: readonly number[] },
): Promise<SeriesRow[]> {
  const { column, ranked, starts } = asked;
  const figures = figureColumns(ranked.requests <= EVERY_VALUE_MAX ? 'every value' : 'different values');
  const rows = await selectReport<SeriesKeys & MergedRow>(
    client,
    `SELECT place, at_start, grouping(place, at_start) AS grouped_by, ${figures.checkedMerged()}
     FROM (
       SELECT ${checkedPlace(column)} AS place,
         roundDown(toUnixTimestamp(admitted_at), {starts:Array(UInt32)}) AS at_start,
         ${checkedColumns(figures.states)}
       FROM request_facts FINAL
       WHERE ${checkedConditions(params)}
       GROUP BY place, at_start
     )
     GROUP BY GROUPING SETS ((), (at_start), (place), (place, at_start))
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(params), starts, ...(column === null ? {} : { ranked: valuesOf(column, ranked.values) }) },
  );
  return rows.map((row) => figures.rowOf(row));
}

function valuesOf({ type }: GroupColumn, values: readonly string[]): readonly (string | number)[] {
  return type === 'UInt16' ? values.map(Number) : values;
}

function checkedValue(column: GroupColumn | null): string {
  if (column === null) return "''";
  return column.isMany === true ? `arrayJoin(${column.value})` : column.value;
}

function checkedPlace(column: GroupColumn | null): string {
  if (column === null) return 'toUInt8(0)';
  const ranked = `{ranked:Array(${column.type})}`;
  return column.isMany === true
    ? `arrayJoin(arrayDistinct(arrayMap(one -> toUInt8(indexOf(${ranked}, one)), ${column.value})))`
    : `toUInt8(indexOf(${ranked}, ${column.value}))`;
}

function seriesAt(rows: readonly SeriesRow[], place: number | null, starts: ReadonlyMap<number, string>): FigureSeries {
  const ofPlace = rows.filter((row) =>
    place === OF_ALL ? (row.grouped_by & NO_PLACE) !== 0 : (row.grouped_by & NO_PLACE) === 0 && row.place === place,
  );
  const whole = ofPlace.find((row) => (row.grouped_by & NO_START) !== 0);
  return {
    ...figuresOf(whole ?? NO_FIGURES),
    series: ofPlace
      .filter((row) => (row.grouped_by & NO_START) === 0)
      .toSorted((a, b) => a.at_start - b.at_start)
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

function keyOf({ member, none, type }: GroupColumn, value: string): SeriesKey {
  if (value === none && type !== 'String') return { [member]: null };
  if (member === 'tag' && value === none) return { tag: null };
  return { [member]: type === 'UInt16' ? Number(value) : value };
}
