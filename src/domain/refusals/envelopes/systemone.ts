// The envelope of the typed-question endpoint (spec 7.5): `{detail: {error_type, message}}`, as the providers of
// evaluation models write it, and the code where the spec publishes one (7.7).

import type { RefusalDescription } from '../description.ts';
import { messagesErrorType } from './messages.ts';

export interface SystemoneEnvelope {
  readonly detail: { readonly error_type: string; readonly message: string; readonly code?: string };
}

/** Spec 7.5 names one type, `invalid_request_error` for a 400; the others are those of spec 7.2, which knows it too. */
export function systemoneEnvelope(refusal: RefusalDescription): SystemoneEnvelope {
  const { status, message, code, errorTypes, isCodePublished } = refusal;
  return {
    detail: {
      error_type: errorTypes.systemone ?? messagesErrorType(status),
      message,
      ...(isCodePublished ? { code } : {}),
    },
  };
}
