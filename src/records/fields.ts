// THE table of the fields of an execution's records: one row for each field. The spool's codec, the columns in Postgres
// and ClickHouse, the list of requests and its export, GET /v1/generation and the OpenAPI document are made from the
// table, in its order.
//
// To add a field, add an optional row here and a migration for each store that is to have a column for it, and raise
// RECORD_FORM. A spool frame that was written before lacks the optional field and is still read.

import type { ApiName } from '../domain/models/apis.ts';
import type { Outcome } from '../domain/settlement/outcome.ts';
import type { Usage, UsageSource } from '../domain/usage/usage.ts';
import {
  amount,
  attempts,
  bytes,
  details,
  duration,
  failures,
  flag,
  instant,
  nullable,
  oneOf,
  route,
  screening,
  status,
  text,
  texts,
  usage,
  uuid,
  uuids,
  type ValueType,
  word,
} from './field-types.ts';

/** Where a field is stored and shown, and under which name. A place without a name does not have the field. */
export interface Places {
  /** Column of the table `generations`. */
  readonly postgres?: string;
  /** Column of the table `request_facts`. */
  readonly clickhouse?: string;
  /** Name in the list of requests and in its export. */
  readonly listed?: string;
  /** Name in the generation record (spec 2.1), which leaves out values that are not known. */
  readonly generation?: string;
}

/**
 * The part of a spool frame that holds a field. Many records of a frame have the same values in `caller`, `deployment`
 * and `ending`, so the frame's dictionary stores each distinct set of values once. `start` and `end` are stored with
 * each record.
 */
export type Part = 'caller' | 'deployment' | 'ending' | 'start' | 'end';

export interface Field<Value, In extends Part, Optional extends boolean, At extends Places> {
  readonly type: ValueType<Value>;
  readonly part: In;
  /** Most records lack the field; a record that has it stores it by name. */
  readonly isOptional: Optional;
  readonly places: At;
}

function rowsOf<In extends Part, Optional extends boolean>(part: In, isOptional: Optional) {
  return <Value, const At extends Places>(type: ValueType<Value>, places: At): Field<Value, In, Optional, At> => ({
    type,
    part,
    isOptional,
    places,
  });
}

/** Who calls, and who pays. */
const caller = rowsOf('caller', false);
/** Which model was requested, and which deployment serves it. */
const deployment = rowsOf('deployment', false);
/** How the execution ended, as words and codes. */
const ending = rowsOf('ending', false);
/** Known at admission. The terminal record repeats these fields, so that each record can be posted alone. */
const start = rowsOf('start', false);
const optionalStart = rowsOf('start', true);
/** Known only at the end. */
const end = rowsOf('end', false);
const optionalEnd = rowsOf('end', true);

/**
 * Matches an `errorCode` that says what was wrong with the reported usage. Such a code is not an error of the reply and
 * is not shown as one. The code of a refusal or error never contains a colon.
 */
export const USAGE_PROBLEM = /^usage_[a-z]+: /;

