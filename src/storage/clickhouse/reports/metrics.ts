// The metrics of spec 2.5, each defined once: as an aggregate state over facts, as that state merged over groups, and
// as the field that is shown. metric-columns.ts makes their columns and reads their rows.

import { formatUsdString } from '../../../domain/money/format.ts';
import { type TokenSum, tokenSum } from '../../../domain/usage/token-sum.ts';
import { picoOf } from '../decimal-text.ts';
import { type Metric, MetricColumns } from './metric-columns.ts';

/** Totals leave refused requests out, since these used nothing and only a limited number of them is recorded. */
export const IS_NOT_REFUSED = "outcome != 'refused'";

/**
 * What a request cost: the charge if somebody is billed, else the catalog price of its usage without the part in
 * suspense, as budgets count it. null: unknown.
 */
export const SPEND = 'if(isNull(wallet_id), rated_cost - suspense, total_cost)';

/**
 * The tokens of a request, for sums. An unknown count adds nothing. A request to count tokens adds nothing either,
 * because the counted tokens were not used.
 */
export const PROMPT_TOKENS = "if(api = 'count_tokens', 0, ifNull(tokens_prompt, 0))";
export const COMPLETION_TOKENS = "if(api = 'count_tokens', 0, ifNull(tokens_completion, 0))";

/** The client did not get the answer that it should have. A client that disconnected is not an error of the service. */
export const IS_ERROR =
  "ifNull(status >= 400, false) OR outcome IN ('connect_failed', 'provider_refused', " +
  "'provider_failed', 'no_reply', 'cut_mid_stream', 'output_blocked', 'process_killed')";

/** Spec 2.5: savings count only requests whose both prices are known. */
const HAS_BASELINE = `isNotNull(route_baseline_cost) AND isNotNull(${SPEND})`;

/** Spec 3.2: the reasons for which the fallback tier serves. */
const IS_FALLBACK = "route_reason IN ('classifier_failed', 'no_request_text', 'classifier_skipped')";

/**
 * The index of the confidence bucket of a request. The ten buckets have equal width, and a confidence of 1 is in the
 * last. The index 255 stands for no confidence and is in no bucket.
 */
const CONFIDENCE_BUCKET =
  'if(isNull(route_confidence), 255, least(9, toUInt8(floor(assumeNotNull(route_confidence) * 10))))';
/** The same for requests that totals count; 255 for refused ones. */
const COUNTED_BUCKET = `if(${IS_NOT_REFUSED}, ${CONFIDENCE_BUCKET}, 255)`;

/**
 * Two ways to keep the state of a quantile. Both are exact (nearest rank) and give the same figures. Keeping every
 * value is faster and takes a third of the memory for ten million requests; keeping the different values with their
 * counts does not grow with the number of requests.
 */
export type QuantileStates = 'every value' | 'different values';

/** Up to this many values, every latency is kept in memory, with 36 bytes each (measured). */
export const EVERY_VALUE_MAX = 12_000_000;

/**
 * This aggregate takes the next rank where a level meets a rank exactly. A level lower by less than one value in a
 * billion makes it the nearest rank.
 */
const EVERY_VALUE = 'quantilesExactIf';
const LEVELS_OF_EVERY_VALUE = '(0.4999999999, 0.9499999999)';
/** Every value gets the weight 1. */
const DIFFERENT_VALUES = 'quantilesExactWeightedIf';
const LEVELS = '(0.5, 0.95)';

function quantiles(name: string, column: string, states: QuantileStates): Metric {
  const [value, isKnown] = [`assumeNotNull(${column})`, `isNotNull(${column})`];
  return states === 'every value'
    ? {
        name,
        state: `${EVERY_VALUE}State${LEVELS_OF_EVERY_VALUE}(${value}, ${isKnown})`,
        merge: (state) => `${EVERY_VALUE}Merge${LEVELS_OF_EVERY_VALUE}(${state})`,
      }
    : {
        name,
        state: `${DIFFERENT_VALUES}State${LEVELS}(${value}, 1, ${isKnown})`,
        merge: (state) => `${DIFFERENT_VALUES}Merge${LEVELS}(${state})`,
      };
}

const count = (name: string, state: string): Metric => ({ name, state, merge: 'count' });
const money = (name: string, state: string): Metric => ({ name, state, merge: 'exact sum' });
/** Counts are widened before they are added up. Otherwise, sums beyond 2^64 would differ between cells and facts. */
export const sumOfTokens = (counts: string): string => `sum(toDecimal128(${counts}, 12))`;
const tokens = (name: string, counts: string): Metric => ({ name, state: sumOfTokens(counts), merge: 'exact sum' });

/** The metrics that the series show as well. */
const SERIES_METRICS: readonly Metric[] = [
  count('requests', 'count()'),
  money('spend', `sum(ifNull(${SPEND}, 0))`),
  money('baseline_spend', `sumIf(ifNull(${SPEND}, 0), ${HAS_BASELINE})`),
  money('baseline_cost', `sumIf(ifNull(route_baseline_cost, 0), ${HAS_BASELINE})`),
];

