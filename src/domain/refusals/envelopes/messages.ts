// The Messages envelope (spec 7.2): `{type: "error", error: {type, message}}`, and the code where the spec publishes
// one (7.7).

import type { RefusalDescription } from '../description.ts';

export interface MessagesEnvelope {
  readonly type: 'error';
  readonly error: { readonly type: string; readonly message: string; readonly code?: string };
}

export function messagesEnvelope(refusal: RefusalDescription): MessagesEnvelope {
  const { status, message, code, errorTypes, isCodePublished } = refusal;
  return {
    type: 'error',
    error: { type: errorTypes.messages ?? messagesErrorType(status), message, ...(isCodePublished ? { code } : {}) },
  };
}

/** The table of spec 7.2. */
export function messagesErrorType(status: number): string {
  switch (status) {
    case 401:
      return 'authentication_error';
    case 402:
      return 'billing_error';
    case 403:
      return 'permission_error';
    case 404:
      return 'not_found_error';
    case 413:
      return 'request_too_large';
    case 429:
      return 'rate_limit_error';
    default:
      return status >= 500 ? 'api_error' : 'invalid_request_error';
  }
}
