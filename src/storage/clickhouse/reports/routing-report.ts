// Assembles the routing report (spec 2.5) from five passes, each over other columns of the facts or over the cells of
// sealed days. Two more passes read the recent corrections, if the audience may see them; the last reads only facts.

import { type TokenSum, tokenSum } from '../../../domain/usage/token-sum.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import {
  EVERY_VALUE_MAX,
  type FacetRow,
  type Metrics,
  metricsOf,
  NO_FACETS,
  NO_METRICS,
  quantileOf,
  ratio,
} from './metrics.ts';
import type { ReportParams } from './report-params.ts';
import {
  compareText,
  type RecentCorrection,
  type RoutingConversations,
  type Sessions,
  selectRecentCorrections,
  selectRoutingConversations,
  TURN_NAMES_MAX,
} from './routing-conversations.ts';
import { type RoutingFacets, selectRoutingFacets } from './routing-facets.ts';
import { type GroupRow, type RoutingGroups, selectRoutingGroups } from './routing-groups.ts';
import { type RejectionCount, selectRejections } from './routing-rejections.ts';
import { type SeriesPoint, type SeriesTotal, selectRoutingSeries } from './routing-series.ts';

export interface ClassifierTotals {
  readonly calls: number;
  readonly input_tokens: TokenSum;
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  /** null when some call's tokens have no catalog price. */
  readonly cost_usd: string | null;
}

export interface RoutingTotals extends Metrics {
  /** All requests, routed or not. */
  readonly all_requests: number;
  readonly routed_share: number | null;
  /** Rates and shares refer to the routed requests. */
  readonly classifier: ClassifierTotals & {
    readonly fallback_rate: number | null;
    readonly cached_share: number | null;
    readonly escalated_share: number | null;
  };
  readonly sessions: Sessions;
}

export interface RoutingReport extends Pick<RoutingConversations, 'by_previous_tier' | 'by_previous_model'> {
  readonly totals: RoutingTotals;
  readonly series: readonly SeriesPoint[];
  readonly series_totals: readonly SeriesTotal[];
  readonly by_tier: readonly (Metrics & { readonly tier: string; readonly rank: number | null })[];
  readonly by_model: readonly (Metrics & { readonly model: string })[];
  /** null when all models are listed. */
  readonly model_remainder: Metrics | null;
  readonly by_task: readonly (Metrics & { readonly task: string })[];
  readonly task_models: readonly (Metrics & { readonly task: string; readonly model: string })[];
  readonly picked_by: readonly { readonly picked_by: string; readonly requests: number }[];
  readonly reasons: readonly { readonly reason: string; readonly requests: number }[];
  /** From `from` (inclusive) to `to` (exclusive); the last bucket includes 1. */
  readonly confidence: readonly { readonly from: number; readonly to: number; readonly requests: number }[];
  readonly rejections: readonly RejectionCount[];
  readonly classifiers: readonly (ClassifierTotals & { readonly model: string })[];
  readonly policies: readonly {
    readonly policy: string;
    readonly version: number;
    readonly requests: number;
    readonly first_used_at: string;
    readonly last_used_at: string;
  }[];
  readonly recent_corrections: readonly RecentCorrection[] | null;
}

export interface RoutingParams extends ReportParams {
  readonly recentCorrections: boolean;
}

/**
 * Up to this many routed requests, a report's statements need little memory, and take hardly longer than the engine
 * takes to plan them on one thread. Two of them therefore run at once. For more requests, one statement at a time may
 * use the memory and threads of a report.
 */
const FEW_REQUESTS_MAX = 200_000;

export async function routingReport(client: ClickHouseReader, params: RoutingParams): Promise<RoutingReport> {
  const { secondConnection = client } = client;
  // These two always run at once. They need little memory for any number of requests, because they have few groups and
  // keep no value of each request.
  const [{ allRequests, routedRequests, series, totals: seriesTotals }, facets] = await settleBoth(
    selectRoutingSeries(client, params),
    selectRoutingFacets(secondConnection, params),
  );
  const [groups, { sessions, ...others }] =
    routedRequests <= FEW_REQUESTS_MAX
      ? await settleBoth(
          selectGroups(client, params, routedRequests),
          selectOthers(secondConnection, params, routedRequests),
        )
      : [await selectGroups(client, params, routedRequests), await selectOthers(client, params, routedRequests)];
  const all = groups.totals[0] ?? NO_METRICS;
  const totals: RoutingTotals = {
    ...metricsOf(all, all.m_requests),
    all_requests: allRequests,
    routed_share: ratio(all.m_requests, allRequests),
    classifier: {
      ...classifierOf(facets.totals[0] ?? NO_FACETS),
      fallback_rate: ratio(all.m_fallbacks, all.m_requests),
      cached_share: ratio(all.m_cached, all.m_requests),
      escalated_share: ratio(all.m_escalated, all.m_requests),
    },
    sessions,
  };
  return {
    totals,
    series,
    series_totals: seriesTotals,
    ...groupsOf(groups, all.m_requests),
    ...facetsOf(facets),
    ...others,
  };
}

