// Owns the rows of refusal-rules.ts for what is refused before a request reaches its route (spec 7.6).
// Their summaries are the exact strings of that section.

import { SECOND_MS } from '../../platform/durations.ts';
import { RETRY_LATER, type RefusalRules } from './refusal-rule.ts';

type GatewayKind =
  | 'authentication_required'
  | 'unauthorized'
  | 'scope_required'
  | 'permission_denied'
  | 'authorization_unavailable'
  | 'delegation_token_unavailable';

export const GATEWAY_RULES: RefusalRules<GatewayKind> = {
  authentication_required: {
    status: 401,
    family: 'gateway',
    retryable: false,
    summary: 'authentication required',
    sentence: 'The request has no API key.',
    advice: 'Send it in the header "Authorization: Bearer KEY".',
  },
  unauthorized: {
    status: 401,
    family: 'gateway',
    retryable: false,
    summary: 'unauthorized',
    sentence: 'The API key is not valid: it is unknown, expired or revoked.',
    advice: 'Check the key, and that the base URL of your client is that of the service which gave it out.',
  },
  scope_required: {
    status: 400,
    family: 'gateway',
    retryable: false,
    summary: 'authorization scope required',
    sentence: 'The credential has no active organization.',
    advice: 'Use an inference key of the organization.',
  },
  permission_denied: {
    status: 403,
    family: 'gateway',
    retryable: false,
    summary: 'permission denied',
    sentence: 'This credential may not do this.',
    advice: 'Use an inference key; an access token may not generate.',
  },
  authorization_unavailable: {
    status: 502,
    family: 'gateway',
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: 'authorization unavailable',
    sentence: 'The API key cannot be checked at the moment.',
    advice: RETRY_LATER,
  },
  delegation_token_unavailable: {
    status: 502,
    family: 'gateway',
    retryable: true,
    retryAfterMs: 2 * SECOND_MS,
    summary: 'delegation token unavailable',
  },
};
