// The groups of the routing report (spec 2.5) that have metrics: totals, tiers, models, kinds of work.
//
// One pass over the facts makes cells, one for each combination of what is grouped by; the groups are merged from the
// cells. A quantile's state is large, so the cells are few: what needs counts alone is grouped in routing-facets.ts.

import type { ClickHouseReader } from '../clickhouse.ts';
import { checkedMergedMetrics, checkedMetricStates, type MetricsRow, type QuantileStates } from './metrics.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

/** Spec 8. */
const MODELS_MAX = 25;
/** Stands for a rank that is not known. */
const NO_RANK = 255;

/** Bits of `grouping(tier, ranked_model, task, served)`: a key that a row is not grouped by. */
const OF_ALL = 0b1111;
const OF_TIER = 0b0111;
const OF_MODEL = 0b1011;
const OF_TASK = 0b1101;
const OF_TASK_MODEL = 0b1100;

/** Of its group's keys only; the others have no meaning in it. */
export interface GroupRow extends MetricsRow {
  readonly tier: string;
  /** '' beyond the first by requests. */
  readonly ranked_model: string;
  readonly task: string;
  readonly served: string;
  readonly grouped_by: number;
  /** As of the latest request that had one. */
  readonly tier_rank: number;
  /** 0: none had a rank. */
  readonly tier_ranks: number;
}

export interface RoutingGroups {
  /** One row, or none. */
  readonly totals: readonly GroupRow[];
  readonly tiers: readonly GroupRow[];
  readonly models: readonly GroupRow[];
  readonly tasks: readonly GroupRow[];
  readonly taskModels: readonly GroupRow[];
}

export async function selectRoutingGroups(
  client: ClickHouseReader,
  params: ReportParams,
  quantiles: QuantileStates,
): Promise<RoutingGroups> {
  const rows = await selectReport<GroupRow>(
    client,
    `SELECT tier, ranked_model, task, served, grouping(tier, ranked_model, task, served) AS grouped_by,
       argMaxIf(rank, (latest, rank), rank != ${NO_RANK}) AS tier_rank, countIf(rank != ${NO_RANK}) AS tier_ranks,
       ${checkedMergedMetrics(quantiles)}
     FROM (
       SELECT *, if(dense_rank() OVER (ORDER BY served_requests DESC, served) <= ${MODELS_MAX}, served,
         '') AS ranked_model
       FROM (
         SELECT *, sum(state_requests) OVER (PARTITION BY served) AS served_requests
         FROM (
           SELECT toString(route_tier) AS tier, ifNull(route_tier_rank, ${NO_RANK}) AS rank,
             toString(route_task) AS task, toString(model) AS served,
             max(admitted_at) AS latest,
             ${checkedMetricStates(quantiles)}
           FROM request_facts FINAL
           WHERE routed AND ${checkedConditions(params)}
           GROUP BY tier, rank, task, served
         )
       )
     )
     GROUP BY GROUPING SETS ((), (tier), (ranked_model), (task), (task, served))
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
  const of = (grouping: number): GroupRow[] => rows.filter((row) => row.grouped_by === grouping);
  return {
    totals: of(OF_ALL),
    tiers: of(OF_TIER),
    models: of(OF_MODEL),
    tasks: of(OF_TASK),
    taskModels: of(OF_TASK_MODEL),
  };
}
