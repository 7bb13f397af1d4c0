// Selects the rows of the series of usage: figures of all facts and of each group, by bucket and for the whole window.
// Each group has a place: its rank by cost among the groups that are shown, or 0.
//
// The first statement counts values and groups without `FINAL`, which is the slow part of a statement. If both are few,
// one further statement ranks the groups while it reads the facts. It makes a row for each group and bucket, with the
// states of its quantiles, before it knows which groups are shown. Otherwise the facts are read twice, for the ranking
// and for the figures; for groups by tag a third time, for the figures of all requests.

import type { OwnerIds, SeriesDimension } from '../../../domain/reports/owners.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import type { MergedRow, MetricColumns } from './metric-columns.ts';
import { EVERY_VALUE_MAX, type FigureRow, figureColumns, SPEND } from './metrics.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';
import { checkedColumns, checkedNames, type SqlColumn } from './sql-column.ts';

export interface SeriesParams extends ReportParams {
  readonly groupBy: SeriesDimension | null;
  /** The most groups that are shown one by one. */
  readonly top: number;
}

/** The value that a group's requests have in common; null: the requests have no such value. */
export type SeriesKey = OwnerIds & {
  readonly model?: string;
  readonly provider?: string;
  readonly tag?: string | null;
  readonly status?: number | null;
};

interface GroupColumn {
  /** SQL of a fact's value; `none` where the fact has no value. */
  readonly value: string;
  readonly type: 'String' | 'UUID' | 'UInt16';
  readonly none: string;
  readonly member: keyof SeriesKey;
  /** Set if `value` is an array of values: SQL of the most values that a fact has. */
  readonly many?: string;
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
  tag: {
    value: "if(empty(tags), [''], arrayDistinct(tags))",
    many: 'greatest(1, length(tags))',
    type: 'String',
    none: '',
    member: 'tag',
  },
  status: { value: 'ifNull(status, 0)', type: 'UInt16', none: '0', member: 'status' },
};

/** The place of all groups that are not shown one by one. Groups that are shown have places from 1. */
export const REMAINDER = 0;

/** Values of `grouped_by`. A bit is set for each key (place, start) by which the row is not grouped. */
export const OF_PLACE_AND_START = 0b00;
export const OF_PLACE = 0b01;
export const OF_START = 0b10;
export const OF_ALL = 0b11;

interface RowKeys {
  readonly place: number;
  /** Epoch seconds. */
  readonly at_start: number;
  readonly grouped_by: number;
  /** The value of the group at `place`, as text; meaningless in other rows. */
  readonly value: string;
  /** The maximum over all rows is the number of groups. */
  readonly groups: number;
}

export type SeriesRow = RowKeys & FigureRow;

export interface SeriesLimits {
  /** Up to this many values, a statement keeps every latency (metrics.ts). */
  readonly everyValueMax: number;
  /** The most rows, one for each group and bucket, of a statement that ranks groups while it reads facts. */
  readonly rankedRowsMax: number;
}

const LIMITS: SeriesLimits = { everyValueMax: EVERY_VALUE_MAX, rankedRowsMax: 20_000 };
/** The most groups that are ranked while facts are read, which is the most that `uniqUpTo` can count. */
const RANKED_GROUPS_MAX = 100;

/** `starts`: the starts of the buckets in epoch seconds. `ofAll` has the rows of all groups together. */
export async function selectSeriesRows(
  client: ClickHouseReader,
  params: SeriesParams,
  starts: readonly number[],
  { everyValueMax, rankedRowsMax }: SeriesLimits = LIMITS,
): Promise<{ readonly ofAll: readonly SeriesRow[]; readonly ofGroups: readonly SeriesRow[] }> {
  const column = params.groupBy === null ? null : GROUP_COLUMNS[params.groupBy];
  const { values, groups } = await selectSize(client, params, column);
  const keepsEveryValue = values <= everyValueMax;
  const figures = figureColumns(keepsEveryValue ? 'every value' : 'different values');
  const context = { client, params, starts, figures };
  if (column === null) return { ofAll: await selectUngrouped(context), ofGroups: [] };
  // Ranking sorts rows. Sorting rows that keep different values needs more memory than the embedded engine has.
  if (keepsEveryValue && groups <= RANKED_GROUPS_MAX && groups * starts.length <= rankedRowsMax) {
    const rows = await selectRanked(context, column);
    return { ofAll: rows, ofGroups: rows };
  }
  const ofGroups = await selectListed(context, column, await selectRanking(client, params, column));
  // A request with two tags is in two groups, and counts once in all and once in the remainder.
  return { ofAll: column.many !== undefined ? await selectUngrouped(context) : ofGroups, ofGroups };
}

/** The key of a group, from the text of its value. */
export function seriesKeyOf(groupBy: SeriesDimension, value: string): SeriesKey {
  const { member, none, type } = GROUP_COLUMNS[groupBy];
  if (value === none && type !== 'String') return { [member]: null };
  if (member === 'tag' && value === none) return { tag: null };
  return { [member]: type === 'UInt16' ? Number(value) : value };
}

interface Size {
  /** The most values that a quantile can have. It includes versions of facts that the table will replace later. */
  readonly values: number;
  /** The number of groups; above `RANKED_GROUPS_MAX`: more than that, or not counted. */
  readonly groups: number;
}

