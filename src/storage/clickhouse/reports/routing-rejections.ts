// Counts the candidates that routing passed over (spec 2.5), by model, tier and reason.

import type { ClickHouseReader } from '../clickhouse.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

export interface RejectionCount {
  readonly model: string;
  readonly tier: string;
  readonly reason: string;
  readonly count: number;
}

export async function selectRejections(client: ClickHouseReader, params: ReportParams): Promise<RejectionCount[]> {
  return selectReport<RejectionCount>(
    client,
    `SELECT passed_over.1 AS model, passed_over.2 AS tier, passed_over.3 AS reason, count() AS count
     FROM (
       SELECT arrayJoin(arrayMap((m, t, r) -> (toString(m), toString(t), toString(r)), route_rejected_models,
         route_rejected_tiers, route_rejected_reasons)) AS passed_over
       FROM request_facts FINAL
       WHERE routed AND notEmpty(route_rejected_models) AND ${checkedConditions(params)}
     )
     GROUP BY model, tier, reason
     ORDER BY count DESC, model, tier, reason
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
}
