// Requests as a provider wants them (docs/configuration.md, "Providers"): what each setting changes on the wire, for a
// provider that no line of code knows. All other bytes stay as the client sent them.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { configuredProvider } from '../../src/domain/configuration/schema/provider-schema.ts';
import { readRequestSettings } from '../../src/domain/configuration/schema/request-settings.ts';
import type { Provider } from '../../src/domain/models/provider.ts';
import { expectDocumentedAnswers } from '../support/documented-answers.ts';
import { type FakeUpstream, type ReceivedRequest, startFakeUpstream } from '../support/fake-upstream.ts';
import { httpCall } from '../support/http-call.ts';
import { modelServedBy, PlaneInProcess } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';

const PROVIDER_MODEL = 'acme/large-1';

interface Case {
  readonly what: string;
  /** In the words of the configuration file, behind the base URL and the key. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Behind the origin. */
  readonly basePath?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  readonly expected: {
    readonly path: string;
    /** null: it must not be there. */
    readonly headers?: Readonly<Record<string, string | null>>;
    readonly body: string;
  };
}

const CHAT = '/v1/chat/completions';
const MESSAGES = '/v1/messages';
const SENT = '{"model": "m", "messages":[{"role":"user","content":"hi"}],"max_tokens":5}';
const NAMED = SENT.replace('"m"', `"${PROVIDER_MODEL}"`);
const STREAMED = SENT.replace(',"max_tokens"', ',"stream":true,"max_tokens"');
const RAW_PREDICT = {
  messages: {
    path: '/models/{model}:rawPredict',
    path_stream: '/models/{model}:streamRawPredict',
    model_in: 'path',
    instead_of_model: { anthropic_version: 'vertex-2023-10-16' },
  },
  count_tokens: {
    path: '/models/count-tokens:rawPredict',
    instead_of_model: { anthropic_version: 'vertex-2023-10-16', model: '{model}' },
  },
};

const CASES: readonly Case[] = [
  {
    what: 'nothing: the usual request',
    settings: {},
    path: CHAT,
    headers: { 'openai-beta': 'x', cookie: 'a=b' },
    body: SENT,
    expected: {
      path: CHAT,
      headers: { authorization: 'Bearer sk-of-provider', 'openai-beta': 'x', cookie: null },
      body: NAMED,
    },
  },
  {
    what: 'auth: a header that is the key',
    settings: { auth: { header: 'Api-Key' } },
    path: CHAT,
    body: SENT,
    expected: { path: CHAT, headers: { 'api-key': 'sk-of-provider', authorization: null }, body: NAMED },
  },
  {
    what: 'headers: in the place of the client’s',
    settings: { headers: { 'X-Team': 'search', 'openai-beta': 'ours' } },
    path: CHAT,
    headers: { 'openai-beta': 'theirs', 'x-team': 'theirs' },
    body: SENT,
    expected: { path: CHAT, headers: { 'x-team': 'search', 'openai-beta': 'ours' }, body: NAMED },
  },
  {
    what: 'drop_headers: stay behind',
    settings: { drop_headers: ['Anthropic-Version'] },
    path: MESSAGES,
    headers: { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'b' },
    body: SENT,
    expected: { path: MESSAGES, headers: { 'anthropic-version': null, 'anthropic-beta': 'b' }, body: NAMED },
  },
  {
    what: 'query: in the place of the client’s',
    settings: { query: { 'api-version': '2026-05-01' } },
    path: `${CHAT}?api-version=1&beta=true`,
    body: SENT,
    expected: { path: `${CHAT}?beta=true&api-version=2026-05-01`, body: NAMED },
  },
  {
    what: 'a path with the model in it, and in the body too',
    settings: { apis: { chat_completions: { path: '/deployments/{model}/{path}' } } },
    basePath: '/openai/v1',
    path: CHAT,
    body: SENT,
    expected: { path: '/openai/v1/deployments/acme%2Flarge-1/chat/completions', body: NAMED },
  },
  {
    what: 'model_in: path takes the model out of the body',
    settings: { apis: { chat_completions: { path: '/deployments/{model}/{path}', model_in: 'path' } } },
    path: CHAT,
    body: SENT,
    expected: {
      path: '/deployments/acme%2Flarge-1/chat/completions',
      body: '{ "messages":[{"role":"user","content":"hi"}],"max_tokens":5}',
    },
  },
  {
    what: 'instead_of_model: other members in its place',
    settings: { apis: RAW_PREDICT, drop_headers: ['anthropic-version'] },
    basePath: '/v1/projects/p',
    path: MESSAGES,
    headers: { 'anthropic-version': '2023-06-01' },
    body: SENT,
    expected: {
      path: '/v1/projects/p/models/acme%2Flarge-1:rawPredict',
      headers: { 'anthropic-version': null },
      body: SENT.replace('"model": "m"', '"anthropic_version":"vertex-2023-10-16"'),
    },
  },
  {
    what: "instead_of_model for one API of a preset: Perplexity's own presets, at the usual path",
    settings: { preset: 'perplexity', apis: { responses: { instead_of_model: { preset: '{model}' } } } },
    path: '/v1/responses',
    body: SENT,
    expected: { path: '/v1/responses', body: SENT.replace('"model": "m"', `"preset":"${PROVIDER_MODEL}"`) },
  },
  {
    what: 'path_stream: where a stream is asked for',
    settings: { apis: RAW_PREDICT },
    path: MESSAGES,
    body: STREAMED,
    expected: {
      path: '/models/acme%2Flarge-1:streamRawPredict',
      body: STREAMED.replace('"model": "m"', '"anthropic_version":"vertex-2023-10-16"'),
    },
  },
  {
    what: 'instead_of_model with the model among the members',
    settings: { apis: RAW_PREDICT },
    path: '/v1/messages/count_tokens',
    body: SENT,
    expected: {
      path: '/models/count-tokens:rawPredict',
      body: SENT.replace('"model": "m"', `"anthropic_version":"vertex-2023-10-16","model":"${PROVIDER_MODEL}"`),
    },
  },
];

