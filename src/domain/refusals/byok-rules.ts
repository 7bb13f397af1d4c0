// Owns the rows of refusal-rules.ts about own provider keys: of their management and of their use (spec 7.4).

import { quoteShort } from './quote-short.ts';
import type { Refusal } from './refusal.ts';
import type { RefusalRules } from './refusal-rule.ts';

type ByokKind =
  | 'byok_disabled'
  | 'byok_kind_not_allowed'
  | 'key_rejected'
  | 'byok_encryption_unconfigured'
  | 'byok_key_unavailable';

const REJECTED: Readonly<Record<Extract<Refusal, { kind: 'key_rejected' }>['why'], string>> = {
  refused: 'The provider does not accept this key.',
  silent: 'The provider did not say whether it accepts this key.',
  given_for_another:
    'The address, header, tls.ca or proxy of the provider has changed since this key was stored, so it is not sent.',
};

export const BYOK_RULES: RefusalRules<ByokKind> = {
  byok_disabled: {
    status: 403,
    family: 'request',
    retryable: false,
    summary: 'Your organization may not use provider keys of its own.',
    advice: 'Ask an administrator of the platform to allow it.',
  },
  byok_kind_not_allowed: {
    status: 403,
    family: 'request',
    retryable: false,
    summary: 'Your organization may not use a key of its own for this kind of provider.',
    advice: 'GET /v1/admin/active-org/byok-templates lists the kinds that it may.',
  },
  key_rejected: {
    status: 422,
    family: 'request',
    retryable: false,
    summary: ({ why }) => REJECTED[why],
    advice: ({ why }) =>
      why === 'given_for_another'
        ? 'Rotate the key, to the same secret or another one.'
        : 'Check the key; with "verify": false it is stored without asking the provider.',
  },
  byok_encryption_unconfigured: {
    status: 503,
    family: 'service',
    retryable: false,
    summary: 'The service cannot encrypt or decrypt provider keys at the moment.',
    advice: 'The operator has to provide the master key under which they are stored.',
  },
  byok_key_unavailable: {
    // Not retryable: whoever manages the key has to repair it.
    status: 503,
    family: 'service',
    errorTypes: { chat: 'byok_key_unavailable', messages: 'byok_key_unavailable', systemone: 'byok_key_unavailable' },
    retryable: false,
    summary: ({ provider, isNotLookedUp }) => {
      if (isNotLookedUp === true) return "Your organization's own provider keys could not be looked up at the moment.";
      const which = provider === undefined ? '' : ` for the provider ${quoteShort(provider)}`;
      return `Your organization's own key${which} could not serve this request.`;
    },
    advice: ({ isNotLookedUp }) =>
      isNotLookedUp === true
        ? 'Send the request again in some seconds.'
        : 'Ask an administrator of the organization to check the key, or to allow other keys when it fails.',
  },
};
