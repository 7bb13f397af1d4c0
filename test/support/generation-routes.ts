// The generation routes as a contract test calls them: a good body for each, the envelope it refuses in, and answers
// read with their reason phrase.

import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { checkAnswer } from './documented-answers.ts';
import { KEYS } from './test-configuration.ts';

export interface GenerationRoute {
  readonly path: string;
  readonly envelope: 'openai' | 'messages' | 'systemone';
  /** The API as the operator's switch names it; null: it has no dialect form. */
  readonly switchName: string | null;
  readonly model: string;
  /** A good request's fields but for the model. */
  readonly fields: object;
}

const CHAT = { messages: [{ role: 'user', content: 'hi' }] };

export const GENERATION_ROUTES: readonly GenerationRoute[] = [
  {
    path: '/v1/chat/completions',
    envelope: 'openai',
    switchName: 'chat_completions',
    model: 'sim/small',
    fields: CHAT,
  },
  { path: '/v1/responses', envelope: 'openai', switchName: 'responses', model: 'sim/small', fields: { input: 'hi' } },
  { path: '/v1/messages', envelope: 'messages', switchName: 'messages', model: 'sim/small', fields: CHAT },
  {
    path: '/v1/messages/count_tokens',
    envelope: 'messages',
    switchName: 'count_tokens',
    model: 'sim/small',
    fields: CHAT,
  },
  {
    path: '/v1/images/generations',
    envelope: 'openai',
    switchName: 'images',
    model: 'sim/image',
    fields: { prompt: 'a cat' },
  },
  {
    path: '/v1/images/edits',
    envelope: 'openai',
    switchName: 'images',
    model: 'sim/image',
    fields: { prompt: 'a cat', images: [] },
  },
  {
    path: '/v1/embeddings',
    envelope: 'openai',
    switchName: 'embeddings',
    model: 'sim/embedding',
    fields: { input: 'a text' },
  },
  {
    path: '/v1/systemone',
    envelope: 'systemone',
    switchName: null,
    model: 'sim/judge',
    fields: {
      state: 's',
      questions: { q: { type: 'choice', instructions: 'Is it?', criteria: { yes: null, no: null } } },
    },
  },
];

const TEXT_APIS = ['chat_completions', 'responses', 'messages', 'count_tokens'] as const;

export const CONTRACT_MODELS = [
  { id: 'sim/small', providerModel: 'small', outputCap: 4_096, apis: TEXT_APIS },
  { id: 'sim/uncapped', providerModel: 'uncapped', outputCap: null, apis: TEXT_APIS },
  { id: 'sim/retired', providerModel: 'retired', outputCap: 4_096, active: false, apis: TEXT_APIS },
  { id: 'sim/image', providerModel: 'image', outputCap: null, kind: 'image', apis: ['images'] },
  { id: 'sim/embedding', providerModel: 'embedding', outputCap: null, kind: 'embedding', apis: ['embeddings'] },
  { id: 'sim/judge', providerModel: 'judge', outputCap: null, kind: 'evaluation', apis: ['systemone'] },
  // For providers that ask for a pause.
  { id: 'sim/small-paused', providerModel: 'small-paused', outputCap: 4_096, apis: TEXT_APIS },
  { id: 'sim/image-paused', providerModel: 'image-paused', outputCap: null, kind: 'image', apis: ['images'] },
  {
    id: 'sim/embedding-paused',
    providerModel: 'embedding-paused',
    outputCap: null,
    kind: 'embedding',
    apis: ['embeddings'],
  },
  { id: 'sim/judge-paused', providerModel: 'judge-paused', outputCap: null, kind: 'evaluation', apis: ['systemone'] },
] as const;

export interface ContractCall {
  readonly method?: string;
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface ContractAnswer {
  readonly status: number;
  readonly reason: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export async function callRoute(url: string, call: ContractCall): Promise<ContractAnswer> {
  const answer = await answerOf(url, call);
  await checkAnswer(url, call.method ?? 'POST', answer);
  return answer;
}

function answerOf(url: string, call: ContractCall): Promise<ContractAnswer> {
  const key = call.key === undefined ? KEYS.acme : call.key;
  const headers = {
    'content-type': 'application/json',
    ...(call.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(call.body)) }),
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    ...call.headers,
  };
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method: call.method ?? 'POST', headers, agent: false });
    request.on('error', reject);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          reason: response.statusMessage ?? '',
          headers: response.headers,
          body: Buffer.concat(chunks).toString('utf8'),
        }),
      );
    });
    request.on('upgrade', () => reject(new Error('the connection was upgraded')));
    request.end(call.body);
  });
}
