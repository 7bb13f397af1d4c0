// The rows of refusal-rules.ts for what admission refuses: credit, usage budgets and traffic (spec 7.4).

import { SECOND_MS } from '../../platform/durations.ts';
import { formatUsdString } from '../money/format.ts';
import { quoteShort } from './quote-short.ts';
import { RETRY_LATER, type RefusalRules } from './refusal-rule.ts';

type AdmissionKind =
  | 'insufficient_credit'
  | 'billing_frozen'
  | 'not_safely_billable'
  | 'billing_unavailable'
  | 'principal_provisioning'
  | 'usage_limit_exceeded'
  | 'rate_limit'
  | 'concurrency_limit'
  | 'upstream_cooldown'
  | 'traffic_token_bound_required'
  | 'traffic_capacity_unavailable';

const TOKENS_UNBOUNDED = ', and the tokens of this request have no upper bound.';

export const ADMISSION_RULES: RefusalRules<AdmissionKind> = {
  insufficient_credit: {
    status: 402,
    family: 'credit',
    retryable: false,
    summary: ({ authorizedAmount, available }) =>
      authorizedAmount === undefined
        ? 'The balance does not cover what this request could cost.'
        : `The balance does not cover what this request could cost: up to ${formatUsdString(authorizedAmount)} USD` +
          `${available === undefined ? '' : `, with ${formatUsdString(available)} USD available`}.`,
    advice: ({ cheaper }) => `Add credit, or ${cheaper ?? 'lower the output limit of the request'}.`,
  },
  billing_frozen: {
    status: 403,
    family: 'credit',
    retryable: false,
    summary: 'Billing of this account is frozen.',
    advice: 'Ask the owner of the organization to have it released.',
  },
  not_safely_billable: {
    status: 422,
    family: 'credit',
    retryable: false,
    summary: ({ reason }) => reason ?? 'The cost of this request has no upper bound.',
    advice: ({ field, advice }) =>
      advice ?? `Set ${quoteShort(field)} to a whole number within the limits of the model.`,
    param: ({ field }) => field,
  },
  billing_unavailable: {
    status: 503,
    family: 'credit',
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: 'Credit cannot be checked at the moment, so the request was not sent to a provider.',
    advice: RETRY_LATER,
  },
  principal_provisioning: {
    status: 503,
    family: 'credit',
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: 'The account is still being set up.',
    advice: RETRY_LATER,
  },

  usage_limit_exceeded: {
    // A budget is available again when its window ends, which is longer than a client waits, so clients are told not to
    // retry on their own.
    status: 429,
    family: 'traffic',
    retryable: false,
    summary: ({ authorizedAmount }) =>
      authorizedAmount === undefined
        ? 'A usage limit has been reached.'
        : `A usage limit has no room for what this request could cost: up to ${formatUsdString(authorizedAmount)} USD.`,
    advice: ({ cheaper = 'lower the output limit of the request' }) =>
      `GET /v1/usage/limits/current shows the limits and when they reset. To fit into what is left, ${cheaper}.`,
  },
  rate_limit: {
    status: 429,
    family: 'traffic',
    retryable: true,
    retryAfterMs: SECOND_MS,
    summary: 'The rate limit has been reached.',
    advice: RETRY_LATER,
  },
  concurrency_limit: {
    status: 429,
    family: 'traffic',
    retryable: true,
    retryAfterMs: SECOND_MS,
    summary: 'Too many requests are open at the same time.',
    advice: 'Wait for one to finish, or try again after the time in the Retry-After header.',
  },
  upstream_cooldown: {
    status: 429,
    family: 'traffic',
    retryable: true,
    retryAfterMs: SECOND_MS,
    summary: 'Every provider of this model has asked for a pause.',
    advice: RETRY_LATER,
  },
  traffic_token_bound_required: {
    status: 422,
    family: 'traffic',
    retryable: false,
    summary: ({ result, reason, under = 'limit on tokens per minute' }) =>
      result === undefined
        ? `A ${under} applies${reason === undefined ? TOKENS_UNBOUNDED : `. ${reason}`}`
        : `This request could use up to ${result['tokens_max']} tokens, and the limit is ${result['limit']} a minute.`,
    advice: ({ field, result, advice }) =>
      advice ?? (result === undefined ? `Set ${quoteShort(field)}.` : `Lower ${quoteShort(field)}.`),
    param: ({ field }) => field,
  },
  traffic_capacity_unavailable: {
    status: 503,
    family: 'traffic',
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: 'Traffic limits cannot be checked or served at the moment, so the request was not sent to a provider.',
    advice: RETRY_LATER,
  },
};
