// The errors of Anthropic's APIs, and the checks that its message endpoints share: version header, model and messages.

import { isObject, objectsIn } from '../json-fields.ts';
import type { CallRequest, ProviderError } from './api.ts';
import { isKnownModel } from './models.ts';

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

export const ANTHROPIC_UNAUTHENTICATED: ProviderError = anthropicError(401, 'x-api-key header is required');

export function anthropicError(status: number, message: string): ProviderError {
  return {
    status,
    message,
    type: TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'),
    param: null,
    code: null,
  };
}

export function renderAnthropicError(error: ProviderError, requestId: string): string {
  const { type, message } = anthropicError(error.status, error.message);
  return JSON.stringify({ type: 'error', error: { type, message }, request_id: requestId });
}

/**
 * What Anthropic would refuse in any request with messages. `required` lists the required fields in the order in which
 * they are reported.
 */
export function refusalOf({ json, headers }: CallRequest, required: readonly string[]): ProviderError | null {
  const version = headers['anthropic-version'];
  if (typeof version !== 'string') return anthropicError(400, 'anthropic-version: header is required');
  if (!/^\d{4}-\d{2}-\d{2}$/.test(version))
    return anthropicError(400, `anthropic-version: "${version}" is not a valid version`);
  if (json === null) return anthropicError(400, 'The request body is not valid JSON: expected an object');
  const missing = required.find((name) => json[name] === undefined || json[name] === null);
  if (missing !== undefined) return anthropicError(400, `${missing}: Field required`);
  if (typeof json.model !== 'string') return anthropicError(400, 'model: Input should be a valid string');
  if (!Array.isArray(json.messages)) return anthropicError(400, 'messages: Input should be a valid list');
  if (json.messages.length === 0) return anthropicError(400, 'messages: at least one message is required');
  if (!isKnownModel(json.model)) return anthropicError(404, `model: ${json.model}`);
  return toolUseRefusal(json.messages);
}

/** Every tool_result must answer an earlier tool_use. */
function toolUseRefusal(messages: readonly unknown[]): ProviderError | null {
  const used = new Set<unknown>();
  for (const [index, message] of messages.entries()) {
    const blocks = isObject(message) ? objectsIn(message.content) : [];
    const stray = blocks.findIndex(({ type, tool_use_id: id }) => type === 'tool_result' && !used.has(id));
    if (stray !== -1) {
      const found = String(blocks[stray]?.tool_use_id);
      return anthropicError(
        400,
        `messages.${index}.content.${stray}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${found}.`,
      );
    }
    for (const { type, id } of blocks) if (type === 'tool_use') used.add(id);
  }
  return null;
}
