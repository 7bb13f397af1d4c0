// The OpenAI-style envelope (spec 7.3): /v1/responses and its sub-resources, chat completions and images.

import type { RefusalDescription } from '../description.ts';

export interface OpenaiError {
  readonly message: string;
  readonly type: string;
  readonly code: string;
  readonly param: string | null;
}

export interface OpenaiEnvelope {
  readonly error: OpenaiError;
}

export function openaiEnvelope(refusal: RefusalDescription, route: 'chat' | 'openai'): OpenaiEnvelope {
  const type = refusal.errorTypes[route] ?? openaiErrorType(refusal.status);
  return { error: { message: refusal.message, type, code: refusal.code, param: refusal.param } };
}

/** Spec 7.3: the type follows the status. */
export function openaiErrorType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}
