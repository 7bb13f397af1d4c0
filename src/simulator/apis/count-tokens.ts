// POST /v1/messages/count_tokens: takes the same request as for a message, and answers with its input tokens only.

import { UNSCOPED } from '../directives.ts';
import { countTokens } from '../json-fields.ts';
import { INVALID_UTF8, scriptedCall } from '../reply-script.ts';
import { ANTHROPIC_UNAUTHENTICATED, refusalOf, renderAnthropicError } from './anthropic-errors.ts';
import { type Api, type CallRequest, emptyTally, type Planned } from './api.ts';
import { messageTexts } from './message-content.ts';

export const countMessageTokens: Api = {
  name: 'count_tokens',
  family: 'anthropic',
  idPrefix: 'count_tokens-',
  scopes: [UNSCOPED, 'count_tokens'],
  unauthenticated: ANTHROPIC_UNAUTHENTICATED,
  readText: ({ json }) => messageTexts(json).join('\n'),
  plan,
  renderError: renderAnthropicError,
  example: {
    request: (content) => ({ messages: [{ role: 'user', content }] }),
    reply: { input_tokens: 5 },
  },
};

function plan(request: CallRequest): Planned {
  const error = refusalOf(request, ['model', 'messages']);
  if (error !== null) return { ok: false, error };
  const { bytes, invalidUtf8 } = request.directives;
  const promptTokens = countTokens(messageTexts(request.json));
  const plan = scriptedCall(request, {
    tally: { ...emptyTally(), promptTokens },
    generated: {},
    reportsUsage: false,
    pauses: 0,
    stream: null,
    whole: () =>
      `{"input_tokens":${promptTokens}${' '.repeat(bytes)}${invalidUtf8 ? `,"note":"${INVALID_UTF8}"` : ''}}`,
  });
  return { ok: true, plan };
}
