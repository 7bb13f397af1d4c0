// Reports usage in a window: in total, by model and by the requested dimensions, and by day.

import { formatUsdString } from '../../../domain/money/format.ts';
import { DIMENSIONS, type Dimension, type OwnerIds } from '../../../domain/reports/owners.ts';
import { bucketsOf } from '../../../domain/reports/time-buckets.ts';
import { type TokenSum, tokenSum } from '../../../domain/usage/token-sum.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import { picoOf } from '../decimal-text.ts';
import { COMPLETION_TOKENS, IS_ERROR, PROMPT_TOKENS, SPEND } from './metrics.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { compareText } from './routing-conversations.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

export interface Usage {
  readonly requests: number;
  readonly tokens_prompt: TokenSum;
  readonly tokens_completion: TokenSum;
  /** Dollars. */
  readonly cost: string;
}

export interface UsageSummary extends Usage {
  readonly currency: 'USD';
  readonly by_model: readonly (Usage & { readonly model: string })[];
  /** Grouped by the requested dimensions; absent: none was requested. */
  readonly groups?: readonly UsageGroup[];
}

/** What a group's requests have in common. */
export type GroupKey = OwnerIds & { readonly model?: string };
export type UsageGroup = GroupKey & Usage;

/** The usage of a day, or of one group on a day. */
export type UsageDay = { /** The date in the window's time zone. */ readonly date: string } & GroupKey & {
    readonly errors: number;
  } & Usage;

export interface UsageParams extends ReportParams {
  /** Empty or absent: requests are not grouped. */
  readonly groupBy?: readonly Dimension[];
}

/** The most rows of an answer. Nobody reads a longer report, and it would take the memory of jobs. */
export const GROUPS_MAX = 20_000;

const COLUMNS: Readonly<Record<Dimension, string>> = {
  model: 'model',
  organization: 'organization_id',
  team: 'team_id',
  user: 'user_id',
  api_key: 'api_key_id',
};

const USAGE_COLUMNS = `count() AS requests, countIf(${IS_ERROR}) AS errors, toString(sum(${PROMPT_TOKENS})) AS prompt,
  toString(sum(${COMPLETION_TOKENS})) AS completion,
  toString(sum(ifNull(${SPEND}, 0))) AS cost`;

/** A group's values are in members such as `by_team`, whose names do not hide a column that a condition uses. */
type UsageRow = {
  readonly requests: number;
  readonly errors: number;
  readonly prompt: string;
  readonly completion: string;
  readonly cost: string;
} & { readonly [Name in Dimension as `by_${Name}`]?: string | null };

/** null: there are more than GROUPS_MAX groups. */
export async function usageSummary(client: ClickHouseReader, params: UsageParams): Promise<UsageSummary | null> {
  const groupBy = inOrder(params.groupBy ?? []);
  // One statement groups by model and by what was asked for, so that the parts of an answer agree.
  const other = groupBy.find((dimension) => dimension !== 'model');
  const sets =
    other === undefined
      ? 'by_model'
      : `GROUPING SETS ((by_model), (${groupBy.map((name) => `by_${name}`).join(', ')}))`;
  const rows = await selectReport<UsageRow & { readonly is_group: boolean }>(
    client,
    `SELECT ${selected(inOrder(['model', ...groupBy]))}, ${other === undefined ? 'true' : `grouping(by_${other}) = 0`}
       AS is_group, ${USAGE_COLUMNS}
     FROM request_facts FINAL
     WHERE ${checkedConditions(params)}
     GROUP BY ${sets}
     LIMIT ${GROUPS_MAX + 1}
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
  if (rows.length > GROUPS_MAX) return null;
  const models = other === undefined ? rows : rows.filter(({ is_group }) => !is_group);
  return {
    currency: 'USD',
    ...sumOf(models),
    by_model: models.toSorted(largestFirst(['model'])).map((row) => ({ model: row.by_model ?? '', ...usageOf(row) })),
    ...(groupBy.length === 0 ? {} : { groups: groupsOf(rows, groupBy) }),
  };
}

function groupsOf(rows: readonly (UsageRow & { readonly is_group: boolean })[], groupBy: readonly Dimension[]) {
  return rows
    .filter(({ is_group }) => is_group)
    .toSorted(largestFirst(groupBy))
    .map((row) => ({ ...keyOf(row, groupBy), ...usageOf(row) }));
}

/** Days with requests, first to last, whatever the window's granularity. null: there are more than GROUPS_MAX rows. */
export async function usageDaily(client: ClickHouseReader, params: UsageParams): Promise<UsageDay[] | null> {
  const groupBy = inOrder(params.groupBy ?? []);
  const dates = datesByStart(params.window);
  const rows = await selectReport<UsageRow & { readonly start: number }>(
    client,
    `SELECT ${['roundDown(toUnixTimestamp(admitted_at), {starts:Array(UInt32)}) AS start', selected(groupBy)]
      .filter((columns) => columns !== '')
      .join(', ')}, ${USAGE_COLUMNS}
     FROM request_facts FINAL
     WHERE ${checkedConditions(params)}
     GROUP BY ${['start', ...groupBy.map((name) => `by_${name}`)].join(', ')}
     LIMIT ${GROUPS_MAX + 1}
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(params), starts: [...dates.keys()] },
  );
  if (rows.length > GROUPS_MAX) return null;
  const first = largestFirst(groupBy);
  return rows
    .toSorted((a, b) => a.start - b.start || first(a, b))
    .map((row) => ({
      date: dates.get(row.start) ?? '',
      ...keyOf(row, groupBy),
      errors: row.errors,
      ...usageOf(row),
    }));
}

/** The dates of a window by their start in epoch seconds. */
function datesByStart(window: ReportParams['window']): Map<number, string> {
  const days = bucketsOf({ ...window, granularity: 'day' });
  return new Map(days.map(({ startMs, date }) => [startMs / 1000, date]));
}

function inOrder(dimensions: readonly Dimension[]): Dimension[] {
  return DIMENSIONS.filter((dimension) => dimensions.includes(dimension));
}

function selected(dimensions: readonly Dimension[]): string {
  return dimensions.map((dimension) => `toString(${COLUMNS[dimension]}) AS by_${dimension}`).join(', ');
}

function keyOf(row: UsageRow, groupBy: readonly Dimension[]): GroupKey {
  return Object.fromEntries(
    groupBy.map((name) => [name === 'model' ? name : `${name}_id`, row[`by_${name}`] ?? null]),
  ) as GroupKey;
}

function usageOf({ requests, prompt, completion, cost }: UsageRow): Usage {
  return { requests, tokens_prompt: tokenSum(prompt), tokens_completion: tokenSum(completion), cost };
}

/** Most requests first, then by what the groups have in common. */
function largestFirst(groupBy: readonly Dimension[]): (a: UsageRow, b: UsageRow) => number {
  const nameOf = (row: UsageRow) => groupBy.map((dimension) => row[`by_${dimension}`] ?? '').join('\n');
  return (a, b) => b.requests - a.requests || compareText(nameOf(a), nameOf(b));
}

function sumOf(rows: readonly UsageRow[]): Usage {
  return {
    requests: rows.reduce((sum, row) => sum + row.requests, 0),
    tokens_prompt: tokenSum(rows.reduce((sum, row) => sum + BigInt(row.prompt), 0n)),
    tokens_completion: tokenSum(rows.reduce((sum, row) => sum + BigInt(row.completion), 0n)),
    cost: formatUsdString(rows.reduce((sum, row) => sum + picoOf(row.cost), 0n)),
  };
}