/** Settles only when both promises have, so that no statement of a failed report is still running. */
async function settleBoth<One, Other>(one: Promise<One>, other: Promise<Other>): Promise<[One, Other]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}

function selectGroups(client: ClickHouseReader, params: ReportParams, routedRequests: number): Promise<RoutingGroups> {
  if (routedRequests <= EVERY_VALUE_MAX) return selectRoutingGroups(client, params, 'every value');
  // The cells of sealed days keep every value, so they cannot be used here.
  const { sealed: _, ...unsealed } = params;
  return selectRoutingGroups(client, unsealed, 'different values');
}

type Others = RoutingConversations & Pick<RoutingReport, 'rejections' | 'recent_corrections'>;

async function selectOthers(client: ClickHouseReader, params: RoutingParams, routedRequests: number): Promise<Others> {
  const turnNames = routedRequests <= TURN_NAMES_MAX ? 'names' : 'positions';
  return {
    ...(await selectRoutingConversations(client, params, turnNames)),
    rejections: await selectRejections(client, params),
    recent_corrections: params.recentCorrections ? await selectRecentCorrections(client, params) : null,
  };
}

type Grouped = Pick<RoutingReport, 'by_tier' | 'by_model' | 'model_remainder' | 'by_task' | 'task_models'>;

function groupsOf(groups: RoutingGroups, whole: number): Grouped {
  const ofTask = new Map(groups.tasks.map((row) => [row.task, row.m_requests]));
  const remainder = groups.models.find((row) => row.ranked_model === '');
  return {
    by_tier: groups.tiers
      .map((row) => ({ tier: row.tier, rank: row.tier_ranks === 0 ? null : row.tier_rank, ...metricsOf(row, whole) }))
      .sort((a, b) => (a.rank ?? Number.MAX_VALUE) - (b.rank ?? Number.MAX_VALUE) || compareText(a.tier, b.tier)),
    by_model: mostFirst(groups.models, (row) => row.ranked_model)
      .filter((row) => row !== remainder)
      .map((row) => ({ model: row.ranked_model, ...metricsOf(row, whole) })),
    model_remainder: remainder === undefined ? null : metricsOf(remainder, whole),
    by_task: mostFirst(groups.tasks, (row) => row.task).map((row) => ({ task: row.task, ...metricsOf(row, whole) })),
    task_models: mostFirst(groups.taskModels, (row) => row.served)
      .sort((a, b) => (ofTask.get(b.task) ?? 0) - (ofTask.get(a.task) ?? 0) || compareText(a.task, b.task))
      .map((row) => ({ task: row.task, model: row.served, ...metricsOf(row, ofTask.get(row.task) ?? 0) })),
  };
}

type Faceted = Pick<RoutingReport, 'picked_by' | 'reasons' | 'confidence' | 'classifiers' | 'policies'>;

function facetsOf(facets: RoutingFacets): Faceted {
  const buckets = facets.totals[0]?.m_confidence_buckets ?? [];
  return {
    picked_by: mostFirst(facets.pickedBy.filter(isCounted), (row) => row.picked).map((row) => ({
      picked_by: row.picked,
      requests: row.m_requests,
    })),
    reasons: mostFirst(facets.reasons.filter(isCounted), (row) => row.reason).map((row) => ({
      reason: row.reason,
      requests: row.m_requests,
    })),
    // Without requests, `buckets` is empty.
    confidence: Array.from({ length: 10 }, (_, index) => ({
      from: index / 10,
      to: (index + 1) / 10,
      requests: buckets[index] ?? 0,
    })),
    classifiers: facets.classifiers
      .filter((row) => row.classifier !== '')
      .sort((a, b) => b.m_classifier_calls - a.m_classifier_calls || compareText(a.classifier, b.classifier))
      .map((row) => ({ model: row.classifier, ...classifierOf(row) })),
    policies: facets.policies
      .map((row) => ({
        policy: row.policy,
        version: row.policy_version,
        requests: row.m_requests,
        first_used_at: new Date(row.m_first_at).toISOString(),
        last_used_at: new Date(row.m_last_at).toISOString(),
      }))
      .sort((a, b) => compareText(a.policy, b.policy) || a.version - b.version),
  };
}

/** False for a facet that only refused requests have. */
function isCounted({ m_requests }: FacetRow): boolean {
  return m_requests > 0;
}

function mostFirst<Row extends Pick<GroupRow, 'm_requests'>>(
  rows: readonly Row[],
  nameOf: (row: Row) => string,
): Row[] {
  return rows.toSorted((a, b) => b.m_requests - a.m_requests || compareText(nameOf(a), nameOf(b)));
}

function classifierOf(row: FacetRow): ClassifierTotals {
  const isPriced = row.m_classifier_priced > 0 && row.m_classifier_unpriced === 0;
  return {
    calls: row.m_classifier_calls,
    input_tokens: tokenSum(row.m_classifier_tokens),
    p50_ms: quantileOf(row.m_classifier_latency, 0, row.m_classifier_latency_known),
    p95_ms: quantileOf(row.m_classifier_latency, 1, row.m_classifier_latency_known),
    cost_usd: isPriced ? row.m_classifier_cost : null,
  };
}
