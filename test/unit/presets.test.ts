// Presets of providers: each means what it would mean written out, and nothing more.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConfiguredProvider } from '../../src/domain/configuration/configuration.ts';
import { PRESET_NAMES, PRESETS, type Preset, type PresetName } from '../../src/domain/configuration/presets.ts';
import { configuredProvider } from '../../src/domain/configuration/schema/provider-schema.ts';
import { readRequestSettings } from '../../src/domain/configuration/schema/request-settings.ts';
import type { ApiName } from '../../src/domain/models/apis.ts';
import { ProviderAddress, type TargetName } from '../../src/upstream/request-target.ts';
import { SERVICE_ACCOUNT_KEY } from '../support/google-account-key.ts';

const PATHS: Readonly<Record<string, string>> = {
  chat_completions: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  count_tokens: '/v1/messages/count_tokens',
  images: '/v1/images/generations',
  embeddings: '/v1/embeddings',
  systemone: '/v1/systemone',
};

/** What `with` says in this table. */
const WITH: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  azure: { resource: 'acme-eu' },
  'azure-classic': { resource: 'acme-eu' },
  'azure-anthropic': { resource: 'acme-eu' },
  vertex: { project: 'acme-1', region: 'europe-west4' },
  'vertex-anthropic': { project: 'acme-1' },
  bedrock: { region: 'eu-west-1' },
  'bedrock-mantle': { region: 'eu-west-1' },
};

/** Where a request of each API goes, and what the key is sent as. */
const EXPECTED: Readonly<
  Record<keyof typeof PRESETS, readonly [auth: string, addresses: Readonly<Record<string, string>>]>
