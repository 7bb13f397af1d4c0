// The envelope of the routes that manage own provider keys (spec 7.4): `{code, error}` with stable codes.

import type { RefusalDescription } from '../description.ts';

/** The codes that clients branch on. A mistake in a request has one of these codes, whichever stage finds it. */
const PROVIDER_KEY_CODES = [
  'invalid_request',
  'byok_disabled',
  'byok_kind_not_allowed',
  'not_found',
  'key_rejected',
  'byok_encryption_unconfigured',
  'internal_error',
] as const;

export interface ProviderKeysEnvelope {
  readonly code: string;
  readonly error: string;
}

export function providerKeysEnvelope({ code, status, message }: RefusalDescription): ProviderKeysEnvelope {
  return { code: providerKeysCode(code, status), error: message };
}

/** A refusal that concerns neither the request nor a key, such as too many changes at a time, keeps its own code. */
export function providerKeysCode(code: string, status: number): string {
  if ((PROVIDER_KEY_CODES as readonly string[]).includes(code)) return code;
  if (status === 404) return 'not_found';
  if (status === 500) return 'internal_error';
  return status === 429 || status >= 500 ? code : 'invalid_request';
}
