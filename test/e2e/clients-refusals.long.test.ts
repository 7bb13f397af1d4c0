// Every refusal that a generation route can answer, through every real client, in both forms: what its user reads,
// which error it is, and whether the client asks again. One table: what is not as it should be stands in it, because
// it is the client's own doing and spec 7.4 and 7.6 fix the bodies.

import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { ChatOpenAI } from '@langchain/openai';
import { OpenRouter } from '@openrouter/sdk';
import { OpenRouterError } from '@openrouter/sdk/models/errors/openroutererror.js';
import * as typesafe from '@typesafe-ai/sdk';
import { APICallError, generateText, type LanguageModel } from 'ai';
import Anthropic0 from 'anthropic-sdk-0';
import OpenAI from 'openai';
import type { RefusalKind } from '../../src/domain/refusals/refusal.ts';
import { REFUSAL_RULES } from '../../src/domain/refusals/refusal-rules.ts';
import { expectFailure } from '../support/client-installation.ts';
import { callRoute } from '../support/generation-routes.ts';
import { GENERATION_REFUSALS, type RefusingFront, startRefusingFront } from '../support/refusing-front.ts';

/** Where a body says it: in the route's own error object, flat beside the code, or as the gateway's one string. */
type BodyForm = 'own' | 'flat' | 'gateway';
/** What of it a user reads in `error.message`: the text with its advice, the code without it, or neither. */
type Reads = 'text' | 'code' | 'neither';

interface SaidBody {
  readonly error?: string | { readonly message: string };
  readonly detail?: { readonly message: string };
  readonly message?: string;
}

interface Client {
  readonly name: string;
  readonly path: string;
  readonly ask: (url: string, model: string, retries: 0 | 1) => PromiseLike<unknown>;
  /** The error that it raises for a status. */
  readonly classOf: (status: number) => ErrorClass;
  readonly statusOf: (error: unknown) => unknown;
  /** `error.message` as the client makes it, to the letter. */
  readonly says: (status: number, body: SaidBody) => string;
  readonly reads: (form: BodyForm, status: number) => Reads;
  /** Where the error has the text all the same; absent where it is lost. */
  readonly keeps?: (error: unknown) => string;
  /** Asked again although the refusal says that it is of no use. */
  readonly stubborn: readonly RefusalKind[];
  /** Not asked again although the refusal says when. */
  readonly impatient: readonly RefusalKind[];
}

const KEY = 'tg-any';
const USER = [{ role: 'user' as const, content: 'Hello' }];
/** Spec 7.4 makes `error` the code; these read `error` and nothing beside it. */
const codeWhenFlat = (form: BodyForm): Reads => (form === 'flat' ? 'code' : 'text');
const OBEDIENT = { stubborn: [], impatient: [] } as const;

const openaiSays = (status: number, { error }: SaidBody): string =>
  `${status} ${typeof error === 'object' ? error.message : JSON.stringify(error)}`;

type ErrorClass = abstract new (...args: never) => Error;

/** The names that these clients have in common. */
interface ErrorClasses {
  readonly APIError: ErrorClass;
  readonly BadRequestError: ErrorClass;
  readonly AuthenticationError: ErrorClass;
  readonly PermissionDeniedError: ErrorClass;
  readonly NotFoundError: ErrorClass;
  readonly UnprocessableEntityError: ErrorClass;
  readonly RateLimitError: ErrorClass;
  readonly InternalServerError: ErrorClass;
}

function byStatus(classes: ErrorClasses): (status: number) => ErrorClass {
  const ofStatus: Readonly<Record<number, ErrorClass>> = {
    400: classes.BadRequestError,
    401: classes.AuthenticationError,
    403: classes.PermissionDeniedError,
    404: classes.NotFoundError,
    422: classes.UnprocessableEntityError,
    429: classes.RateLimitError,
  };
  return (status) => (status >= 500 ? classes.InternalServerError : (ofStatus[status] ?? classes.APIError));
}