const REFUSAL = '{"error":{"code":"NO_SUCH_TENANT","message":"Tenant tn_81 of key sk-of-provider is unknown."}}';

describe('requests as a provider wants them', () => {
  let upstream: FakeUpstream;
  let isRefusing = false;

  before(async () => {
    upstream = await startFakeUpstream(({ body }) =>
      isRefusing
        ? { status: 400, headers: [['content-type', 'application/json']], body: REFUSAL }
        : body.includes('"stream":true')
          ? {
              headers: [['content-type', 'text/event-stream']],
              body: 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
            }
          : { body: '{"usage":{"prompt_tokens":1,"completion_tokens":1,"input_tokens":1,"output_tokens":1}}' },
    );
  });
  after(() => upstream?.close());

  function provider(settings: Readonly<Record<string, unknown>>, basePath = ''): Provider {
    const fields = { id: 'any', base_url: upstream.url + basePath, api_key: 'sk-of-provider', ...settings };
    const { requests, ...found } = configuredProvider.parse(fields);
    return requests === null ? found : { ...found, requests: readRequestSettings(requests) };
  }

  async function call(
    served: Provider,
    { path, headers = {}, body }: Pick<Case, 'path' | 'headers' | 'body'>,
  ): Promise<{ readonly status: number; readonly text: string; readonly arrived: ReceivedRequest | undefined }> {
    const model = modelServedBy('m', served);
    const servedBy = model.servedBy.map((entry) => ({ ...entry, providerModel: PROVIDER_MODEL }));
    const plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals: new Map([['key', principalOf('acme', { billed: false })]]),
      models: [{ ...model, servedBy }],
    });
    expectDocumentedAnswers(plane.url);
    const before = upstream.requests.length;
    try {
      const answer = await httpCall(plane.url + path, {
        headers: { authorization: 'Bearer key', 'content-type': 'application/json', ...headers },
        body,
        // One reply serves all APIs.
        isOffFormat: true,
      });
      const text = answer.body.toString();
      return { status: answer.status, text, arrived: upstream.requests[before] };
    } finally {
      await plane.stop();
    }
  }

  for (const { what, settings, basePath, expected, ...request } of CASES) {
    test(what, async () => {
      const { status, text, arrived } = await call(provider(settings, basePath), request);
      assert.equal(status, 200, text);
      assert.equal(arrived?.path, expected.path);
      assert.equal(arrived.body.toString(), expected.body);
      for (const [name, value] of Object.entries(expected.headers ?? {}))
        assert.equal(arrived.header(name), value, name);
      assert.deepEqual(upstream.violations, []);
    });
  }

  test('errors: how the provider says that it refuses the key is no answer for the client', async () => {
    isRefusing = true;
    try {
      const request = { path: CHAT, body: SENT };
      const unknown = await call(provider({}), request);
      assert.deepEqual([unknown.status, unknown.text], [400, REFUSAL]);
      for (const wording of [{ word: 'NO_SUCH_TENANT' }, { message: 'Tenant ' }]) {
        const known = await call(provider({ errors: [{ status: 400, ...wording }] }), request);
        assert.equal(known.status, 502);
        assert.doesNotMatch(known.text, /tn_81|sk-of-provider/);
      }
    } finally {
      isRefusing = false;
    }
  });
});
