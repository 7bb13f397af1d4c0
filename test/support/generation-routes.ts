// The generation routes as contract tests call them: a good body for each, the envelope of its refusals, and answers
// read with their reason phrase. The routes are those of the simulated provider, so every test of all routes calls each
// of them.

import assert from 'node:assert/strict';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { API_NAMES, APIS, type ApiName, MODEL_KIND_NAMES, type ModelKind } from '../../src/domain/models/apis.ts';
import { createRoutes as simulatedRoutes } from '../../src/simulator/routes.ts';
import { checkAnswer } from './documented-answers.ts';
import { KEYS, type TestModel } from './test-configuration.ts';

export interface GenerationRoute {
  readonly path: string;
  readonly envelope: 'openai' | 'messages' | 'systemone';
  /** The API's name in the setting DIALECT_REFUSALS; null: its refusals have no dialect form. */
  readonly switchName: string | null;
  readonly model: string;
  /** The fields of a good request, without the model and the output limit. */
  readonly fields: object;
  /** The same fields with this text of a user. */
  readonly saying: (text: string) => object;
  /** A good reply that says nothing. */
  readonly reply: object;
}

/** The envelope, by the family of a provider's API. */
const ENVELOPES = { openai: 'openai', anthropic: 'messages', typesafe: 'systemone' } as const;

/**
 * Every API that the simulated provider answers without a stored object is a generation; its file has a good example.
 */
export const GENERATION_ROUTES: readonly GenerationRoute[] = simulatedRoutes().flatMap(({ path, api }) => {
  const { family, example } = api;
  if (example === undefined) return [];
  const name = apiOn(path);
  const saying = (text: string): object => {
    const { max_tokens: _, ...fields } = example.request(text);
    return fields;
  };
  const route = {
    path,
    envelope: ENVELOPES[family],
    switchName: family === 'typesafe' ? null : name,
    model: modelOf(APIS[name].kind),
  };
  return [{ ...route, fields: saying('hi'), saying, reply: example.reply }];
});

function apiOn(path: string): ApiName {
  const found = API_NAMES.find((name) => new RegExp(`^${APIS[name].path.replace(/\{\w+\}/, '\\w+')}$`).test(path));
  assert.ok(found !== undefined, `${path} is of an API that the product has`);
  return found;
}

function modelOf(kind: ModelKind): string {
  return `sim/${{ text: 'small', evaluation: 'judge' }[kind as string] ?? kind}`;
}

const TEXT_APIS = API_NAMES.filter((api) => APIS[api].kind === 'text');

/** One model for each kind except text, on the APIs of that kind. */
const OTHER_MODELS: readonly TestModel[] = MODEL_KIND_NAMES.filter((kind) => kind !== 'text').map((kind) => ({
  id: modelOf(kind),
  providerModel: modelOf(kind).slice('sim/'.length),
  outputCap: null,
  kind,
  apis: API_NAMES.filter((api) => APIS[api].kind === kind),
}));

/** One model for each kind. */
export const MODELS_OF_KINDS: readonly TestModel[] = [
  { id: 'sim/small', providerModel: 'small', outputCap: 4_096, apis: TEXT_APIS },
  ...OTHER_MODELS,
];

export const CONTRACT_MODELS: readonly TestModel[] = [
  ...MODELS_OF_KINDS,
  { id: 'sim/uncapped', providerModel: 'uncapped', outputCap: null, apis: TEXT_APIS },
  { id: 'sim/retired', providerModel: 'retired', outputCap: 4_096, active: false, apis: TEXT_APIS },
  // For tests in which a provider asks for a pause.
  ...MODELS_OF_KINDS.map((model) => ({
    ...model,
    id: `${model.id}-paused`,
    providerModel: `${model.providerModel}-paused`,
  })),
];

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
