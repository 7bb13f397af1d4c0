// The errors of OpenAI's APIs: one pretty-printed object under `error`, with the sentences of its servers.

import type { Json } from '../json-fields.ts';
import type { Planned, ProviderError } from './api.ts';
import { isKnownModel } from './models.ts';

export const OPENAI_UNAUTHENTICATED: ProviderError = {
  status: 401,
  message: "You didn't provide an API key.",
  type: 'invalid_request_error',
  param: null,
  code: null,
};

export function renderOpenaiError(error: ProviderError): string {
  const { message, type, param, code } = error;
  return `${JSON.stringify(error.body ?? { error: { message, type, param, code } }, null, 2)}\n`;
}

export function invalid(
  message: string,
  param: string | null = null,
  code: string | null = null,
): Planned & { ok: false } {
  return { ok: false, error: { status: 400, message, type: 'invalid_request_error', param, code } };
}

/** The error for the model that the request names; null when it is fine. */
export function modelError(json: Json): ProviderError | null {
  if (typeof json.model !== 'string') return invalid('you must provide a model parameter').error;
  if (isKnownModel(json.model)) return null;
  const message = `The model \`${json.model}\` does not exist or you do not have access to it.`;
  return { status: 404, message, type: 'invalid_request_error', param: null, code: 'model_not_found' };
}

export const NOT_JSON = 'We could not parse the JSON body of your request.';
