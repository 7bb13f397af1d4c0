// The groups of the routing report (spec 2.5) that have metrics or counts of requests: totals, tiers, models, kinds of work, reasons, policies ...
//
// One pass over the facts makes cells, one for each combination of what is grouped by; everything else is merged from the cells.

import type { ClickHouseClient } from '../clickhouse.ts';
import { MERGED_METRICS, METRIC_STATES, type MetricsRow } from './metrics.ts';
import { checkedConditions, conditionParameters, type ReportQuestion } from './report-question.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

/** Spec 8. */
const MODELS_MAX = 25;
/** Stands for a rank that is not known. */
const NO_RANK = 255;

/** What rows are grouped by: the name, and what it is of a fact. In the order of the bits of `grouped_by`, the first one highest. */
const KEYS = {
  tier: 'toString(route_tier)',
  served: 'toString(model)',
  task: 'toString(route_task)',
  picked: 'toString(route_picked_by)',
  reason: 'toString(route_reason)',
  policy: 'toString(route_policy)',
  policy_version: 'route_policy_version',
  classifier: 'toString(classifier_model)',
  // The model, or '' beyond the first by requests: known only when all are counted.
  ranked_model: null,
} as const;
type Key = keyof typeof KEYS;

const KEY_NAMES = Object.keys(KEYS) as Key[];
const KEY_LIST = KEY_NAMES.join(', ');
const CELL_KEYS = Object.entries(KEYS)
  .flatMap(([name, expression]) => (expression === null ? [] : [`${expression} AS ${name}`]))
  .join(', ');
const CELL_KEY_LIST = KEY_NAMES.filter((name) => KEYS[name] !== null).join(', ');

const GROUPS = {
  totals: [],
  tiers: ['tier'],
  models: ['ranked_model'],
  tasks: ['task'],
  taskModels: ['task', 'served'],
  pickedBy: ['picked'],
  reasons: ['reason'],
  policies: ['policy', 'policy_version'],
  classifiers: ['classifier'],
} as const satisfies Record<string, readonly Key[]>;
type GroupName = keyof typeof GROUPS;

const GROUPING_SETS = Object.values(GROUPS)
  .map((keys) => `(${keys.join(', ')})`)
  .join(', ');

function groupsStatement(question: ReportQuestion): string {
  return `
    SELECT ${KEY_LIST}, grouping(${KEY_LIST}) AS grouped_by,
      argMaxIf(rank, (state_last_at, rank), rank != ${NO_RANK}) AS tier_rank, countIf(rank != ${NO_RANK}) AS tier_ranks,
      ${MERGED_METRICS}
    FROM (
      SELECT *, if(dense_rank() OVER (ORDER BY served_requests DESC, served) <= ${MODELS_MAX}, served, '') AS ranked_model
      FROM (
        SELECT *, sum(state_requests) OVER (PARTITION BY served) AS served_requests
        FROM (
          SELECT ${CELL_KEYS}, ifNull(route_tier_rank, ${NO_RANK}) AS rank,
            ${METRIC_STATES}
          FROM request_facts FINAL
          WHERE routed AND ${checkedConditions(question)}
          GROUP BY ${CELL_KEY_LIST}, rank
        )
      )
    )
    GROUP BY GROUPING SETS (${GROUPING_SETS})
    ${REPORT_SETTINGS}`;
}

/** Of its group's keys only; the others have no meaning in it. */
export interface GroupRow extends MetricsRow {
  readonly tier: string;
  readonly served: string;
  readonly task: string;
  readonly picked: string;
  readonly reason: string;
  readonly policy: string;
  readonly policy_version: number;
  readonly classifier: string;
  readonly ranked_model: string;
  readonly grouped_by: number;
  /** As of the latest request that had one. */
  readonly tier_rank: number;
  /** 0: none had a rank. */
  readonly tier_ranks: number;
}

export type RoutingGroups = Readonly<Record<GroupName, readonly GroupRow[]>>;

export async function selectRoutingGroups(client: ClickHouseClient, question: ReportQuestion): Promise<RoutingGroups> {
  const rows = await selectReport<GroupRow>(client, groupsStatement(question), conditionParameters(question));
  const names = Object.keys(GROUPS) as GroupName[];
  return Object.fromEntries(names.map((name) => [name, rows.filter((row) => row.grouped_by === bitsWithout(GROUPS[name]))])) as unknown as RoutingGroups;
}

/** `grouping` sets the bit of each key that a row is not grouped by. */
function bitsWithout(keys: readonly Key[]): number {
  return KEY_NAMES.reduce((bits, key) => bits * 2 + (keys.includes(key) ? 0 : 1), 0);
}
