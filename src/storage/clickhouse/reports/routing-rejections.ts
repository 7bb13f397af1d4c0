// Counts the candidates that routing passed over (spec 2.5), by model, tier and reason.

import type { ClickHouseReader } from '../clickhouse.ts';
import { type Cells, checkedCells } from './cells.ts';
import { IS_NOT_REFUSED } from './metrics.ts';
import { conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

export interface RejectionCount {
  readonly model: string;
  readonly tier: string;
  readonly reason: string;
  readonly count: number;
}

export const REJECTION_CELLS: Cells = {
  table: 'sealed_rejections',
  counted: `routed AND ${IS_NOT_REFUSED} AND notEmpty(route_rejected_models)`,
  keys: [
    [
      'passed_over',
      `arrayJoin(arrayMap((m, t, r) -> (toString(m), toString(t), toString(r)), route_rejected_models,
         route_rejected_tiers, route_rejected_reasons))`,
    ],
  ],
  values: [['rejections', 'count()']],
  sums: [[`sumIf(length(route_rejected_models), routed AND ${IS_NOT_REFUSED})`, 'sum(rejections)']],
};

export async function selectRejections(client: ClickHouseReader, params: ReportParams): Promise<RejectionCount[]> {
  return selectReport<RejectionCount>(
    client,
    `SELECT passed_over.1 AS model, passed_over.2 AS tier, passed_over.3 AS reason, sum(rejections) AS count
     FROM (${checkedCells(REJECTION_CELLS, params)})
     GROUP BY model, tier, reason
     ORDER BY count DESC, model, tier, reason
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
}
