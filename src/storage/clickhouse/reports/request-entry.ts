// One recorded request as listings show it (DESIGN 6), with its routing decision (spec 2.4).

import { SPEND } from './metrics.ts';

/** Fields that do not apply are absent. */
export interface EntryRoute {
  readonly requested: string;
  readonly tier?: string;
  readonly classified_tier?: string;
  readonly reason: string;
  readonly confidence?: number;
  readonly cached: boolean;
  readonly task?: string;
  readonly picked_by?: string;
  readonly correction: boolean;
  readonly previous_model?: string;
  readonly previous_tier?: string;
  readonly sticky: boolean;
  readonly baseline_model?: string;
  readonly baseline_cost_usd?: string;
}

export interface RequestEntry {
  readonly id: string;
  readonly created_at: string;
  readonly model: string;
  readonly requested_model: string;
  /** null: the request was refused before anybody was to serve it. */
  readonly provider: string | null;
  readonly api: string;
  readonly streamed: boolean;
  /** HTTP status that the client got; null when it left before one was sent. */
  readonly status: number | null;
  readonly error: string | null;
  readonly tokens_prompt: number | null;
  readonly tokens_completion: number | null;
  readonly tokens_cached: number | null;
  /** Dollars; null: not known. */
  readonly cost: string | null;
  readonly currency: 'USD';
  readonly billing_status: string;
  readonly latency_ms: number | null;
  readonly ttft_ms: number | null;
  readonly tags: readonly string[];
  readonly client_request_id: string | null;
  readonly api_key_id: string;
  /** null: the client named its model. */
  readonly model_route: EntryRoute | null;
}

/** Select list of an entry. No name hides a column that a condition may use. */
export const ENTRY_COLUMNS = `toString(id) AS entry_id, toUnixTimestamp64Milli(admitted_at) AS created_ms, model, requested_model, provider, api, streamed, status, error_code,
  tokens_prompt, tokens_completion, tokens_cached, toString(${SPEND}) AS cost, billing_status, latency_ms, ttft_ms, tags, client_request_id,
  toString(api_key_id) AS key_id, routed, route_tier, route_classified_tier, route_reason, route_confidence, route_cached, route_task, route_picked_by,
  route_correction, route_previous_model, route_previous_tier, route_sticky, route_baseline_model, toString(route_baseline_cost) AS baseline_cost`;

export interface EntryRow
  extends Pick<
    RequestEntry,
    | 'model'
    | 'requested_model'
    | 'api'
    | 'streamed'
    | 'status'
    | 'tokens_prompt'
    | 'tokens_completion'
    | 'tokens_cached'
    | 'cost'
    | 'billing_status'
    | 'latency_ms'
    | 'ttft_ms'
    | 'tags'
    | 'client_request_id'
  > {
  readonly entry_id: string;
  readonly provider: string;
  readonly created_ms: number;
  readonly error_code: string | null;
  readonly key_id: string;
  readonly routed: boolean;
  readonly route_tier: string;
  readonly route_classified_tier: string;
  readonly route_reason: string;
  readonly route_confidence: number | null;
  readonly route_cached: boolean;
  readonly route_task: string;
  readonly route_picked_by: string;
  readonly route_correction: boolean;
  readonly route_previous_model: string;
  readonly route_previous_tier: string;
  readonly route_sticky: boolean;
  readonly route_baseline_model: string;
  readonly baseline_cost: string | null;
}

export function requestEntry(row: EntryRow): RequestEntry {
  return {
    id: row.entry_id,
    created_at: new Date(row.created_ms).toISOString(),
    model: row.model,
    requested_model: row.requested_model,
    provider: row.provider === '' ? null : row.provider,
    api: row.api,
    streamed: row.streamed,
    status: row.status,
    error: row.error_code,
    tokens_prompt: row.tokens_prompt,
    tokens_completion: row.tokens_completion,
    tokens_cached: row.tokens_cached,
    cost: row.cost,
    currency: 'USD',
    billing_status: row.billing_status,
    latency_ms: row.latency_ms,
    ttft_ms: row.ttft_ms,
    tags: row.tags,
    client_request_id: row.client_request_id,
    api_key_id: row.key_id,
    model_route: row.routed ? entryRoute(row) : null,
  };
}

function entryRoute(row: EntryRow): EntryRoute {
  return {
    requested: row.requested_model,
    ...named('tier', row.route_tier),
    ...named('classified_tier', row.route_classified_tier),
    reason: row.route_reason,
    ...(row.route_confidence === null ? {} : { confidence: row.route_confidence }),
    cached: row.route_cached,
    ...named('task', row.route_task),
    ...named('picked_by', row.route_picked_by),
    correction: row.route_correction,
    ...named('previous_model', row.route_previous_model),
    ...named('previous_tier', row.route_previous_tier),
    sticky: row.route_sticky,
    ...named('baseline_model', row.route_baseline_model),
    ...(row.baseline_cost === null ? {} : { baseline_cost_usd: row.baseline_cost }),
  };
}

/** In the facts, what does not apply is the empty string. */
function named<Name extends string>(name: Name, value: string): { readonly [name in Name]?: string } {
  return value === '' ? {} : ({ [name]: value } as { readonly [name in Name]: string });
}
