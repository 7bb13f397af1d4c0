// Every refusal of the service (an expected "no") as one discriminated union. What each kind means to a client is its
// row in refusal-rules.ts; render.ts turns it into bytes. Faults (bugs, lost dependencies) are thrown Errors and are
// not here.

import type { PicoUsd } from '../money/pico-usd.ts';
import type { PassedOverKey } from '../own-keys/attempt-order.ts';

/** For refusals that pass with time: how long to wait, if it is known better than the row's default. */
interface Later {
  readonly retryAfterMs?: number;
}

/** The limit that was reached, as shown in `result` (spec 7.4). */
export type LimitResult = Readonly<Record<string, string | number | boolean | null>>;

interface Limited extends Later {
  readonly result?: LimitResult;
}

/** For a request that could cost more than is available. */
interface TooDear {
  /** The most that it can cost. */
  readonly authorizedAmount?: PicoUsd;
  /** Advice how the request could cost less. Absent: by a lower output limit. */
  readonly cheaper?: string;
}

/** Own keys that were for the request and could not serve it. They go into its record, never into an answer. */
interface PassedOver {
  readonly passedOver?: readonly PassedOverKey[];
}

/** The guardrail rule that blocked the request (spec 7.7). It holds names only, never the text that matched. */
export interface GuardrailFinding {
  readonly policy: string;
  readonly rule: string;
  readonly entity: string | null;
  readonly stage: string;
}

export type Refusal =
  // Refused before the request reaches its route (spec 7.6).
  | { readonly kind: 'authentication_required' }
  | { readonly kind: 'unauthorized' }
  | { readonly kind: 'scope_required' }
  | { readonly kind: 'permission_denied' }
  | ({ readonly kind: 'authorization_unavailable' } & Later)
  | ({ readonly kind: 'delegation_token_unavailable' } & Later)
  // What is wrong with the HTTP message.
  | { readonly kind: 'length_required' }
  | { readonly kind: 'transfer_encoding_refused' }
  | { readonly kind: 'invalid_target' }
  | { readonly kind: 'repeated_header'; readonly name: string }
  | { readonly kind: 'unsendable_header'; readonly name: string }
  | { readonly kind: 'body_too_large'; readonly limitBytes: number }
  | { readonly kind: 'context_length_exceeded'; readonly contextLength: number }
  | { readonly kind: 'request_timeout' }
  // `expected`: what the endpoint takes. `isEncoded`: the body has a Content-Encoding, by which it is compressed.
  | { readonly kind: 'unsupported_media_type'; readonly expected?: string; readonly isEncoded?: true }
  | { readonly kind: 'unknown_path'; readonly path: string; readonly hint?: string | null }
  | { readonly kind: 'method_not_allowed'; readonly allow?: readonly string[] }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'response_not_found' }
  | ({ readonly kind: 'not_posted_yet' } & Later)
  | { readonly kind: 'websocket_not_supported' }
  // What is wrong with the body or the model that it names.
  | { readonly kind: 'invalid_json'; readonly offset?: number }
  | { readonly kind: 'invalid_utf8' }
  | { readonly kind: 'body_not_an_object' }
  | { readonly kind: 'body_too_deep'; readonly depthMax?: number }
  | { readonly kind: 'duplicate_key'; readonly key: string }
  | { readonly kind: 'invalid_form'; readonly reason: string }
  | { readonly kind: 'missing_model'; readonly isEmpty?: true }
  | { readonly kind: 'model_not_a_string' }
  | { readonly kind: 'invalid_field'; readonly field: string; readonly reason: string }
  // Changes that contradict what exists (spec 7.8).
  | { readonly kind: 'conflict'; readonly reason: string }
  | { readonly kind: 'owner_floor' }
  // Changes over the control plane come faster than one person or organization may make them.
  | ({ readonly kind: 'too_many_changes' } & Later)
  | { readonly kind: 'unknown_model'; readonly model: string }
  | { readonly kind: 'api_not_supported'; readonly model: string; readonly api: string }
  // Uploaded files (spec 4.7).
  | { readonly kind: 'media_not_available' }
  | { readonly kind: 'file_too_large'; readonly limitBytes: number }
  | { readonly kind: 'media_quota_exceeded'; readonly limitBytes: number }
  | { readonly kind: 'range_not_satisfiable'; readonly bytes: number }
  | ({ readonly kind: 'media_storage_unavailable' } & Later)
  // Admission: credit (spec 7.4).
  | ({ readonly kind: 'insufficient_credit'; readonly available?: PicoUsd } & TooDear)
  | { readonly kind: 'billing_frozen' }
  | { readonly kind: 'not_safely_billable'; readonly field: string; readonly reason?: string; readonly advice?: string }
  | ({ readonly kind: 'billing_unavailable' } & Later)
  | ({ readonly kind: 'principal_provisioning' } & Later)
  // Admission: usage budgets and traffic (spec 7.4).
  | ({ readonly kind: 'usage_limit_exceeded' } & Limited & TooDear)
  | ({ readonly kind: 'rate_limit' } & Limited)
  | ({ readonly kind: 'concurrency_limit' } & Limited)
  | ({ readonly kind: 'upstream_cooldown' } & Limited & PassedOver)
  | {
      readonly kind: 'traffic_token_bound_required';
      readonly field: string;
      /** What needs the bound. Absent: a limit on tokens per minute. */
      readonly under?: 'budget';
      readonly reason?: string;
      readonly advice?: string;
      readonly result?: LimitResult;
    }
  | ({ readonly kind: 'traffic_capacity_unavailable' } & Limited)
  // Guardrails (spec 7.7).
  | { readonly kind: 'guardrail_blocked'; readonly guardrail: GuardrailFinding }
  // The guardrails could not be loaded or, with `unread`, did not look at all of the request in time.
  | ({ readonly kind: 'guardrail_unavailable'; readonly unread?: 'input' } & Later)
  // The guardrails could not look at all of it. It is not retryable: the same request would fail again, and another
  // reply would have to be paid for.
  | { readonly kind: 'guardrail_unread'; readonly unread: 'input' | 'output' }
  // Auto routing (spec 4.11).
  | { readonly kind: 'routing_denied' }
  | { readonly kind: 'routing_too_large' }
  | ({ readonly kind: 'routing_unavailable' } & Later)
  // Reports, and sessions of the console.
  | ({ readonly kind: 'reports_unavailable' } & Later)
  | ({ readonly kind: 'sessions_unavailable' } & Later)
  // Management of own provider keys (spec 7.4).
  | { readonly kind: 'byok_disabled' }
  | { readonly kind: 'byok_kind_not_allowed' }
  | { readonly kind: 'key_rejected'; readonly why: 'refused' | 'silent' | 'given_for_another' }
  | { readonly kind: 'byok_encryption_unconfigured' }
  // Failures of the provider and of the service itself.
  | ({
      readonly kind: 'byok_key_unavailable';
      readonly provider?: string;
      /** The keys could not be looked up at the moment. Absent: they are known, and none can serve. */
      readonly isNotLookedUp?: true;
    } & PassedOver)
  | ({ readonly kind: 'upstream_unreachable' } & Later)
  | ({ readonly kind: 'upstream_timeout' } & Later)
  | ({ readonly kind: 'store_busy' } & Later)
  | ({ readonly kind: 'store_unavailable' } & Later)
  | { readonly kind: 'provider_unavailable' }
  | { readonly kind: 'internal_error' }
  | ({ readonly kind: 'overloaded' } & Later)
  | ({ readonly kind: 'draining' } & Later);

export type RefusalKind = Refusal['kind'];
