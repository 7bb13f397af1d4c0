// The product's HTTP front and renderer with every generation route of its route table, behind which every request is
// refused: the model in the request says how. For tests of what clients make of refusals that no whole installation can
// produce.

import type { Refusal, RefusalKind } from '../../src/domain/refusals/refusal.ts';
import { REFUSAL_RULES } from '../../src/domain/refusals/refusal-rules.ts';
import type { AdmissionForm } from '../../src/domain/refusals/render.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { EVERY_REFUSAL } from './every-refusal.ts';
import { startHttpFront } from './http-front.ts';
import { routeTable } from './route-table.ts';

/** Kinds that no generation route answers with. */
const OF_OTHER_ROUTES: ReadonlySet<RefusalKind> = new Set([
  'delegation_token_unavailable',
  'not_found',
  'websocket_not_supported',
  'conflict',
  'owner_floor',
  'byok_disabled',
  'byok_kind_not_allowed',
  'key_rejected',
  'byok_encryption_unconfigured',
  'media_not_available',
  'file_too_large',
  'media_quota_exceeded',
  'range_not_satisfiable',
  'media_storage_unavailable',
]);

export const GENERATION_REFUSALS: readonly Refusal[] = EVERY_REFUSAL.filter(({ kind }) => !OF_OTHER_ROUTES.has(kind));

export interface RefusingFront {
  readonly url: string;
  /** Returns a model whose requests are refused; `timesMax`: how often, before they are served. */
  modelOf(kind: RefusalKind, timesMax?: number): string;
  /** The number of requests that named this model. */
  calls(model: string): number;
  stop(): Promise<void>;
}

/** The replies to served requests, just complete enough for each client to accept them. */
const SERVED: Readonly<Record<string, object>> = {
  '/v1/chat/completions': {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'served' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
  '/v1/responses': {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'served', annotations: [] }],
      },
    ],
    usage: {
      input_tokens: 1,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 1,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 2,
    },
  },
  '/v1/messages': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'served' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  '/v1/images/generations': { created: 1, data: [{ b64_json: 'AAAA' }] },
  '/v1/systemone': {
    model: 'judge-1',
    answers: { q: { type: 'noul', noul: 0.5 } },
    usage: { input_tokens: 1, output_tokens: 1 },
  },
};

export async function startRefusingFront(admissionForm: AdmissionForm): Promise<RefusingFront> {
  const calls = new Map<string, number>();
  let models = 0;
  const handle = async (exchange: Exchange): Promise<void> => {
    const model = await readModel(exchange);
    const count = (calls.get(model) ?? 0) + 1;
    calls.set(model, count);
    const [kind, timesMax] = model.split(' ');
    if (count > Number(timesMax)) exchange.answerJson(200, JSON.stringify(SERVED[exchange.path]));
    else exchange.refuse(refusalOf(kind ?? ''));
  };
  const routes = routeTable()
    .filter(({ plane, method, path }) => plane === 'data' && method === 'POST' && !path.includes(':'))
    .map(({ method, path, envelope }) => ({ method, path, envelope, admissionForm, handle }));
  const front = await startHttpFront(routes);
  return {
    url: front.url,
    modelOf: (kind, timesMax = Number.POSITIVE_INFINITY) => `${kind} ${timesMax} ${++models}`,
    calls: (model) => calls.get(model) ?? 0,
    stop: () => front.stop(),
  };
}

/** A retryable refusal allows a retry after one millisecond. */
function refusalOf(kind: string): Refusal {
  const refusal = GENERATION_REFUSALS.find((candidate) => candidate.kind === kind);
  if (refusal === undefined) throw new Error(`no refusal ${kind}`);
  return REFUSAL_RULES[refusal.kind].retryable ? ({ ...refusal, retryAfterMs: 1 } as Refusal) : refusal;
}

function readModel(exchange: Exchange): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    const take = (chunk: Uint8Array, isLast: boolean): void => {
      chunks.push(chunk);
      if (isLast) resolve((JSON.parse(Buffer.concat(chunks).toString('utf8')) as { model: string }).model);
    };
    exchange.body.receive({ take });
  });
}