> = {
  openai: [
    'bearer',
    {
      chat_completions: 'https://api.openai.com/v1/chat/completions',
      responses: 'https://api.openai.com/v1/responses',
      images: 'https://api.openai.com/v1/images/generations',
      embeddings: 'https://api.openai.com/v1/embeddings',
    },
  ],
  anthropic: [
    'x-api-key',
    {
      messages: 'https://api.anthropic.com/v1/messages',
      count_tokens: 'https://api.anthropic.com/v1/messages/count_tokens',
    },
  ],
  azure: [
    'api-key',
    {
      chat_completions: 'https://acme-eu.openai.azure.com/openai/v1/chat/completions',
      responses: 'https://acme-eu.openai.azure.com/openai/v1/responses',
      images: 'https://acme-eu.openai.azure.com/openai/v1/images/generations',
      embeddings: 'https://acme-eu.openai.azure.com/openai/v1/embeddings',
    },
  ],
  'azure-classic': [
    'api-key',
    {
      chat_completions:
        'https://acme-eu.openai.azure.com/openai/deployments/m-1/chat/completions?api-version=2024-10-21',
      images: 'https://acme-eu.openai.azure.com/openai/deployments/m-1/images/generations?api-version=2024-10-21',
      embeddings: 'https://acme-eu.openai.azure.com/openai/deployments/m-1/embeddings?api-version=2024-10-21',
    },
  ],
  'azure-anthropic': ['x-api-key', { messages: 'https://acme-eu.services.ai.azure.com/anthropic/v1/messages' }],
  gemini: [
    'bearer',
    {
      chat_completions: 'https://generativelanguage.googleapis.com/v1beta/openai/chat/completions',
      images: 'https://generativelanguage.googleapis.com/v1beta/openai/images/generations',
      embeddings: 'https://generativelanguage.googleapis.com/v1beta/openai/embeddings',
    },
  ],
  vertex: [
    'bearer',
    {
      chat_completions:
        'https://europe-west4-aiplatform.googleapis.com/v1/projects/acme-1/locations/europe-west4/endpoints/openapi' +
        '/chat/completions',
    },
  ],
  'vertex-anthropic': [
    'bearer',
    {
      messages:
        'https://aiplatform.googleapis.com/v1/projects/acme-1/locations/global/publishers/anthropic/models' +
        '/m-1:rawPredict',
      count_tokens:
        'https://aiplatform.googleapis.com/v1/projects/acme-1/locations/global/publishers/anthropic/models' +
        '/count-tokens:rawPredict',
    },
  ],
  bedrock: [
    'bearer',
    {
      chat_completions: 'https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions',
      responses: 'https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/responses',
      messages: 'https://bedrock-runtime.eu-west-1.amazonaws.com/anthropic/v1/messages',
    },
  ],
  'bedrock-mantle': [
    'bearer',
    {
      chat_completions: 'https://bedrock-mantle.eu-west-1.api.aws/v1/chat/completions',
      responses: 'https://bedrock-mantle.eu-west-1.api.aws/v1/responses',
      messages: 'https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages',
    },
  ],
  openrouter: [
    'bearer',
    {
      chat_completions: 'https://openrouter.ai/api/v1/chat/completions',
      responses: 'https://openrouter.ai/api/v1/responses',
      messages: 'https://openrouter.ai/api/v1/messages',
      systemone: 'https://openrouter.ai/api/v1/systemone',
    },
  ],
  mistral: [
    'bearer',
    {
      chat_completions: 'https://api.mistral.ai/v1/chat/completions',
      embeddings: 'https://api.mistral.ai/v1/embeddings',
    },
  ],
  groq: [
    'bearer',
    {
      chat_completions: 'https://api.groq.com/openai/v1/chat/completions',
      responses: 'https://api.groq.com/openai/v1/responses',
    },
  ],
  xai: [
    'bearer',
    {
      chat_completions: 'https://api.x.ai/v1/chat/completions',
      responses: 'https://api.x.ai/v1/responses',
      images: 'https://api.x.ai/v1/images/generations',
    },
  ],
  deepseek: [
    'bearer',
    {
      chat_completions: 'https://api.deepseek.com/v1/chat/completions',
      messages: 'https://api.deepseek.com/anthropic/v1/messages',
    },
  ],
  together: [
    'bearer',
    {
      chat_completions: 'https://api.together.ai/v1/chat/completions',
      images: 'https://api.together.ai/v1/images/generations',
      embeddings: 'https://api.together.ai/v1/embeddings',
    },
  ],
  fireworks: [
    'bearer',
    {
      chat_completions: 'https://api.fireworks.ai/inference/v1/chat/completions',
      messages: 'https://api.fireworks.ai/inference/v1/messages',
    },
  ],
  cerebras: ['bearer', { chat_completions: 'https://api.cerebras.ai/v1/chat/completions' }],
  cohere: [
    'bearer',
    {
      chat_completions: 'https://api.cohere.ai/compatibility/v1/chat/completions',
      embeddings: 'https://api.cohere.ai/compatibility/v1/embeddings',
    },
  ],
  perplexity: [
    'bearer',
    {
      chat_completions: 'https://api.perplexity.ai/chat/completions',
      responses: 'https://api.perplexity.ai/v1/responses',
      messages: 'https://api.perplexity.ai/router/v1/messages',
    },
  ],
  ollama: ['none', localAddresses(11_434)],
  lmstudio: ['none', localAddresses(1_234)],
  vllm: ['none', localAddresses(8_000)],
  llamacpp: ['none', localAddresses(8_080)],
  typesafe: ['bearer', { systemone: 'https://api.typesafe.ai/v1/systemone' }],
};

function localAddresses(port: number): Readonly<Record<string, string>> {
  return Object.fromEntries(
    ['chat_completions', 'responses', 'messages', 'embeddings'].map((api) => [
      api,
      `http://127.0.0.1:${port}${PATHS[api]}`,
    ]),
  );
}

const TOKEN = {
  kind: 'google',
  credentials: { type: 'service_account', client_email: 'gateway@acme-1.test', private_key: SERVICE_ACCOUNT_KEY },
};

