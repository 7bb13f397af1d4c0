// Which refusals a route can answer with, for its statuses and codes in the OpenAPI document: one row for each kind. A
// new kind without a row does not compile.

import type { RefusalKind } from '../../domain/refusals/refusal.ts';
import { REFUSAL_RULES } from '../../domain/refusals/refusal-rules.ts';
import type { DescribedRoute } from './described-route.ts';

type Where = (route: DescribedRoute) => boolean;

const anywhere: Where = () => true;
const nowhere: Where = () => false;
/** Routes that need a credential. */
const guarded: Where = ({ plane }) => plane !== 'process';
const inScope: Where = ({ scope }) => scope !== 'none' && scope !== 'person';
const permitted: Where = ({ permission, scope }) => permission !== null || scope === 'person';
/** Generations and saved responses. */
const relayed: Where = ({ plane }) => plane === 'data';
const taking: Where = ({ description }) => description.body !== null || description.form !== undefined;
const takingJson: Where = ({ description }) => description.body !== null;
const generating: Where = (route) => relayed(route) && taking(route);
const routed: Where = ({ description }) => description.isRouted === true;
/** The dry run of routing is screened as the request would be. */
const screened: Where = (route) => generating(route) || route.path === '/v1/admin/routing/preview';
/** Uploaded files. */
const ofMedia: Where = ({ description }) => description.isOfMedia === true;
const uploading: Where = (route) => ofMedia(route) && route.method === 'POST';
const servingBytes: Where = ({ description }) => description.isBytes === true;
const takingForm: Where = ({ description }) => description.form !== undefined;
const evaluating: Where = ({ path }) => path === '/v1/systemone';
const ofResponses: Where = (route) => relayed(route) && route.path.startsWith('/v1/responses');
/** Routes whose answer depends on what jobs has posted. */
const postedFirst: Where = (route) => ofResponses(route) || route.path.startsWith('/v1/generation');
const reporting: Where = ({ description }) => description.isReport === true;
/** The console, where it is switched off or has no such file. */
const ofConsole: Where = ({ path }) => path.startsWith('/console') || /^\/v1\/console\/(sign-in|oidc)/.test(path);
const signingIn: Where = (route) => ofConsole(route) && route.method === 'POST';
/** The session of the console, the sign-in that opens it, and the playground key that it gives. */
const ofSessions: Where = (route) => /^\/v1\/console\/(session|playground-key)$/.test(route.path) || signingIn(route);
const control: Where = ({ plane }) => plane === 'control';
const changing: Where = (route) => control(route) && route.method !== 'GET';
const ofOwnKeys: Where = ({ envelope }) => envelope === 'provider_keys';
const changingOwnKeys: Where = (route) => ofOwnKeys(route) && route.method !== 'GET';
/** GET /v1/responses, which exists only to be refused. */
const neverServed: Where = ({ description }) => description.status === null;

const WHERE: Readonly<Record<RefusalKind, Where>> = {
  authentication_required: guarded,
  unauthorized: (route) => guarded(route) || signingIn(route),
  scope_required: inScope,
  permission_denied: (route) => permitted(route) || signingIn(route),
  authorization_unavailable: (route) => guarded(route) || signingIn(route),
  delegation_token_unavailable: reporting,
  length_required: taking,
  transfer_encoding_refused: anywhere,
  invalid_target: anywhere,
  repeated_header: anywhere,
  unsendable_header: relayed,
  body_too_large: takingJson,
  context_length_exceeded: evaluating,
  request_timeout: taking,
  unsupported_media_type: taking,
  // These two are answers where the document has no operation.
  unknown_path: nowhere,
  method_not_allowed: neverServed,
  not_found: (route) => control(route) || servingBytes(route) || ofConsole(route),
  response_not_found: ofResponses,
  not_posted_yet: postedFirst,
  websocket_not_supported: neverServed,
  invalid_json: takingJson,
  invalid_utf8: takingJson,
  body_not_an_object: takingJson,
  body_too_deep: generating,
  duplicate_key: generating,
  invalid_form: takingForm,
  missing_model: generating,
  model_not_a_string: generating,
  invalid_field: (route) => control(route) || generating(route) || signingIn(route),
  conflict: (route) => changing(route) || signingIn(route) || route.takesSession === true,
  owner_floor: changing,
  too_many_changes: changing,
  unknown_model: (route) => generating(route) || route.takesRest === true,
  api_not_supported: generating,
  media_not_available: ofMedia,
  file_too_large: uploading,
  media_quota_exceeded: uploading,
  range_not_satisfiable: servingBytes,
  media_storage_unavailable: (route) => uploading(route) || servingBytes(route),
  insufficient_credit: generating,
  billing_frozen: generating,
  not_safely_billable: generating,
  billing_unavailable: relayed,
  principal_provisioning: generating,
  usage_limit_exceeded: generating,
  rate_limit: generating,
  concurrency_limit: generating,
  upstream_cooldown: generating,
  traffic_token_bound_required: generating,
  traffic_capacity_unavailable: generating,
  guardrail_blocked: screened,
  guardrail_unread: screened,
  guardrail_unavailable: (route) => screened(route) || route.path.endsWith('/guardrails/test'),
  routing_denied: routed,
  routing_too_large: routed,
  routing_unavailable: routed,
  reports_unavailable: reporting,
  sessions_unavailable: ofSessions,
  byok_disabled: changingOwnKeys,
  byok_kind_not_allowed: changingOwnKeys,
  key_rejected: changingOwnKeys,
  byok_encryption_unconfigured: changingOwnKeys,
  byok_key_unavailable: relayed,
  upstream_unreachable: relayed,
  upstream_timeout: relayed,
  store_busy: (route) => guarded(route) || signingIn(route),
  store_unavailable: (route) => guarded(route) || servingBytes(route),
  provider_unavailable: relayed,
  internal_error: anywhere,
  overloaded: (route) => generating(route) || uploading(route) || servingBytes(route),
  draining: guarded,
};

const KINDS = Object.keys(WHERE) as RefusalKind[];

/** The kinds that a route can answer with, by status. */
export function refusalsOf(route: DescribedRoute): ReadonlyMap<number, readonly RefusalKind[]> {
  const kinds = KINDS.filter((kind) => WHERE[kind](route)).toSorted(
    (one, other) => REFUSAL_RULES[one].status - REFUSAL_RULES[other].status,
  );
  return Map.groupBy(kinds, (kind) => REFUSAL_RULES[kind].status);
}