export const FIELDS = {
  /** Execution id, UUIDv7. */
  id: start(uuid, { postgres: 'id', clickhouse: 'id', listed: 'id', generation: 'id' }),
  admittedAtMs: start(instant, { postgres: 'admitted_at', clickhouse: 'admitted_at', listed: 'created_at' }),
  endedAtMs: end(instant, { postgres: 'ended_at', clickhouse: 'ended_at' }),
  organizationId: caller(uuid, {
    postgres: 'organization_id',
    clickhouse: 'organization_id',
    listed: 'organization_id',
  }),
  teamId: caller(nullable(uuid), { postgres: 'team_id', clickhouse: 'team_id', listed: 'team_id' }),
  userId: caller(nullable(uuid), { postgres: 'user_id', clickhouse: 'user_id', listed: 'user_id' }),
  /** null: the organization is not billed. */
  walletId: caller(nullable(uuid), { postgres: 'wallet_id', clickhouse: 'wallet_id' }),
  outcome: ending(word<Outcome>(), { postgres: 'outcome', clickhouse: 'outcome' }),
  /** Public id of the model that serves; empty where the request was refused before its model was read. */
  model: deployment(text, { postgres: 'model', clickhouse: 'model', listed: 'model', generation: 'model' }),
  /** The model as the client wrote it: an id, an alias or the virtual model; empty as above. */
  requestedModel: deployment(text, {
    postgres: 'requested_model',
    clickhouse: 'requested_model',
    listed: 'requested_model',
  }),
  /** Empty where the request was refused before a provider was chosen; the listing shows null then. */
  provider: deployment(text, { postgres: 'provider', clickhouse: 'provider', listed: 'provider' }),
  providerModel: deployment(text, { postgres: 'provider_model', clickhouse: 'provider_model' }),
  priceVersion: deployment(nullable(text), { postgres: 'price_version', clickhouse: 'price_version' }),
  api: deployment(word<ApiName>(), { postgres: 'api', clickhouse: 'api', listed: 'api' }),
  streamed: deployment(flag, {
    postgres: 'streamed',
    clickhouse: 'streamed',
    listed: 'streamed',
    generation: 'streamed',
  }),
  /** HTTP status that the client got; null when the client left before a status was sent. */
  status: ending(nullable(status), { postgres: 'status', clickhouse: 'status', listed: 'status' }),
  /**
   * Code of the refusal or of the provider's error, if there is one. Where the reported usage could not be used as
   * reported, what was wrong with it (`USAGE_PROBLEM`).
   */
  errorCode: ending(nullable(text), { postgres: 'error_code', clickhouse: 'error_code', listed: 'error' }),
  /** USAGE_FIELDS has the columns and names of the counts. */
  usage: end(nullable(usage), {}),
  /** What the cost depends on beyond the counts, where it is not the default. With it a bill can be rated again. */
  usageDetails: optionalEnd(nullable(details), { postgres: 'usage_details', generation: 'usage_details' }),
  usageSource: ending(nullable(word<UsageSource>()), { postgres: 'usage_source', clickhouse: 'usage_source' }),
  billingStatus: ending(oneOf('final', 'pending', 'not_billed', 'cancelled'), {
    postgres: 'billing_status',
    clickhouse: 'billing_status',
    listed: 'billing_status',
    generation: 'billing_status',
  }),
  /** What the wallet pays; null when not billed or not known. */
  charge: end(nullable(amount), { postgres: 'charge', clickhouse: 'total_cost', generation: 'total_cost' }),
  /** Cost of the usage that was measured; null when it cannot be known. */
  ratedCost: end(nullable(amount), { postgres: 'rated_cost', clickhouse: 'rated_cost', generation: 'rated_cost' }),
  /** The hold: the worst-case cost; null when not billed. */
  authorizedAmount: start(nullable(amount), {
    postgres: 'authorized_amount',
    clickhouse: 'authorized_amount',
    generation: 'authorized_amount',
  }),
  /**
   * Rated cost that exceeds the hold or cannot be trusted. It is posted to suspense and never to the wallet. Normally
   * "0".
   */
  suspense: end(amount, { postgres: 'suspense', clickhouse: 'suspense' }),
  latencyMs: end(duration, { postgres: 'latency_ms', clickhouse: 'latency_ms', listed: 'latency_ms' }),
  ttftMs: end(nullable(duration), { postgres: 'ttft_ms', clickhouse: 'ttft_ms', listed: 'ttft_ms' }),
  requestBytes: start(bytes, { postgres: 'request_bytes', clickhouse: 'request_bytes' }),
  responseBytes: end(bytes, { postgres: 'response_bytes', clickhouse: 'response_bytes' }),
  tags: start(texts, { postgres: 'tags', clickhouse: 'tags', listed: 'tags' }),
  clientRequestId: start(nullable(text), {
    postgres: 'client_request_id',
    clickhouse: 'client_request_id',
    listed: 'client_request_id',
  }),
  apiKeyId: caller(uuid, { postgres: 'api_key_id', clickhouse: 'api_key_id', listed: 'api_key_id' }),
  /** Why this model serves a request for the virtual model (spec 2.4). ClickHouse columns: route-columns.ts. */
  route: optionalStart(nullable(route), { postgres: 'model_route', listed: 'model_route' }),
  /** What the same tokens would cost on the route's baseline model. Postgres keeps the amount within `model_route`. */
  baselineCost: optionalEnd(nullable(amount), { clickhouse: 'route_baseline_cost' }),
  /** The provider ended the reply at its output limit (spec 2.5). */
  truncated: optionalEnd(flag, { postgres: 'truncated', clickhouse: 'truncated' }),
  /** Name of the guardrail rule that acted (spec 7.7). */
  guardrail: optionalEnd(nullable(text), { postgres: 'guardrail', clickhouse: 'guardrail', listed: 'guardrail' }),
  /** What guardrails did at each stage, in names and counts (spec 7.7). */
  screening: optionalEnd(nullable(screening), { postgres: 'screening', generation: 'guardrail' }),
  /** The organization's own key that served, or was tried last; null: the service's key. */
  credentialId: optionalStart(nullable(uuid), {
    postgres: 'credential_id',
    clickhouse: 'credential_id',
    listed: 'credential_id',
    generation: 'credential_id',
  }),
  /** The organization's own keys that could not serve the request. */
  ownFailures: optionalEnd(nullable(failures), { postgres: 'own_failures', generation: 'own_failures' }),
  /** The calls to providers, where there was more than one. */
  attempts: optionalEnd(nullable(attempts), { postgres: 'attempts' }),
  /** What the platform charged for the use of an own key. The charge consists of this fee alone. */
  fee: optionalEnd(nullable(amount), { postgres: 'fee', clickhouse: 'fee', generation: 'fee' }),
  /** The client's W3C trace context, where traces are exported. */
  traceparent: optionalStart(nullable(text), {}),
  /** Pools of budgets (grant ids) from which the execution is held. */
  budgets: optionalStart(uuids, { postgres: 'budgets' }),
  /** How much of each of `budgets` was used, at most the hold. */
  budgetUse: optionalEnd(nullable(amount), { postgres: 'budget_use' }),
  /** The provider's id of a response that it has saved (`resp_...`, spec 4.2). */
  responseId: optionalEnd(nullable(text), {}),
  /** The provider's ids of that response's items, by which a later request may refer to them. */
  itemIds: optionalEnd(texts, {}),
} as const;

