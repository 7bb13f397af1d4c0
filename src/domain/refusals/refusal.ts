// Every expected no of the service, as one discriminated union (STYLE 3.6). What each kind means to a client is its row
// in refusal-rules.ts; how it becomes bytes is render.ts. Faults (bugs, lost dependencies) are thrown Errors and are
// not here.

import type { PicoUsd } from '../money/pico-usd.ts';

/** For refusals that time cures: how long, when it is known better than the row's default. */
interface Later {
  readonly retryAfterMs?: number;
}

/** Which limit said no, as shown in `result` (spec 7.4). */
export type LimitResult = Readonly<Record<string, string | number | boolean | null>>;

interface Limited extends Later {
  readonly result?: LimitResult;
}

/** Which rule of a guardrail said no (spec 7.7). Names alone: what matched is never among them. */
export interface GuardrailFinding {
  readonly policy: string;
  readonly rule: string;
  readonly entity: string | null;
  readonly stage: string;
}

export type Refusal =
  // The gateway's own, before the route is reached (spec 7.6).
  | { readonly kind: 'authentication_required' }
  | { readonly kind: 'unauthorized' }
  | { readonly kind: 'scope_required' }
  | { readonly kind: 'permission_denied' }
  | ({ readonly kind: 'authorization_unavailable' } & Later)
  | ({ readonly kind: 'delegation_token_unavailable' } & Later)
  // The HTTP frame.
  | { readonly kind: 'length_required' }
  | { readonly kind: 'transfer_encoding_refused' }
  | { readonly kind: 'repeated_header'; readonly name: string }
  | { readonly kind: 'unsendable_header'; readonly name: string }
  | { readonly kind: 'body_too_large'; readonly limitBytes: number }
  | { readonly kind: 'request_timeout' }
  | { readonly kind: 'unsupported_media_type'; readonly expected?: string }
  | { readonly kind: 'unknown_path'; readonly path: string; readonly hint?: string | null }
  | { readonly kind: 'method_not_allowed'; readonly allow?: readonly string[] }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'response_not_found' }
  | { readonly kind: 'websocket_not_supported' }
  // The body and the model it names.
  | { readonly kind: 'invalid_json'; readonly offset?: number }
  | { readonly kind: 'invalid_utf8' }
  | { readonly kind: 'body_not_an_object' }
  | { readonly kind: 'body_too_deep'; readonly depthMax?: number }
  | { readonly kind: 'duplicate_key'; readonly key: string }
  | { readonly kind: 'invalid_form'; readonly reason: string }
  | { readonly kind: 'missing_model' }
  | { readonly kind: 'model_not_a_string' }
  | { readonly kind: 'invalid_field'; readonly field: string; readonly reason: string }
  // What exists, and would no longer hold together (spec 7.8).
  | { readonly kind: 'conflict'; readonly reason: string }
  | { readonly kind: 'owner_floor' }
  // Changes over the control plane, which come faster than one person or organization may make them.
  | ({ readonly kind: 'too_many_changes' } & Later)
  | { readonly kind: 'unknown_model'; readonly model: string }
  | { readonly kind: 'api_not_supported'; readonly model: string; readonly api: string }
  // Admission: credit (spec 7.4).
  | { readonly kind: 'insufficient_credit'; readonly authorizedAmount?: PicoUsd; readonly available?: PicoUsd }
  | { readonly kind: 'billing_frozen' }
  | { readonly kind: 'not_safely_billable'; readonly field: string; readonly reason?: string; readonly advice?: string }
  | ({ readonly kind: 'billing_unavailable' } & Later)
  | ({ readonly kind: 'principal_provisioning' } & Later)
  // Admission: usage budgets and traffic (spec 7.4).
  | ({ readonly kind: 'usage_limit_exceeded' } & Limited)
  | ({ readonly kind: 'rate_limit' } & Limited)
  | ({ readonly kind: 'concurrency_limit' } & Limited)
  | ({ readonly kind: 'upstream_cooldown' } & Limited)
  | { readonly kind: 'traffic_token_bound_required'; readonly field: string; readonly result?: LimitResult }
  | ({ readonly kind: 'traffic_capacity_unavailable' } & Limited)
  // Guardrails (spec 7.7).
  | { readonly kind: 'guardrail_blocked'; readonly guardrail: GuardrailFinding }
  | ({ readonly kind: 'guardrail_unavailable' } & Later)
  // Auto routing (spec 4.11).
  | { readonly kind: 'routing_denied' }
  | ({ readonly kind: 'routing_unavailable' } & Later)
  // Reports (DESIGN 5, 8).
  | ({ readonly kind: 'reports_unavailable' } & Later)
  // The provider and ourselves.
  | { readonly kind: 'byok_key_unavailable'; readonly provider?: string }
  | ({ readonly kind: 'upstream_unreachable' } & Later)
  | ({ readonly kind: 'upstream_timeout' } & Later)
  | ({ readonly kind: 'store_busy' } & Later)
  | { readonly kind: 'provider_unavailable' }
  | { readonly kind: 'internal_error' }
  | ({ readonly kind: 'overloaded' } & Later)
  | ({ readonly kind: 'draining' } & Later);

export type RefusalKind = Refusal['kind'];
