// The table of routes of the simulated provider, with what each answers.

import type { Api } from './apis/api.ts';
import { chatCompletions } from './apis/chat-completions.ts';
import { countMessageTokens } from './apis/count-tokens.ts';
import { imageEdits, imageGenerations } from './apis/images.ts';
import { messages } from './apis/messages.ts';
import { INPUT_ROUTES } from './apis/priced-by-input.ts';
import { ResponseStore } from './apis/response-store.ts';
import { createResponses } from './apis/responses.ts';
import { createSavedResponseOperation, SAVED_RESPONSE_OPERATIONS } from './apis/saved-responses.ts';
import { systemone } from './apis/systemone.ts';

interface Route {
  readonly method: string;
  /** `:id` stands for a parameter. */
  readonly path: string;
  /** Matches such paths; its first group is the parameter. */
  readonly pattern: RegExp;
  readonly api: Api;
}

/** Creates the routes with their own store of responses. */
export function createRoutes(): readonly Route[] {
  const store = new ResponseStore();
  const saved = (operation: keyof typeof SAVED_RESPONSE_OPERATIONS): Api =>
    createSavedResponseOperation(SAVED_RESPONSE_OPERATIONS[operation], store);
  const rows = [
    // A completion, whole or streamed.
    { method: 'POST', path: '/v1/chat/completions', api: chatCompletions },
    // A response, whole, streamed or in the background; kept unless `store` is false.
    { method: 'POST', path: '/v1/responses', api: createResponses(store) },
    // The kept response as it is now, without its events.
    { method: 'GET', path: '/v1/responses/:id', api: saved('retrieve') },
    { method: 'DELETE', path: '/v1/responses/:id', api: saved('delete') },
    // Stops one that is at work in the background; 400 for any other.
    { method: 'POST', path: '/v1/responses/:id/cancel', api: saved('cancel') },
    // Its own input, with `limit`, `order`, `after`.
    { method: 'GET', path: '/v1/responses/:id/input_items', api: saved('inputItems') },
    // A message, whole or streamed; `anthropic-version` (any date) and `max_tokens` must be there.
    { method: 'POST', path: '/v1/messages', api: messages },
    { method: 'POST', path: '/v1/messages/count_tokens', api: countMessageTokens },
    // Small PNGs, whole or streamed with `partial_images`.
    { method: 'POST', path: '/v1/images/generations', api: imageGenerations },
    // The same, from a form or from JSON; a file that did not arrive whole is a 400.
    { method: 'POST', path: '/v1/images/edits', api: imageEdits },
    ...INPUT_ROUTES,
    // Typed answers.
    { method: 'POST', path: '/v1/systemone', api: systemone },
  ];
  return rows.map((row) => ({ ...row, pattern: new RegExp(`^${row.path.replace(':id', '([^/]+)')}$`) }));
}

export function findRoute(
  routes: readonly Route[],
  method: string,
  path: string,
): { readonly api: Api; readonly pathId: string } | null {
  for (const route of routes) {
    const match = route.method === method ? route.pattern.exec(path) : null;
    if (match !== null) return { api: route.api, pathId: match[1] ?? '' };
  }
  return null;
}
