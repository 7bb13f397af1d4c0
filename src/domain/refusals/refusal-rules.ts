// One row for each kind of refusal: its status, code, retry rule and words. A new kind without a row does not compile.

import { SECOND_MS } from '../../platform/durations.ts';
import { ADMISSION_RULES } from './admission-rules.ts';
import { BYOK_RULES } from './byok-rules.ts';
import { GATEWAY_RULES } from './gateway-rules.ts';
import { MEDIA_RULES } from './media-rules.ts';
import { MESSAGE_RULES } from './message-rules.ts';
import { quoteShort } from './quote-short.ts';
import type { Refusal, RefusalKind } from './refusal.ts';
import { RETRY_LATER, type RefusalRule, type RefusalRules } from './refusal-rule.ts';

/** The default, used if the refusal does not name the limit. */
const BODY_DEPTH_MAX = 256;

/** What guardrails could not do, and what became of the request. */
const NOT_DONE = {
  load: 'be loaded, so the request was not sent to a provider.',
  input: 'look at all of the request, so it was not sent to a provider.',
  output: 'look at all of the reply, so it is withheld.',
} as const;

export const REFUSAL_RULES: RefusalRules<RefusalKind> = {
  ...GATEWAY_RULES,
  ...MESSAGE_RULES,
  context_length_exceeded: {
    status: 413,
    family: 'request',
    retryable: false,
    summary: ({ contextLength }) =>
      `The state and the longest question do not fit the model’s context of ${contextLength} tokens together.`,
    advice: 'Send less "state", or a shorter question.',
    param: 'state',
  },
  unknown_path: {
    status: 404,
    family: 'request',
    retryable: false,
    // The hint is part of the summary because many clients show only one of the two texts.
    summary: ({ path, hint }) => `There is no endpoint at ${quoteShort(path)}.${hint == null ? '' : ` ${hint}`}`,
    advice: ({ hint }) => (hint == null ? 'Check the path and the base URL of your client.' : null),
  },
  method_not_allowed: {
    status: 405,
    family: 'request',
    retryable: false,
    summary: 'This endpoint does not accept the request method.',
    advice: ({ allow }) =>
      allow === undefined || allow.length === 0 ? 'Check the method of the request.' : `Use ${allow.join(' or ')}.`,
  },
  not_found: {
    status: 404,
    family: 'request',
    retryable: false,
    summary: 'There is nothing under this id that this credential may see.',
    advice: 'Check the id, and that the key belongs to the organization and payer that made it.',
  },
  response_not_found: {
    status: 404,
    code: 'response_not_found',
    family: 'request',
    retryable: false,
    summary: 'There is no saved response under this id that this credential may use.',
    advice: 'Check the id, and that the key belongs to the organization and payer that created the response.',
  },
  not_posted_yet: {
    status: 503,
    family: 'service',
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: 'Requests of the last moments are still being recorded, so it is not known yet whether this id exists.',
    advice: RETRY_LATER,
  },
  websocket_not_supported: {
    status: 426,
    family: 'request',
    retryable: false,
    summary: 'WebSocket connections are not supported.',
    advice: 'Use POST over HTTPS; it is the only supported transport.',
  },

  invalid_json: {
    status: 400,
    family: 'request',
    retryable: false,
    summary: ({ offset }) => `The request body is not valid JSON${offset === undefined ? '' : ` (at byte ${offset})`}.`,
    advice: 'Send one JSON object.',
  },
  invalid_utf8: {
    status: 400,
    family: 'request',
    retryable: false,
    summary: 'The request body is not valid UTF-8.',
    advice: 'Encode the JSON as UTF-8.',
  },
  body_not_an_object: {
    status: 400,
    family: 'request',
    retryable: false,
    summary: 'The request body is not a JSON object.',
    advice: 'Send one JSON object.',
  },
  body_too_deep: {
    status: 400,
    family: 'request',
    retryable: false,
    summary: ({ depthMax }) =>
      `The JSON of the request body is nested more than ${depthMax ?? BODY_DEPTH_MAX} levels deep.`,
    advice: 'Flatten the structure, or send it as a string.',
  },
  duplicate_key: {
    status: 400,
    family: 'request',
    retryable: false,
    summary: ({ key }) => `The field ${quoteShort(key)} appears more than once in the request body.`,
    advice: 'Send it once.',
    param: ({ key }) => key,
  },
  invalid_form: {
    status: 400,
    family: 'request',
    retryable: false,
    summary: ({ reason }) => `The multipart form in the request body cannot be read: ${reason}.`,
    advice: 'Let an HTTP client library write the form, and its Content-Type with it.',
  },
  missing_model: {
    status: 400,
    family: 'request',
    retryable: false,
    param: 'model',
    summary: ({ isEmpty }) =>
      isEmpty === true ? 'The field "model" of the request body is empty.' : 'The request body has no "model" field.',
    advice: 'Name a model; GET /v1/models lists those you can use.',
  },
  model_not_a_string: {
    status: 400,
    family: 'request',
    retryable: false,
    param: 'model',
    summary: 'The field "model" is not a string.',
    advice: 'Send the id of a model as a string; GET /v1/models lists those you can use.',
  },
  invalid_field: {
    status: 400,
    family: 'request',
    retryable: false,
    summary: ({ field, reason }) => `The field ${quoteShort(field)} is not valid: ${reason}.`,
    param: ({ field }) => field,
  },
  conflict: {
    status: 409,
    family: 'request',
    retryable: false,
    summary: ({ reason }) => `The request contradicts what exists: ${reason}.`,
  },
  owner_floor: {
    status: 409,
    family: 'request',
    retryable: false,
    isCodePublished: true,
    summary: 'This is the last owner, and an organization or team is never left without one.',
    advice: 'Make another member an owner first.',
  },
  too_many_changes: {
    status: 429,
    family: 'request',
    retryable: true,
    retryAfterMs: SECOND_MS,
    summary: 'Changes by this person or in this organization come faster than they may.',
    advice: RETRY_LATER,
  },
  unknown_model: {
    // OpenAI's own code, so that clients which know it show the right message.
    status: 404,
    code: 'model_not_found',
    family: 'request',
    retryable: false,
    param: 'model',
    summary: ({ model }) => `The model ${quoteShort(model)} does not exist or is not available to you.`,
    advice: 'GET /v1/models lists the models you can use.',
  },
  api_not_supported: {
    status: 400,
    family: 'request',
    retryable: false,
    param: 'model',
    summary: ({ model, api }) => `The model ${quoteShort(model)} is not served on this endpoint (${api}).`,
    advice: 'Use another model, or an endpoint that serves this one.',
  },

  ...MEDIA_RULES,

  ...ADMISSION_RULES,

  guardrail_blocked: {
    status: 400,
    family: 'request',
    isCodePublished: true,
    retryable: false,
    summary: ({ guardrail: { policy, rule, stage } }) =>
      `The guardrail ${quoteShort(policy)} of your organization blocked ` +
      `${stage === 'output' ? 'the reply to ' : ''}this request (rule ${quoteShort(rule)}).`,
    advice: ({ guardrail: { stage } }) =>
      stage === 'output'
        ? 'Ask for something else, or ask an administrator of the organization.'
        : 'Remove what the rule does not allow, or ask an administrator of the organization.',
  },
  guardrail_unavailable: {
    status: 503,
    family: 'service',
    isCodePublished: true,
    errorTypes: { chat: 'api_error', openai: 'api_error' },
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: ({ unread }) => `The guardrails of your organization could not ${NOT_DONE[unread ?? 'load']}`,
    advice: ({ unread }) =>
      unread === undefined ? RETRY_LATER : 'Ask an administrator of the organization if it is refused again.',
  },
  guardrail_unread: {
    status: 503,
    code: 'guardrail_unavailable',
    family: 'service',
    isCodePublished: true,
    errorTypes: { chat: 'api_error', openai: 'api_error' },
    retryable: false,
    summary: ({ unread }) => `The guardrails of your organization could not ${NOT_DONE[unread]}`,
    advice: 'Ask an administrator of the organization.',
  },

  routing_denied: {
    status: 403,
    family: 'request',
    retryable: false,
    summary: 'You may use none of the models that auto routing chooses from.',
    advice: 'Name a model that you may use; GET /v1/models lists them.',
  },
  routing_too_large: {
    // Not retryable: the same conversation stays too long.
    status: 503,
    family: 'service',
    retryable: false,
    summary: 'The conversation is too long for every model that auto routing chooses from.',
    advice: 'Shorten it, or name a model that takes more.',
  },
  routing_unavailable: {
    status: 503,
    family: 'service',
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: 'Auto routing has no model for this request at the moment.',
    advice: 'Try again after the time in the Retry-After header, or name a model.',
  },
  reports_unavailable: {
    status: 503,
    family: 'service',
    retryable: true,
    retryAfterMs: 5 * SECOND_MS,
    summary: 'Reports cannot be read at the moment; requests are served and recorded all the same.',
    advice: RETRY_LATER,
  },
  sessions_unavailable: {
    status: 503,
    family: 'service',
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: 'The database that knows who is signed in does not answer at the moment; nobody is signed out by it.',
    advice: RETRY_LATER,
  },
  store_busy: {
    status: 503,
    family: 'service',
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: 'The data that this request needs is being changed at the moment; nothing was done.',
    advice: RETRY_LATER,
  },
  store_unavailable: {
    // Spec 7.8 has 500 for a database's error. A database that does not answer is an unavailable dependency (7.2).
    status: 503,
    family: 'service',
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: 'The database that this request needs does not answer at the moment.',
    advice: RETRY_LATER,
  },
  ...BYOK_RULES,

  upstream_unreachable: {
    status: 502,
    family: 'service',
    retryable: true,
    retryAfterMs: SECOND_MS,
    summary: 'No provider of this model could be reached.',
    advice: RETRY_LATER,
  },
  upstream_timeout: {
    // Spec 7.8: an upstream provider failure is 502, also when the failure is silence.
    status: 502,
    family: 'service',
    retryable: true,
    retryAfterMs: SECOND_MS,
    summary: 'The provider did not answer in time.',
    advice: RETRY_LATER,
  },
  provider_unavailable: {
    // A provider rejects the service's own credentials. Only the operator can repair that, and the reasons are not
    // shown to clients.
    status: 502,
    family: 'service',
    retryable: false,
    summary: 'No provider of this model could serve the request.',
    advice: 'The operator of the service has been told; another model may serve it.',
  },
  internal_error: {
    // A bug: the same request would most likely fail again, and may have reached a provider already, so clients should
    // not repeat it by themselves.
    status: 500,
    family: 'service',
    retryable: false,
    summary: 'The service failed to handle this request.',
    advice: 'The failure has been logged; report the time of the request if it persists.',
  },
  overloaded: {
    status: 503,
    family: 'service',
    retryable: true,
    retryAfterMs: SECOND_MS,
    summary: 'This server has no memory for another request body at the moment.',
    advice: RETRY_LATER,
  },
  draining: {
    status: 503,
    family: 'service',
    retryable: true,
    retryAfterMs: SECOND_MS,
    closesConnection: true,
    summary: 'This server is shutting down.',
    advice: 'Send the request again.',
  },
};

/** The row of a refusal. The cast forgets the kind on both sides; this is the only place that needs it. */
export function ruleOf(refusal: Refusal): RefusalRule {
  return REFUSAL_RULES[refusal.kind] as RefusalRule;
}
