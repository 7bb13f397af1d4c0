// The rows that the series of usage are made of: a question's figures in all and by bucket, of all of its facts and of
// each group, by the group's place among those that cost most.
//
// A few groups are ranked while their facts are read; that makes a row of each group and bucket, with the state of its
// quantiles, before it is known which groups are shown. Where that would be many rows, the facts are read twice: once
// for the ranking, and once for the figures of the groups that are shown.

import type { OwnerIds, SeriesDimension } from '../../../domain/reports/owners.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import type { MergedRow, MetricColumns } from './metric-columns.ts';
import { EVERY_VALUE_MAX, type FigureRow, figureColumns, SPEND } from './metrics.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';
import { checkedColumns, checkedNames, type SqlColumn } from './sql-column.ts';

export interface SeriesParams extends ReportParams {
  readonly groupBy: SeriesDimension | null;
  /** The number of groups that are shown one by one. */
  readonly top: number;
}

/** What a group's requests have in common; null: they have none. */
export type SeriesKey = OwnerIds & {
  readonly model?: string;
  readonly provider?: string;
  readonly tag?: string | null;
  readonly status?: number | null;
};

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

/** A group's place, from 1. */
export const REMAINDER = 0;

/** `grouped_by`: its bits are set for a key, place or start, by which the row is not grouped. */
export const OF_PLACE_AND_START = 0b00;
export const OF_PLACE = 0b01;
export const OF_START = 0b10;
export const OF_ALL = 0b11;

interface RowKeys {
  readonly place: number;
  /** Epoch seconds. */
  readonly at_start: number;
  readonly grouped_by: number;
  /** Of the group at a place, as text; otherwise without a meaning. */
  readonly value: string;
  /** The number of groups, in a row that has the last of them. */
  readonly groups: number;
}

export type SeriesRow = RowKeys & FigureRow;

/** Groups of each bucket that may be made while facts are read. */
export const READ_GROUPS_MAX = 20_000;
/** `uniqUpTo` counts no further; more than it counts are `COUNTED_GROUPS_MAX + 1`. */
const COUNTED_GROUPS_MAX = 100;

/** `starts`: of the buckets, in epoch seconds. `ofAll` are the rows for all groups together. */
export async function selectSeriesRows(
  client: ClickHouseReader,
  params: SeriesParams,
  starts: readonly number[],
): Promise<{ readonly ofAll: readonly SeriesRow[]; readonly ofGroups: readonly SeriesRow[] }> {
  const column = params.groupBy === null ? null : GROUP_COLUMNS[params.groupBy];
  const { facts, groups } = await selectSize(client, params, column);
  const figures = figureColumns(facts <= EVERY_VALUE_MAX ? 'every value' : 'different values');
  const asked = { client, params, starts, figures };
  const ungrouped = (): Promise<SeriesRow[]> => selectListed(asked, null, { values: [], groups: 0 });
  if (column === null) return { ofAll: await ungrouped(), ofGroups: [] };
  if (column.isMany === true) {
    // A request with two tags is in two groups, and counts once in all and once in the remainder.
    const ofGroups = await selectListed(asked, column, await selectRanking(client, params, column));
    return { ofAll: await ungrouped(), ofGroups };
  }
  const rows =
    groups <= COUNTED_GROUPS_MAX && groups * starts.length <= READ_GROUPS_MAX
      ? await selectRanked(asked, column)
      : await selectListed(asked, column, await selectRanking(client, params, column));
  return { ofAll: rows, ofGroups: rows };
}

/** What a group has in common, of the text of its value. */
export function seriesKeyOf(groupBy: SeriesDimension, value: string): SeriesKey {
  const { member, none, type } = GROUP_COLUMNS[groupBy];
  if (value === none && type !== 'String') return { [member]: null };
  if (member === 'tag' && value === none) return { tag: null };
  return { [member]: type === 'UInt16' ? Number(value) : value };
}

interface Size {
  /** At most: versions of facts that the table later replaces are counted, too. */
  readonly facts: number;
  readonly groups: number;
}

/** Without `FINAL`, which takes long. */
async function selectSize(client: ClickHouseReader, params: SeriesParams, column: GroupColumn | null): Promise<Size> {
  const [size] = await selectReport<Size>(
    client,
    `SELECT count() AS facts, uniqUpTo(${COUNTED_GROUPS_MAX})(${checkedValue(column)}) AS groups
     FROM request_facts
     WHERE ${checkedConditions(params)}
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
  return size ?? { facts: 0, groups: 0 };
}

interface Asked {
  readonly client: ClickHouseReader;
  readonly params: SeriesParams;
  readonly starts: readonly number[];
  readonly figures: MetricColumns<FigureRow>;
}

/** The groups that cost most; among those that cost the same, the ones with most requests, then by their values. */
const RANKING = 'group_cost DESC, group_requests DESC, value';

async function selectRanked(asked: Asked, column: GroupColumn): Promise<SeriesRow[]> {
  const { params, figures } = asked;
  return selectPlaced(
    asked,
    () => `SELECT *, if(nth <= {top:UInt32}, nth, ${REMAINDER}) AS place
     FROM (
       SELECT *, dense_rank() OVER (ORDER BY ${RANKING}) AS nth
       FROM (
         SELECT *, toString(group_value) AS value,
           sum(${figures.checkedState('spend')}) OVER (PARTITION BY group_value) AS group_cost,
           sum(${figures.checkedState('requests')}) OVER (PARTITION BY group_value) AS group_requests
         FROM (${checkedFacts(asked, ['group_value', column.value])})
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

/** Without a column: all facts at one place. */
async function selectListed(asked: Asked, column: GroupColumn | null, ranking: Ranking): Promise<SeriesRow[]> {
  const { values, groups } = ranking;
  return selectPlaced(
    asked,
    () => `SELECT *, {groups:UInt32} AS nth, {names:Array(String)}[place] AS value
     FROM (${checkedFacts(asked, ['place', placeOf(column)])})`,
    {
      groups,
      names: values,
      ...(column === null ? {} : { ranked: column.type === 'UInt16' ? values.map(Number) : values }),
    },
  );
}

/** Merges rows of places and buckets, `nth` being the group's in the ranking or the number of all. */
async function selectPlaced(
  { client, params, starts, figures }: Asked,
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

/** Rows of each key and bucket, with the states of the figures. */
function checkedFacts({ params, figures }: Asked, key: SqlColumn): string {
  const keys: readonly SqlColumn[] = [
    key,
    ['at_start', 'roundDown(toUnixTimestamp(admitted_at), {starts:Array(UInt32)})'],
  ];
  return `SELECT ${checkedColumns([...keys, ...figures.states])}
    FROM request_facts FINAL
    WHERE ${checkedConditions(params)}
    GROUP BY ${checkedNames(keys)}`;
}

function checkedValue(column: GroupColumn | null): string {
  return column?.value ?? "''";
}

function checkedEachValue({ value, isMany }: GroupColumn): string {
  return isMany === true ? `arrayJoin(${value})` : value;
}

function placeOf(column: GroupColumn | null): string {
  if (column === null) return `toUInt8(${REMAINDER})`;
  const { value, type, isMany } = column;
  const ranked = `{ranked:Array(${type})}`;
  return isMany === true
    ? `arrayJoin(arrayDistinct(arrayMap(one -> toUInt8(indexOf(${ranked}, one)), ${value})))`
    : `toUInt8(indexOf(${ranked}, ${value}))`;
}
