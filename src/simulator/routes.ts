// The table of routes of the simulated provider.

import type { Api } from './apis/api.ts';
import { chatCompletions } from './apis/chat-completions.ts';
import { countMessageTokens } from './apis/count-tokens.ts';
import { embeddings } from './apis/embeddings.ts';
import { imageEdits, imageGenerations } from './apis/images.ts';
import { messages } from './apis/messages.ts';
import { ResponseStore } from './apis/response-store.ts';
import { createResponses } from './apis/responses.ts';
import { createSavedResponseOperation, SAVED_RESPONSE_OPERATIONS } from './apis/saved-responses.ts';
import { systemone } from './apis/systemone.ts';

interface Route {
  readonly method: string;
  /** Its first group is the parameter of the path. */
  readonly path: RegExp;
  readonly api: Api;
}

/** Creates the routes with their own store of responses. */
export function createRoutes(): readonly Route[] {
  const store = new ResponseStore();
  const { retrieve, delete: remove, cancel, inputItems } = SAVED_RESPONSE_OPERATIONS;
  return [
    { method: 'POST', path: /^\/v1\/chat\/completions$/, api: chatCompletions },
    { method: 'POST', path: /^\/v1\/responses$/, api: createResponses(store) },
    { method: 'GET', path: /^\/v1\/responses\/([^/]+)$/, api: createSavedResponseOperation(retrieve, store) },
    { method: 'DELETE', path: /^\/v1\/responses\/([^/]+)$/, api: createSavedResponseOperation(remove, store) },
    { method: 'POST', path: /^\/v1\/responses\/([^/]+)\/cancel$/, api: createSavedResponseOperation(cancel, store) },
    {
      method: 'GET',
      path: /^\/v1\/responses\/([^/]+)\/input_items$/,
      api: createSavedResponseOperation(inputItems, store),
    },
    { method: 'POST', path: /^\/v1\/messages$/, api: messages },
    { method: 'POST', path: /^\/v1\/messages\/count_tokens$/, api: countMessageTokens },
    { method: 'POST', path: /^\/v1\/images\/generations$/, api: imageGenerations },
    { method: 'POST', path: /^\/v1\/images\/edits$/, api: imageEdits },
    { method: 'POST', path: /^\/v1\/embeddings$/, api: embeddings },
    { method: 'POST', path: /^\/v1\/systemone$/, api: systemone },
  ];
}

export function findRoute(
  routes: readonly Route[],
  method: string,
  path: string,
): { readonly api: Api; readonly pathId: string } | null {
  for (const route of routes) {
    const match = route.method === method ? route.path.exec(path) : null;
    if (match !== null) return { api: route.api, pathId: match[1] ?? '' };
  }
  return null;
}
