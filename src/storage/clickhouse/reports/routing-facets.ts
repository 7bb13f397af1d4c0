// Counts how routes were found (spec 2.5): by reason, by what picked the model, by confidence, classifier and policy
// version. One pass over the facts.

import type { ClickHouseReader } from '../clickhouse.ts';
import { type Cells, checkedCells } from './cells.ts';
import type { MergedRow } from './metric-columns.ts';
import { FACET_COLUMNS, type FacetRow, IS_NOT_REFUSED } from './metrics.ts';
import { conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

/**
 * The bits of `grouping(reason, picked, policy, policy_version, classifier)`, each set for a key by which the row is
 * not grouped.
 */
const OF_ALL = 0b11111;
const OF_REASON = 0b01111;
const OF_PICKED = 0b10111;
const OF_POLICY = 0b11001;
const OF_CLASSIFIER = 0b11110;

/** Only the keys of its own group have a meaning in a row. */
interface FacetKeys {
  readonly reason: string;
  readonly picked: string;
  readonly policy: string;
  readonly policy_version: number;
  readonly classifier: string;
  readonly grouped_by: number;
}

type FacetGroupRow = FacetKeys & FacetRow;

export interface RoutingFacets {
  /** One row, or none. */
  readonly totals: readonly FacetGroupRow[];
  readonly reasons: readonly FacetGroupRow[];
  readonly pickedBy: readonly FacetGroupRow[];
  readonly policies: readonly FacetGroupRow[];
  /** '' stands for requests without a call. */
  readonly classifiers: readonly FacetGroupRow[];
}

export const FACET_CELLS: Cells = {
  table: 'sealed_facets',
  counted: 'routed',
  keys: [
    ['reason', 'toString(route_reason)'],
    ['picked', 'toString(route_picked_by)'],
    ['policy', 'toString(route_policy)'],
    ['policy_version', 'route_policy_version'],
    ['classifier', 'toString(classifier_model)'],
  ],
  values: FACET_COLUMNS.states,
  sums: [
    [`countIf(routed AND ${IS_NOT_REFUSED})`, `sum(${FACET_COLUMNS.checkedState('requests')})`],
    ['sumIf(ifNull(classifier_cost, 0), routed)', `sum(${FACET_COLUMNS.checkedState('classifier_cost')})`],
  ],
};

export async function selectRoutingFacets(client: ClickHouseReader, params: ReportParams): Promise<RoutingFacets> {
  const merged = await selectReport<FacetKeys & MergedRow>(
    client,
    `SELECT reason, picked, policy, policy_version, classifier,
      grouping(reason, picked, policy, policy_version, classifier) AS grouped_by,
       ${FACET_COLUMNS.checkedMerged()}
     FROM (${checkedCells(FACET_CELLS, params)})
     GROUP BY GROUPING SETS ((), (reason), (picked), (policy, policy_version), (classifier))
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
  const rows = merged.map((row) => FACET_COLUMNS.rowOf(row));
  const of = (grouping: number): FacetGroupRow[] => rows.filter((row) => row.grouped_by === grouping);
  return {
    totals: of(OF_ALL),
    reasons: of(OF_REASON),
    pickedBy: of(OF_PICKED),
    policies: of(OF_POLICY),
    classifiers: of(OF_CLASSIFIER),
  };
}