function openaiClient(
  name: string,
  path: string,
  ask: (client: OpenAI, model: string) => PromiseLike<unknown>,
): Client {
  return {
    name: `openai on ${name}`,
    path,
    ask: (url, model, retries) => ask(new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: retries }), model),
    classOf: byStatus(OpenAI),
    statusOf: (error) => (error as { status: unknown }).status,
    says: openaiSays,
    reads: codeWhenFlat,
    ...OBEDIENT,
  };
}

function anthropicClient(name: string, Class: typeof Anthropic): Client {
  return {
    name: `anthropic ${name}`,
    path: '/v1/messages',
    ask: (url, model, retries) => {
      const { messages } = new Class({ baseURL: url, apiKey: KEY, maxRetries: retries });
      return messages.create({ model, max_tokens: 5, messages: USER });
    },
    classOf: byStatus(Class),
    statusOf: (error) => (error as { status: unknown }).status,
    // The whole body where it has no `message` of its own.
    says: (status, body) => `${status} ${body.message ?? JSON.stringify(body)}`,
    reads: () => 'text',
    ...OBEDIENT,
  };
}

function aiSdk(name: string, path: string, modelAt: (baseURL: string, model: string) => LanguageModel): Client {
  return {
    name: `the AI SDK, ${name}`,
    path,
    ask: (url, model, retries) =>
      generateText({ model: modelAt(`${url}/v1`, model), prompt: 'Hello', maxOutputTokens: 5, maxRetries: retries }),
    classOf: () => APICallError,
    statusOf: (error) => (error as APICallError).statusCode,
    says: (status, { error }) => (typeof error === 'object' ? error.message : (STATUS_CODES[status] ?? '')),
    // It wants the error object of its dialect, and shows the HTTP phrase instead of any other body.
    reads: (form) => (form === 'own' ? 'text' : 'neither'),
    keeps: (error) => String((error as APICallError).responseBody),
    // It goes by the status.
    stubborn: [
      'usage_limit_exceeded',
      'byok_key_unavailable',
      'routing_too_large',
      'guardrail_unread',
      'provider_unavailable',
      'internal_error',
    ],
    impatient: [],
  };
}

const LANGCHAIN_TOPICS: Readonly<Record<number, string>> = {
  401: 'MODEL_AUTHENTICATION',
  404: 'MODEL_NOT_FOUND',
  429: 'MODEL_RATE_LIMIT',
};

function langchain(name: string, path: string, useResponsesApi: boolean): Client {
  return {
    name: `langchain on ${name}`,
    path,
    ask: (url, model, retries) =>
      new ChatOpenAI({
        model,
        apiKey: KEY,
        configuration: { baseURL: `${url}/v1` },
        useResponsesApi,
        maxRetries: retries,
      }).invoke('Hello'),
    classOf: byStatus(OpenAI),
    statusOf: (error) => (error as { status: unknown }).status,
    says: (status, body) => {
      const topic = LANGCHAIN_TOPICS[status];
      const more =
        topic === undefined
          ? ''
          : `\n\nTroubleshooting URL: https://docs.langchain.com/oss/javascript/langchain/errors/${topic}/\n`;
      return openaiSays(status, body) + more;
    },
    reads: codeWhenFlat,
    // It goes by a short list of statuses; a 429 it takes for final without Retry-After.
    stubborn: [
      'length_required',
      'transfer_encoding_refused',
      'unsupported_media_type',
      'not_safely_billable',
      'traffic_token_bound_required',
      'byok_key_unavailable',
      'routing_too_large',
      'guardrail_unread',
      'provider_unavailable',
      'internal_error',
    ],
    impatient: [],
  };
}

/** Those for which it has a form of error. */
const OPENROUTER_STATUSES: ReadonlySet<number> = new Set([400, 401, 402, 403, 404, 413, 429, 500, 502, 503]);

