// The operations on a stored response: retrieve, delete, cancel, list its input items. `[[sim/saved: ...]]` in its
// input requests faults of these operations.

import { firstWhole, type Json } from '../json-fields.ts';
import { type ReplyScript, scriptedCall } from '../reply-script.ts';
import { type Api, type CallBody, emptyTally, type Planned } from './api.ts';
import { invalid, OPENAI_UNAUTHENTICATED, renderOpenaiError } from './openai-errors.ts';
import type { ResponseStore, StoredResponse } from './response-store.ts';

const ITEMS_DEFAULT = 20;
const ITEMS_MAX = 100;

interface Operation {
  readonly name: string;
  /** The error for the request; null when it is fine. */
  refuse?(stored: StoredResponse, call: CallBody): (Planned & { ok: false }) | null;
  /** Carries the operation out and returns the reply's body. */
  carryOut(stored: StoredResponse, store: ResponseStore, call: CallBody): Json;
}

const RETRIEVE: Operation = {
  name: 'response_retrieve',
  refuse: (_stored, { query }) =>
    query.get('stream') === 'true'
      ? invalid('The simulated provider does not replay the events of a stored response.', 'stream')
      : null,
  carryOut: (stored, store) => store.renderNow(stored),
};

const DELETE: Operation = {
  name: 'response_delete',
  carryOut(stored, store) {
    store.delete(stored);
    return { id: stored.id, object: 'response', deleted: true };
  },
};

const CANCEL: Operation = {
  name: 'response_cancel',
  refuse: ({ background }) => (background ? null : invalid('Cannot cancel a synchronous response.')),
  carryOut(stored, store) {
    store.cancel(stored);
    return store.renderNow(stored);
  },
};

const INPUT_ITEMS: Operation = {
  name: 'response_input_items',
  carryOut({ inputItems }, _store, { query }) {
    const ordered = query.get('order') === 'asc' ? inputItems : inputItems.toReversed();
    const after = query.get('after');
    const start = after === null ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
    const limit = Math.min(firstWhole(Number(query.get('limit'))) ?? ITEMS_DEFAULT, ITEMS_MAX);
    const data = ordered.slice(start, start + limit);
    return {
      object: 'list',
      data,
      first_id: data[0]?.id ?? null,
      has_more: start + limit < ordered.length,
      last_id: data.at(-1)?.id ?? null,
    };
  },
};

export const SAVED_RESPONSE_OPERATIONS = {
  retrieve: RETRIEVE,
  delete: DELETE,
  cancel: CANCEL,
  inputItems: INPUT_ITEMS,
};

export function createSavedResponseOperation(operation: Operation, store: ResponseStore): Api {
  return {
    name: operation.name,
    family: 'openai',
    idPrefix: `${operation.name}-`,
    scopes: ['saved'],
    unauthenticated: OPENAI_UNAUTHENTICATED,
    readText: ({ pathId, caller }) => store.find(pathId, caller)?.directives ?? '',
    plan(request) {
      const stored = store.find(request.pathId, request.caller);
      if (stored === null) {
        const message = `Response with id '${request.pathId}' not found.`;
        return { ok: false, error: { status: 404, message, type: 'invalid_request_error', param: null, code: null } };
      }
      const refused = operation.refuse?.(stored, request) ?? null;
      if (refused !== null) return refused;
      const script: ReplyScript = {
        tally: emptyTally(),
        generated: {},
        reportsUsage: false,
        pauses: 0,
        stream: null,
        whole: () => `${JSON.stringify(operation.carryOut(stored, store, request), null, 2)}\n`,
      };
      return { ok: true, plan: scriptedCall(request, script) };
    },
    renderError: renderOpenaiError,
  };
}