/** The counts of `usage`, one column each. A spool frame stores counts by position, so a new count must come last. */
export const USAGE_FIELDS = {
  inputTokens: {
    postgres: 'input_tokens',
    clickhouse: 'tokens_prompt',
    listed: 'tokens_prompt',
    generation: 'native_tokens_prompt',
  },
  outputTokens: {
    postgres: 'output_tokens',
    clickhouse: 'tokens_completion',
    listed: 'tokens_completion',
    generation: 'native_tokens_completion',
  },
  cachedInputTokens: { postgres: 'cached_input_tokens', clickhouse: 'tokens_cached', listed: 'tokens_cached' },
  cacheWriteTokens: { postgres: 'cache_write_tokens', clickhouse: 'tokens_cache_write' },
  reasoningTokens: { postgres: 'reasoning_tokens', clickhouse: 'tokens_reasoning' },
  images: { postgres: 'images', clickhouse: 'images' },
} as const satisfies { readonly [Count in Exclude<keyof Usage, 'hourCacheWriteTokens' | 'details'>]: Places };

/**
 * The record form that this version writes, and the newest form that it reads. The owner file of a spool names the
 * spool's form. A version that adds fields raises the form by one. Older forms are still read: fields that a form added
 * are optional, and an absent field means null, false or an empty list. A spool in a newer form waits for a version
 * that knows the form, because the values of unknown fields would be lost.
 */
export const RECORD_FORM = 1;

export type FieldName = keyof typeof FIELDS;
export type UsageCount = keyof typeof USAGE_FIELDS;
/** The members that the fields of these parts have in a record. */
export type ValuesOf<In extends Part> = {
  readonly [Name in FieldName as (typeof FIELDS)[Name] extends Field<unknown, In, false, Places>
    ? Name
    : never]: ValueOf<Name>;
} & {
  readonly [Name in FieldName as (typeof FIELDS)[Name] extends Field<unknown, In, true, Places>
    ? Name
    : never]?: ValueOf<Name>;
};
export type ValueOf<Name extends FieldName> =
  (typeof FIELDS)[Name]['type'] extends ValueType<infer Value> ? Value : never;

/** The rows of the table with their names, in the table's order. */
export const FIELD_ROWS: readonly (readonly [FieldName, Field<unknown, Part, boolean, Places>])[] = Object.entries(
  FIELDS,
) as [FieldName, Field<unknown, Part, boolean, Places>][];
export const USAGE_ROWS: readonly (readonly [UsageCount, Places])[] = Object.entries(USAGE_FIELDS) as [
  UsageCount,
  Places,
][];
