// The groups of the routing report that have metrics (spec 2.5): totals, tiers, models, kinds of work.
//
// One pass over the facts makes cells, one for each combination of the keys; the groups are merged from the cells. The
// state of a quantile is large, so cells must be few: what only needs counts is grouped in routing-facets.ts.

import { REPORTED_MODELS_MAX } from '../../../domain/reports/report-query.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import { type Cells, checkedCells } from './cells.ts';
import type { MergedRow } from './metric-columns.ts';
import {
  COMPLETION_TOKENS,
  IS_NOT_REFUSED,
  type MetricsRow,
  metricColumns,
  PROMPT_TOKENS,
  type QuantileStates,
  SPEND,
  sumOfTokens,
} from './metrics.ts';
import { conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

/** Stands for an unknown rank. */
const NO_RANK = 255;

/** The bits of `grouping(tier, ranked_model, task, served)`, each set for a key by which the row is not grouped. */
const OF_ALL = 0b1111;
const OF_TIER = 0b0111;
const OF_MODEL = 0b1011;
const OF_TASK = 0b1101;
const OF_TASK_MODEL = 0b1100;

/** Only the keys of its own group have a meaning in a row. */
interface GroupKeys {
  readonly tier: string;
  /** '' for models that are not among the first by requests. */
  readonly ranked_model: string;
  readonly task: string;
  readonly served: string;
  readonly grouped_by: number;
  /** The rank at the latest request that had one. */
  readonly tier_rank: number;
  /** How many cells had a rank; 0: none. */
  readonly tier_ranks: number;
}

export type GroupRow = GroupKeys & MetricsRow;

export interface RoutingGroups {
  /** One row, or none. */
  readonly totals: readonly GroupRow[];
  readonly tiers: readonly GroupRow[];
  readonly models: readonly GroupRow[];
  readonly tasks: readonly GroupRow[];
  readonly taskModels: readonly GroupRow[];
}

const COUNTED = `routed AND ${IS_NOT_REFUSED}`;

export function groupCells(quantiles: QuantileStates): Cells {
  const metrics = metricColumns(quantiles);
  return {
    table: 'sealed_groups',
    counted: COUNTED,
    keys: [
      ['tier', 'toString(route_tier)'],
      ['rank', `ifNull(route_tier_rank, ${NO_RANK})`],
      ['task', 'toString(route_task)'],
      ['served', 'toString(model)'],
    ],
    values: [['latest', 'max(admitted_at)'], ...metrics.states],
    sums: [
      [`countIf(${COUNTED})`, `sum(${metrics.checkedState('requests')})`],
      [`sumIf(ifNull(${SPEND}, 0), ${COUNTED})`, `sum(${metrics.checkedState('spend')})`],
      [
        sumOfTokens(`if(${COUNTED}, ${PROMPT_TOKENS} + ${COMPLETION_TOKENS}, 0)`),
        `sum(${metrics.checkedState('tokens')})`,
      ],
    ],
  };
}

export async function selectRoutingGroups(
  client: ClickHouseReader,
  params: ReportParams,
  quantiles: QuantileStates,
): Promise<RoutingGroups> {
  const metrics = metricColumns(quantiles);
  const merged = await selectReport<GroupKeys & MergedRow>(
    client,
    `SELECT tier, ranked_model, task, served, grouping(tier, ranked_model, task, served) AS grouped_by,
       argMaxIf(rank, (latest, rank), rank != ${NO_RANK}) AS tier_rank, countIf(rank != ${NO_RANK}) AS tier_ranks,
       ${metrics.checkedMerged()}
     FROM (
       SELECT *, if(dense_rank() OVER (ORDER BY served_requests DESC, served) <= ${REPORTED_MODELS_MAX}, served,
         '') AS ranked_model
       FROM (
         SELECT *, sum(${metrics.checkedState('requests')}) OVER (PARTITION BY served) AS served_requests
         FROM (${checkedCells(groupCells(quantiles), params)})
       )
     )
     GROUP BY GROUPING SETS ((), (tier), (ranked_model), (task), (task, served))
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
  const rows = merged.map((row) => metrics.rowOf(row));
  const of = (grouping: number): GroupRow[] => rows.filter((row) => row.grouped_by === grouping);
  return {
    totals: of(OF_ALL),
    tiers: of(OF_TIER),
    models: of(OF_MODEL),
    tasks: of(OF_TASK),
    taskModels: of(OF_TASK_MODEL),
  };
}