function read(fields: Readonly<Record<string, unknown>>): ConfiguredProvider {
  const preset: Preset | undefined = PRESETS[fields['preset'] as keyof typeof PRESETS];
  const takesToken = preset?.token !== undefined || fields['token'] !== undefined;
  const isKeyless = fields['auth'] === 'none' || preset?.keyVariable === null;
  return configuredProvider.parse({
    id: 'p',
    ...(takesToken || isKeyless ? {} : { api_key: 'sk-1' }),
    ...fields,
    ...(takesToken ? { token: TOKEN } : {}),
  });
}

function addressOf(preset: PresetName, baseUrl: string): ProviderAddress {
  const found = read({ preset, base_url: baseUrl, ...(WITH[preset] === undefined ? {} : { with: WITH[preset] }) });
  return new ProviderAddress({ ...found, requests: readRequestSettings(found.requests ?? {}) });
}

function pathOf(address: ProviderAddress, api: TargetName): string {
  const path = api === 'verify' ? '/v1/models' : (PATHS[api] ?? '');
  return address.pathOf({ api, path, query: '', providerModel: 'm-1', streamed: false });
}

function isVerifiedByToken(name: PresetName): boolean {
  const { provider }: Preset = PRESETS[name];
  return provider['verify'] === 'token';
}