const metricsWith = (states: QuantileStates): readonly Metric[] => [
  ...SERIES_METRICS,
  tokens('tokens', `${PROMPT_TOKENS} + ${COMPLETION_TOKENS}`),
  count('baseline_requests', `countIf(${HAS_BASELINE})`),
  count('errors', `countIf(${IS_ERROR})`),
  count('truncated', 'countIf(truncated)'),
  count('cached', 'countIf(route_cached)'),
  count('escalated', 'countIf(route_escalated)'),
  count('fallbacks', `countIf(${IS_FALLBACK})`),
  // Requests whose kind of work decided the model: the model had a strength in it.
  count('task_applied', "countIf(route_picked_by = 'strength')"),
  quantiles('latency', 'latency_ms', states),
  count('latency_known', 'count(latency_ms)'),
  quantiles('ttft', 'ttft_ms', states),
  count('ttft_known', 'count(ttft_ms)'),
  { name: 'confidence_sum', state: 'sum(ifNull(route_confidence, 0))', merge: (state) => `sum(${state})` },
  count('confidence_known', 'count(route_confidence)'),
];

/**
 * Counts by how a route was found: by reason, policy and classifier. A request that was refused after it was routed
 * counts only as a call of the classifier and as a use of its policy.
 */
const FACETS: readonly Metric[] = [
  count('requests', `countIf(${IS_NOT_REFUSED})`),
  {
    name: 'confidence_buckets',
    state: `countResample(0, 10, 1)(${COUNTED_BUCKET})`,
    merge: (state) => `sumForEach(${state})`,
  },
  { name: 'first_at', state: 'min(admitted_at)', merge: (state) => `toUnixTimestamp64Milli(min(${state}))` },
  { name: 'last_at', state: 'max(admitted_at)', merge: (state) => `toUnixTimestamp64Milli(max(${state}))` },
  count('classifier_calls', "countIf(classifier_model != '')"),
  tokens('classifier_tokens', 'ifNull(classifier_input_tokens, 0)'),
  money('classifier_cost', 'sum(ifNull(classifier_cost, 0))'),
  count('classifier_priced', 'count(classifier_cost)'),
  // Calls whose tokens have no price; without this count the sum of the others would look complete.
  count('classifier_unpriced', 'countIf(isNotNull(classifier_input_tokens) AND isNull(classifier_cost))'),
  quantiles('classifier_latency', 'classifier_latency_ms', 'different values'),
  count('classifier_latency_known', 'count(classifier_latency_ms)'),
];

/** The figures of the series of usage. */
const figuresWith = (states: QuantileStates): readonly Metric[] => [
  count('requests', 'count()'),
  money('spend', `sum(ifNull(${SPEND}, 0))`),
  count('errors', `countIf(${IS_ERROR})`),
  tokens('prompt', PROMPT_TOKENS),
  tokens('completion', COMPLETION_TOKENS),
  quantiles('latency', 'latency_ms', states),
  count('latency_known', 'count(latency_ms)'),
  quantiles('ttft', 'ttft_ms', states),
  count('ttft_known', 'count(ttft_ms)'),
];

/** The columns of each of these lists. */
export const SERIES_COLUMNS = new MetricColumns<SeriesRow>(SERIES_METRICS);
export const FACET_COLUMNS = new MetricColumns<FacetRow>(FACETS);

export function metricColumns(states: QuantileStates): MetricColumns<MetricsRow> {
  return new MetricColumns(metricsWith(states));
}

export function figureColumns(states: QuantileStates): MetricColumns<FigureRow> {
  return new MetricColumns(figuresWith(states));
}

/** A row of these columns, merged. */
export interface SeriesRow {
  readonly m_requests: number;
  readonly m_spend: string;
  readonly m_baseline_spend: string;
  readonly m_baseline_cost: string;
}

export interface MetricsRow extends SeriesRow {
  readonly m_tokens: string;
  readonly m_baseline_requests: number;
  readonly m_errors: number;
  readonly m_truncated: number;
  readonly m_cached: number;
  readonly m_escalated: number;
  readonly m_fallbacks: number;
  readonly m_task_applied: number;
  readonly m_latency: readonly [number, number];
  readonly m_latency_known: number;
  readonly m_ttft: readonly [number, number];
  readonly m_ttft_known: number;
  readonly m_confidence_sum: number;
  readonly m_confidence_known: number;
}

export interface FigureRow
  extends Pick<
    MetricsRow,
    'm_requests' | 'm_spend' | 'm_errors' | 'm_latency' | 'm_latency_known' | 'm_ttft' | 'm_ttft_known'
  > {
  readonly m_prompt: string;
  readonly m_completion: string;
}

