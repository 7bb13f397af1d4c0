// Reports what guardrails found and did (spec 7.7), by rule, entity, model and key, and how many requests could not be
// screened completely. The facts contain only names and counts of findings.

import type { ClickHouseReader } from '../clickhouse.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

export interface GuardrailRow {
  readonly policy: string;
  readonly rule: string;
  readonly entity: string;
  readonly stage: string;
  readonly action: string;
  readonly model: string;
  readonly api_key_id: string;
  readonly requests: number;
  readonly findings: number;
}

export interface GuardrailReport {
  /** Requests that guardrails ran on, and of those the ones that they refused or cut. */
  readonly screened: number;
  readonly blocked: number;
  readonly not_scanned: readonly { readonly reason: string; readonly requests: number }[];
  readonly rows: readonly GuardrailRow[];
}

/** The report has at most this many rows: those with most findings. */
const ROWS_MAX = 1_000;

/** The report includes refused requests, because a blocked request is one of them. */
export async function guardrailReport(client: ClickHouseReader, asked: ReportParams): Promise<GuardrailReport> {
  const params = { ...asked, showsRefused: true as const };
  const parameters = conditionParameters(params);
  const [totals] = await selectReport<{ screened: number; blocked: number }>(
    client,
    `SELECT count() AS screened, countIf(has(finding_actions, 'block')) AS blocked
     FROM request_facts FINAL WHERE notEmpty(screened_stages) AND ${checkedConditions(params)} ${REPORT_SETTINGS}`,
    parameters,
  );
  const missed = await selectReport<{ reason: string; requests: number }>(
    client,
    `SELECT toString(arrayJoin(screened_missed)) AS reason, count() AS requests
     FROM request_facts FINAL WHERE notEmpty(screened_stages) AND ${checkedConditions(params)}
     GROUP BY reason ORDER BY requests DESC, reason ${REPORT_SETTINGS}`,
    parameters,
  );
  const rows = await selectReport<GuardrailRow>(
    client,
    `SELECT found.1 AS policy, found.2 AS rule, found.3 AS entity, found.4 AS stage, found.5 AS action,
            model, key AS api_key_id, count() AS requests, sum(found.6) AS findings
     FROM (
       SELECT toString(model) AS model, toString(request_facts.api_key_id) AS key,
         arrayJoin(arrayMap((p, r, e, s, a, c) -> (toString(p), toString(r), toString(e), toString(s), toString(a), c),
           finding_policies, finding_rules, finding_entities, finding_stages, finding_actions, finding_counts)) AS found
       FROM request_facts FINAL
       WHERE notEmpty(finding_rules) AND ${checkedConditions(params)}
     )
     GROUP BY policy, rule, entity, stage, action, model, api_key_id
     ORDER BY findings DESC, policy, rule, entity, stage, action, model, api_key_id LIMIT ${ROWS_MAX}
     ${REPORT_SETTINGS}`,
    parameters,
  );
  return { screened: totals?.screened ?? 0, blocked: totals?.blocked ?? 0, not_scanned: missed, rows };
}