const CLIENTS: readonly Client[] = [
  openaiClient('chat completions', '/v1/chat/completions', (client, model) =>
    client.chat.completions.create({ model, messages: USER }),
  ),
  openaiClient('responses', '/v1/responses', (client, model) => client.responses.create({ model, input: 'Hello' })),
  openaiClient('images', '/v1/images/generations', (client, model) =>
    client.images.generate({ model, prompt: 'A cat' }),
  ),
  anthropicClient('(current)', Anthropic),
  anthropicClient('(0.x)', Anthropic0 as unknown as typeof Anthropic),
  aiSdk('openai on responses', '/v1/responses', (baseURL, model) => createOpenAI({ baseURL, apiKey: KEY })(model)),
  aiSdk('openai on chat', '/v1/chat/completions', (baseURL, model) =>
    createOpenAI({ baseURL, apiKey: KEY }).chat(model),
  ),
  aiSdk('anthropic', '/v1/messages', (baseURL, model) => createAnthropic({ baseURL, apiKey: KEY })(model)),
  aiSdk('openai-compatible', '/v1/chat/completions', (baseURL, model) =>
    createOpenAICompatible({ baseURL, apiKey: KEY, name: 'tollgate' })(model),
  ),
  langchain('chat completions', '/v1/chat/completions', false),
  langchain('responses', '/v1/responses', true),
  {
    name: 'typesafe',
    path: '/v1/systemone',
    ask: (url, model, retries) =>
      new typesafe.TypeSafeClient({
        apiKey: KEY,
        baseURL: url,
        logLevel: 'off',
        // By itself it gives up after ten seconds and asks again.
        timeout: 600_000,
        retry: { maxRetries: retries },
      }).systemOne({
        model,
        state: 'Hello',
        questions: { q: typesafe.noul('Is it?') },
      }),
    classOf: byStatus(typesafe),
    statusOf: (error) => (error as typesafe.APIError).status,
    says: (status, { detail, error }) => `${status} ${detail?.message ?? (error as string)}`,
    reads: codeWhenFlat,
    keeps: (error) => JSON.stringify((error as typesafe.APIError).body),
    // It goes by the status.
    stubborn: [
      'usage_limit_exceeded',
      'byok_key_unavailable',
      'routing_too_large',
      'guardrail_unread',
      'provider_unavailable',
      'internal_error',
    ],
    impatient: [],
  },
  {
    name: 'openrouter',
    path: '/v1/systemone',
    ask: (url, model, retries) => {
      const retryConfig = retries === 0 ? ({ strategy: 'none' } as const) : undefined;
      const client = new OpenRouter({
        apiKey: KEY,
        serverURL: `${url}/v1`,
        ...(retryConfig === undefined ? {} : { retryConfig }),
      });
      return client.systemOne.create({
        decisionsRequest: { model, state: 'Hello', questions: { q: { type: 'noul', instructions: 'Is it?' } } },
      });
    },
    classOf: () => OpenRouterError,
    statusOf: (error) => (error as OpenRouterError).statusCode,
    says: (status, body) =>
      OPENROUTER_STATUSES.has(status)
        ? 'Response validation failed'
        : `API error occurred: Status ${status}\nBody: ${JSON.stringify(body)}`,
    // It knows errors of its own service alone, which spec 7.5 does not write.
    reads: (_form, status) => (OPENROUTER_STATUSES.has(status) ? 'neither' : 'text'),
    keeps: (error) => (error as OpenRouterError).body,
    // It goes by the status, 5xx alone.
    stubborn: [
      'byok_key_unavailable',
      'routing_too_large',
      'guardrail_unread',
      'provider_unavailable',
      'internal_error',
    ],
    impatient: ['request_timeout', 'too_many_changes', 'rate_limit', 'concurrency_limit', 'upstream_cooldown'],
  },
];

/**
 * All of them would keep this process busy for many seconds, and the server is in it too: clients would give up, and
 * connections time out.
 */
const CLIENTS_AT_ONCE = 3;