export interface FacetRow {
  readonly m_requests: number;
  readonly m_confidence_buckets: readonly number[];
  readonly m_first_at: number;
  readonly m_last_at: number;
  readonly m_classifier_calls: number;
  readonly m_classifier_tokens: string;
  readonly m_classifier_cost: string;
  readonly m_classifier_priced: number;
  readonly m_classifier_unpriced: number;
  readonly m_classifier_latency: readonly [number, number];
  readonly m_classifier_latency_known: number;
}

/** The metrics when there are no requests. */
export const NO_METRICS: MetricsRow = {
  m_requests: 0,
  m_spend: '0',
  m_baseline_spend: '0',
  m_baseline_cost: '0',
  m_tokens: '0',
  m_baseline_requests: 0,
  m_errors: 0,
  m_truncated: 0,
  m_cached: 0,
  m_escalated: 0,
  m_fallbacks: 0,
  m_task_applied: 0,
  m_latency: [0, 0],
  m_latency_known: 0,
  m_ttft: [0, 0],
  m_ttft_known: 0,
  m_confidence_sum: 0,
  m_confidence_known: 0,
};

/** The facets when there are no requests. */
export const NO_FACETS: FacetRow = {
  m_requests: 0,
  m_confidence_buckets: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  m_first_at: 0,
  m_last_at: 0,
  m_classifier_calls: 0,
  m_classifier_tokens: '0',
  m_classifier_cost: '0',
  m_classifier_priced: 0,
  m_classifier_unpriced: 0,
  m_classifier_latency: [0, 0],
  m_classifier_latency_known: 0,
};

/** The metrics object of spec 2.5. Money is decimal strings of dollars; a ratio with nothing to divide by is null. */
export interface Metrics {
  readonly requests: number;
  readonly tokens: TokenSum;
  readonly spend_usd: string;
  readonly baseline_requests: number;
  readonly baseline_spend_usd: string;
  readonly baseline_cost_usd: string;
  readonly errors: number;
  readonly truncated: number;
  readonly cached: number;
  readonly escalated: number;
  readonly fallbacks: number;
  readonly task_applied: number;
  readonly p50_latency_ms: number | null;
  readonly p95_latency_ms: number | null;
  readonly p50_ttft_ms: number | null;
  readonly avg_confidence: number | null;
  /** Share of all routed requests; in `task_models`, of the requests of that kind of work. */
  readonly share: number | null;
  readonly cost_per_request: string | null;
  readonly savings_usd: string;
  /** Percent of `baseline_cost_usd`. */
  readonly savings_pct: number | null;
  readonly error_rate: number | null;
  readonly truncation_rate: number | null;
}

/** `whole` is the number of requests that `share` is a share of. */
export function metricsOf(row: MetricsRow, whole: number): Metrics {
  const baselineCost = picoOf(row.m_baseline_cost);
  const savings = baselineCost - picoOf(row.m_baseline_spend);
  const requests = row.m_requests;
  return {
    requests,
    tokens: tokenSum(row.m_tokens),
    spend_usd: row.m_spend,
    baseline_requests: row.m_baseline_requests,
    baseline_spend_usd: row.m_baseline_spend,
    baseline_cost_usd: row.m_baseline_cost,
    errors: row.m_errors,
    truncated: row.m_truncated,
    cached: row.m_cached,
    escalated: row.m_escalated,
    fallbacks: row.m_fallbacks,
    task_applied: row.m_task_applied,
    p50_latency_ms: quantileOf(row.m_latency, 0, row.m_latency_known),
    p95_latency_ms: quantileOf(row.m_latency, 1, row.m_latency_known),
    p50_ttft_ms: quantileOf(row.m_ttft, 0, row.m_ttft_known),
    avg_confidence: ratio(row.m_confidence_sum, row.m_confidence_known),
    share: ratio(requests, whole),
    cost_per_request: requests === 0 ? null : formatUsdString(divideRounded(picoOf(row.m_spend), BigInt(requests))),
    savings_usd: formatUsdString(savings),
    savings_pct: baselineCost === 0n ? null : Number(divideRounded(savings * 1_000_000n, baselineCost)) / 10_000,
    error_rate: ratio(row.m_errors, requests),
    truncation_rate: ratio(row.m_truncated, requests),
  };
}

/** Rounded to six places; null when `whole` is 0. */
export function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : Math.round((part / whole) * 1e6) / 1e6;
}

export function quantileOf(values: readonly number[], index: number, known: number): number | null {
  return known === 0 ? null : (values[index] ?? null);
}

/** Rounds to the nearest whole number, halves away from zero. */
function divideRounded(dividend: bigint, divisor: bigint): bigint {
  const [size, by] = [dividend < 0n ? -dividend : dividend, divisor < 0n ? -divisor : divisor];
  const rounded = (2n * size + by) / (2n * by);
  return dividend < 0n !== divisor < 0n ? -rounded : rounded;
}