async function selectSize(client: ClickHouseReader, params: SeriesParams, column: GroupColumn | null): Promise<Size> {
  const [size] = await selectReport<Size>(
    client,
    `SELECT ${checkedColumns(sizeOf(column))}
     FROM request_facts
     WHERE ${checkedConditions(params)}
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
  return size ?? { values: 0, groups: 0 };
}

function sizeOf(column: GroupColumn | null): readonly SqlColumn[] {
  const uncounted = ['groups', `${RANKED_GROUPS_MAX + 1}`] as const;
  if (column === null) return [['values', 'count()'], uncounted];
  const { value, many } = column;
  if (many !== undefined) return [['values', `sum(${many})`], uncounted];
  return [
    ['values', 'count()'],
    ['groups', `uniqUpTo(${RANKED_GROUPS_MAX})(${value})`],
  ];
}

interface SeriesContext {
  readonly client: ClickHouseReader;
  readonly params: SeriesParams;
  readonly starts: readonly number[];
  readonly figures: MetricColumns<FigureRow>;
}

/** Groups with the highest cost first; of equal cost, those with most requests; then by value. */
const RANKING = 'group_cost DESC, group_requests DESC, value';

async function selectRanked(context: SeriesContext, column: GroupColumn): Promise<SeriesRow[]> {
  const { params, figures } = context;
  return selectPlaced(
    context,
    () => `SELECT *, if(nth <= {top:UInt32}, nth, ${REMAINDER}) AS place
     FROM (
       SELECT *, dense_rank() OVER (ORDER BY ${RANKING}) AS nth
       FROM (
         SELECT *, toString(group_value) AS value,
           sum(${figures.checkedState('spend')}) OVER (PARTITION BY group_value) AS group_cost,
           sum(${figures.checkedState('requests')}) OVER (PARTITION BY group_value) AS group_requests
         FROM (${checkedFacts(context, ['group_value', column.value])})
       )
     )`,
    { top: params.top },
  );
}

interface Ranking {
  /** The values of the groups that are shown one by one, in their order. */
  readonly values: readonly string[];
  /** The number of all groups. */
  readonly groups: number;
}

async function selectRanking(client: ClickHouseReader, params: SeriesParams, column: GroupColumn): Promise<Ranking> {
  const rows = await selectReport<{ value: string; groups: number }>(
    client,
    `SELECT value, count() OVER () AS groups
     FROM (
       SELECT ${checkedEachValue(column)} AS group_value, toString(group_value) AS value, count() AS group_requests,
         sum(ifNull(${SPEND}, 0)) AS group_cost
       FROM request_facts FINAL
       WHERE ${checkedConditions(params)}
       GROUP BY group_value
     )
     ORDER BY ${RANKING}
     LIMIT {top:UInt32}
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(params), top: params.top },
  );
  return { values: rows.map(({ value }) => value), groups: rows[0]?.groups ?? 0 };
}

async function selectListed(
  context: SeriesContext,
  column: GroupColumn,
  { values, groups }: Ranking,
): Promise<SeriesRow[]> {
  return selectPlaced(
    context,
    () => `SELECT *, {groups:UInt32} AS nth, {names:Array(String)}[place] AS value
     FROM (${checkedFacts(context, ['place', placeOf(column)])})`,
    { groups, names: values, ranked: column.type === 'UInt16' ? values.map(Number) : values },
  );
}

async function selectUngrouped(context: SeriesContext): Promise<SeriesRow[]> {
  return selectPlaced(
    context,
    () => `SELECT *, 0 AS nth, '' AS value FROM (${checkedFacts(context, ['place', ALL_AT_ONE_PLACE])})`,
    {},
  );
}

const ALL_AT_ONE_PLACE = `toUInt8(${REMAINDER})`;

/** Merges rows by place and bucket. `nth` is a group's rank or the number of groups; its maximum is that number. */
async function selectPlaced(
  { client, params, starts, figures }: SeriesContext,
  checkedPlaced: () => string,
  parameters: Readonly<Record<string, unknown>>,
): Promise<SeriesRow[]> {
  const rows = await selectReport<RowKeys & MergedRow>(
    client,
    `SELECT place, at_start, grouping(place, at_start) AS grouped_by, any(value) AS value, max(nth) AS groups,
       ${figures.checkedMerged()}
     FROM (${checkedPlaced()})
     GROUP BY GROUPING SETS ((), (at_start), (place), (place, at_start))
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(params), ...parameters, starts },
  );
  return rows.map((row) => figures.rowOf(row));
}

/** A statement that selects one row for each key and bucket, with the states of the figures. */
function checkedFacts({ params, figures }: SeriesContext, key: SqlColumn): string {
  const keys: readonly SqlColumn[] = [
    key,
    ['at_start', 'roundDown(toUnixTimestamp(admitted_at), {starts:Array(UInt32)})'],
  ];
  return `SELECT ${checkedColumns([...keys, ...figures.states])}
    FROM request_facts FINAL
    WHERE ${checkedConditions(params)}
    GROUP BY ${checkedNames(keys)}`;
}

function checkedEachValue({ value, many }: GroupColumn): string {
  return many !== undefined ? `arrayJoin(${value})` : value;
}

function placeOf({ value, type, many }: GroupColumn): string {
  const ranked = `{ranked:Array(${type})}`;
  return many !== undefined
    ? `arrayJoin(arrayDistinct(arrayMap(one -> toUInt8(indexOf(${ranked}, one)), ${value})))`
    : `toUInt8(indexOf(${ranked}, ${value}))`;
}