describe('every refusal', { concurrency: CLIENTS_AT_ONCE }, () => {
  let flat: RefusingFront;
  let dialect: RefusingFront;

  before(async () => {
    flat = await startRefusingFront('flat');
    dialect = await startRefusingFront('dialect');
  });

  after(() => Promise.all([flat?.stop(), dialect?.stop()]));

  for (const client of CLIENTS) {
    describe(`through ${client.name}`, { concurrency: 1 }, () => {
      test('in the flat form, the default', async () => {
        const forms = await Promise.all(GENERATION_REFUSALS.map(({ kind }) => assertShown(client, flat, kind)));
        assert.deepEqual(new Set(forms), new Set(['own', 'flat', 'gateway']));
      });

      test('in the dialect: what the flat form hides is read', async () => {
        const forms = await Promise.all(GENERATION_REFUSALS.map(({ kind }) => assertShown(client, dialect, kind)));
        // Spec 7.5: typed questions have no other form.
        assert.equal(forms.includes('flat'), client.path === '/v1/systemone');
      });

      test('is asked again exactly where time cures', async () => {
        const askedAgain = await Promise.all(
          GENERATION_REFUSALS.map(async ({ kind }) => ((await isAskedAgain(client, dialect, kind)) ? kind : null)),
        );
        const wished = GENERATION_REFUSALS.filter(({ kind }) => REFUSAL_RULES[kind].retryable).map(({ kind }) => kind);
        const expected = new Set([...wished.filter((kind) => !client.impatient.includes(kind)), ...client.stubborn]);
        assert.deepEqual(new Set(askedAgain.filter((kind) => kind !== null)), expected);
      });
    });
  }
});

/** Checks what a user is shown of a refusal; gives the form that its body had. */
async function assertShown(client: Client, front: RefusingFront, kind: RefusalKind): Promise<BodyForm> {
  const { status, body: raw } = await callRoute(front.url + client.path, {
    body: JSON.stringify({ model: front.modelOf(kind) }),
  });
  assert.equal(status, REFUSAL_RULES[kind].status);
  const body = JSON.parse(withoutIds(raw)) as SaidBody;
  const { form, text, code } = readBody(body);

  const model = front.modelOf(kind);
  const error = (await expectFailure(client.ask(front.url, model, 0))) as Error;
  assert.ok(error instanceof client.classOf(status), `${kind}: ${error.constructor.name}`);
  assert.equal(client.statusOf(error), status, kind);
  assert.equal(withoutIds(error.message), client.says(status, body), kind);
  assert.equal(front.calls(model), 1, kind);
  const reads = holds(error.message, text)
    ? 'text'
    : code !== null && error.message.includes(code)
      ? 'code'
      : 'neither';
  assert.equal(reads, client.reads(form, status), `${kind}: ${error.message}`);
  if (client.keeps !== undefined) assert.ok(holds(client.keeps(error), text), `${kind}: ${client.keeps(error)}`);
  return form;
}

/** The same text for two requests: each refusal has an id of its own. */
function withoutIds(text: string): string {
  return text.replaceAll(/"request_id":"[\da-f-]{36}"/g, '"request_id":"..."');
}

/** Whether a refusal that lets the second request through brings about a second request; it is served then. */
async function isAskedAgain(client: Client, front: RefusingFront, kind: RefusalKind): Promise<boolean> {
  const model = front.modelOf(kind, 1);
  const isServed = await Promise.resolve(client.ask(front.url, model, 1)).then(
    () => true,
    () => false,
  );
  assert.equal(front.calls(model), isServed ? 2 : 1, kind);
  return isServed;
}

function readBody({ error, detail, message }: SaidBody): { form: BodyForm; text: string; code: string | null } {
  if (typeof error === 'string')
    return message === undefined
      ? { form: 'gateway', text: error, code: null }
      : { form: 'flat', text: message, code: error };
  return {
    form: 'own',
    text: error?.message ?? detail?.message ?? assert.fail('a body that says nothing'),
    code: null,
  };
}

/** As it is, or inside JSON. */
function holds(shown: string, text: string): boolean {
  return shown.includes(text) || shown.includes(JSON.stringify(text).slice(1, -1));
}