describe('presets of providers', () => {
  for (const name of PRESET_NAMES) {
    const preset: Preset = PRESETS[name];
    const [auth, addresses] = EXPECTED[name];
    const values = WITH[name];
    const short = read({ preset: name, ...(values === undefined ? {} : { with: values }) });

    test(`${name}: where its requests go`, () => {
      const address = new ProviderAddress({ ...short, requests: readRequestSettings(short.requests ?? {}) });
      assert.equal(short.auth, auth);
      const found = preset.serves.map((api) => {
        const target = { api, path: PATHS[api] ?? '', query: '', providerModel: 'm-1', streamed: false };
        return [api, address.origin + address.pathOf(target)];
      });
      assert.deepEqual(Object.fromEntries(found), addresses);
    });

    test(`${name}: the same as what it stands for, written out`, () => {
      const { preset: _, ...requests } = short.requests ?? {};
      const long = read({
        base_url: short.baseUrl,
        auth: ['bearer', 'none', 'x-api-key'].includes(short.auth) ? short.auth : { header: short.auth },
        ...requests,
      });
      assert.deepEqual({ ...long, requests: { ...long.requests, preset: name } }, short);
    });
  }

  test('what a provider says itself goes before its preset, and beside it where there are several', () => {
    const own = read({
      preset: 'azure-classic',
      with: { resource: 'acme', api_version: '2025-01-01-preview' },
      auth: 'bearer',
      headers: { 'X-Team': 'search' },
      apis: { images: { path: '/pictures/{path}' } },
      timeouts: { idle_ms: 1_000 },
    });
    assert.equal(own.auth, 'bearer');
    assert.deepEqual(own.timeouts, { idleMs: 1_000 });
    assert.deepEqual(own.requests?.headers, { 'x-team': 'search' });
    assert.deepEqual(own.requests?.query, { 'api-version': '2025-01-01-preview' });
    const capitals = read({ preset: 'azure-classic', with: { resource: 'a' }, query: { 'API-Version': '1' } });
    assert.deepEqual(capitals.requests?.query, { 'API-Version': '1' });
    assert.deepEqual(own.requests?.apis?.images, { path: '/pictures/{path}' });
    assert.deepEqual(own.requests?.apis?.chat_completions, { path: '/openai/deployments/{model}/{path}' });
    const elsewhere = read({ preset: 'vllm', base_url: 'http://10.0.0.7:9000', auth: 'bearer', api_key: 'sk-2' });
    assert.deepEqual([elsewhere.baseUrl, elsewhere.apiKey], ['http://10.0.0.7:9000', 'sk-2']);
    assert.equal(read({ preset: 'openai', with: { region: 'eu' } }).baseUrl, 'https://eu.api.openai.com/v1');
    assert.equal(read({ preset: 'ollama', with: { address: 'gpu-1:80' } }).baseUrl, 'http://gpu-1:80/v1');
  });

  /** Behind the base_url as it is written: these presets have paths without a version of their own. */
  const behindWholeBase = (paths: Readonly<Record<string, string>>) =>
    [paths, Object.fromEntries(Object.entries(paths).map(([api, path]) => [api, `/v1${path}`]))] as const;
  const behindEither = (paths: Readonly<Record<string, string>>) => [paths, paths] as const;
  /** Where APIs go at a base_url without a path, and at one that ends in /v1, if not to their usual paths at both. */
  const AT_OTHER_ADDRESSES: Readonly<Partial<Record<PresetName, ReturnType<typeof behindWholeBase>>>> = {
    'azure-classic': behindWholeBase({
      chat_completions: '/openai/deployments/m-1/chat/completions?api-version=2024-10-21',
      images: '/openai/deployments/m-1/images/generations?api-version=2024-10-21',
      embeddings: '/openai/deployments/m-1/embeddings?api-version=2024-10-21',
      verify: '/openai/models?api-version=2024-10-21',
    }),
    gemini: behindWholeBase({
      chat_completions: '/chat/completions',
      images: '/images/generations',
      embeddings: '/embeddings',
      verify: '/models',
    }),
    vertex: behindWholeBase({ chat_completions: '/chat/completions' }),
    'vertex-anthropic': behindWholeBase({ messages: '/m-1:rawPredict', count_tokens: '/count-tokens:rawPredict' }),
    bedrock: behindEither({
      chat_completions: '/openai/v1/chat/completions',
      responses: '/openai/v1/responses',
      messages: '/anthropic/v1/messages',
      verify: '/openai/v1/models',
    }),
    'bedrock-mantle': behindEither({ messages: '/anthropic/v1/messages' }),
    deepseek: behindEither({ messages: '/anthropic/v1/messages' }),
    openrouter: behindEither({ verify: '/v1/key' }),
    perplexity: [
      { chat_completions: '/chat/completions', messages: '/router/v1/messages' },
      { chat_completions: '/v1/chat/completions', messages: '/router/v1/messages' },
    ],
  };
  for (const preset of PRESET_NAMES)
    for (const [at, base] of ['', '/v1'].entries())
      for (const end of ['', '/'])
        test(`${preset} at an address that ends in "${base}${end}": no /v1 is doubled or missing`, () => {
          const address = addressOf(preset, `https://a.test${base}${end}`);
          const apis = [...PRESETS[preset].serves, ...(isVerifiedByToken(preset) ? [] : ['verify' as const])];
          const usual = Object.fromEntries(apis.map((api) => [api, api === 'verify' ? '/v1/models' : PATHS[api]]));
          assert.deepEqual(Object.fromEntries(apis.map((api) => [api, pathOf(address, api)])), {
            ...usual,
            ...AT_OTHER_ADDRESSES[preset]?.[at],
          });
        });

  /** The base URL that somebody pastes for a preset whose paths have prefixes, and where each API then goes. */
  const PASTED: readonly (readonly [
    preset: keyof typeof PRESETS,
    baseUrls: readonly string[],
    verify: string,
    paths: Readonly<Record<string, string>>,
  ])[] = [
    [
      'deepseek',
      ['https://a.test/anthropic', 'https://a.test/anthropic/v1'],
      '/anthropic/v1/models',
      { messages: '/anthropic/v1/messages' },
    ],
    [
      'bedrock',
      ['/openai/v1', '/openai', '/anthropic', '/anthropic/v1/'].map((path) => `https://a.test${path}`),
      '/openai/v1/models',
      {
        chat_completions: '/openai/v1/chat/completions',
        responses: '/openai/v1/responses',
        messages: '/anthropic/v1/messages',
      },
    ],
    [
      'bedrock',
      ['https://a.test/to/aws', 'https://a.test/to/aws/v1', 'https://a.test/to/aws/openai/v1/'],
      '/to/aws/openai/v1/models',
      { chat_completions: '/to/aws/openai/v1/chat/completions', messages: '/to/aws/anthropic/v1/messages' },
    ],
    [
      'openrouter',
      ['https://a.test/api', 'https://a.test/api/v1', 'https://a.test/api/v1/'],
      '/api/v1/key',
      { chat_completions: '/api/v1/chat/completions', messages: '/api/v1/messages' },
    ],
    ['perplexity', ['https://a.test/router/v1'], '/router/v1/models', { messages: '/router/v1/messages' }],
    [
      'gemini',
      ['https://a.test/v1beta/openai', 'https://a.test/v1beta/openai/'],
      '/v1beta/openai/models',
      { chat_completions: '/v1beta/openai/chat/completions' },
    ],
  ];
  for (const [preset, baseUrls, verify, paths] of PASTED)
    for (const base_url of baseUrls)
      test(`${preset} at ${base_url}: no prefix is doubled`, () => {
        const address = addressOf(preset, base_url);
        for (const [api, path] of Object.entries(paths)) assert.equal(pathOf(address, api as ApiName), path);
        assert.equal(pathOf(address, 'verify'), verify);
      });

  const WRONG: readonly (readonly [
    what: string,
    fields: Readonly<Record<string, unknown>>,
    path: string,
    text: RegExp,
  ])[] = [
    ['an unknown preset', { preset: 'nobody' }, 'preset', /Invalid option/],
    ['a parameter that is needed', { preset: 'azure' }, 'with', /must say resource, which preset azure needs/],
    ['an unknown parameter', { preset: 'azure', with: { resource: 'a', zone: 'b' } }, 'with', /takes resource/],
    ['a parameter of a preset without any', { preset: 'groq', with: { zone: 'b' } }, 'with', /takes nothing/],
    [
      'a value that would change the address',
      { preset: 'azure', with: { resource: 'a.test/?' } },
      'with',
      /as in an address/,
    ],
    ['parameters without a preset', { base_url: 'http://a.test', with: {} }, 'with', /there is none/],
    ['neither an address nor a preset', {}, 'base_url', /is missing, and there is no preset/],
    ['a header that frames the request', { base_url: 'http://a.test', headers: { Host: 'b' } }, 'headers.Host', /./],
    [
      'a credential among the headers',
      { base_url: 'http://a.test', headers: { Authorization: 'b' } },
      'headers.Authorization',
      /./,
    ],
    [
      'a header of two lines',
      { base_url: 'http://a.test', headers: { 'x-a': 'b\r\nc: d' } },
      'headers.x-a',
      /visible ASCII/,
    ],
    [
      'a path that climbs',
      { base_url: 'http://a.test', apis: { messages: { path: '/../x' } } },
      'apis.messages.path',
      /as a step/,
    ],
    [
      'a path with a query',
      { base_url: 'http://a.test', apis: { messages: { path: '/x?y' } } },
      'apis.messages.path',
      /must begin with/,
    ],
    [
      'a model in a path without it',
      { base_url: 'http://a.test', apis: { messages: { path: '/x', model_in: 'path' } } },
      'apis.messages.path',
      /must hold \{model\}/,
    ],
    [
      'one path for two operations',
      { base_url: 'http://a.test', apis: { images: { path: '/x' } } },
      'apis.images.path',
      /must hold \{path\}/,
    ],
    ['a key header that frames the request', { base_url: 'http://a.test', auth: { header: 'host' } }, 'auth', /./],
    [
      'a wording that is none',
      { base_url: 'http://a.test', errors: [{ status: 400 }] },
      'errors.0',
      /either word or message/,
    ],
    [
      'a wording of another status',
      { base_url: 'http://a.test', errors: [{ status: 500, word: 'abc' }] },
      'errors.0.status',
      /./,
    ],
  ];
  for (const [what, fields, path, text] of WRONG) {
    test(`${what} is a mistake that is named`, () => {
      const found = configuredProvider.safeParse({ id: 'p', api_key: 'sk-1', ...fields });
      assert.equal(found.success, false);
      const issue = found.error?.issues.find((one) => one.path.join('.') === path);
      assert.ok(issue !== undefined, JSON.stringify(found.error?.issues));
      assert.match(issue.message, text);
    });
  }
});
