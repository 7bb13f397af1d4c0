// `tollgate import litellm`: each row of the mapping on files of the shapes that LiteLLM's own examples have. With
// LITELLM_CONFIGS a whole directory of real ones is imported too.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { mistakesOf } from '../../src/commands/configuration-file/configuration-text.ts';
import { importCommand } from '../../src/commands/import.ts';
import { ConfigurationText } from '../../src/domain/configuration-text/configuration-text.ts';
import { StartFault } from '../../src/installation/start-fault.ts';
import { BROKEN_VALUES, QUOTED_SECRET } from '../support/broken-yaml.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const DIRECTORY = process.env['LITELLM_CONFIGS'];

interface Result {
  readonly code: number;
  readonly printed: string;
  readonly text: string;
  readonly providers: readonly Readonly<Record<string, unknown>>[];
  readonly models: readonly Readonly<Record<string, unknown>>[];
}

interface Served {
  readonly provider: string;
  readonly model: string;
  readonly apis: readonly string[];
  readonly price: Readonly<Record<string, unknown>>;
}

function servedBy(model: Readonly<Record<string, unknown>> | undefined): readonly Served[] {
  return (model?.['served_by'] ?? []) as readonly Served[];
}

async function importText(context: TestContext, litellm: string, ...options: readonly string[]): Promise<Result> {
  const directory = temporaryDirectory(context);
  const [config, out] = [join(directory, 'config.yaml'), join(directory, 'tollgate.yaml')];
  writeFileSync(config, litellm);
  const lines: string[] = [];
  const print = (text: string): void => void lines.push(text);
  const code = await importCommand.run(['litellm', config, '--out', out, ...options], { environment: {}, print });
  const text = readFileSync(out, 'utf8');
  assert.deepEqual(mistakesOf(text), [], text);
  const opened = ConfigurationText.open(text, 'tollgate.yaml');
  assert.ok(opened.ok);
  const { providers = [], models = [] } = opened.file.values as { providers?: []; models?: [] };
  return { code, printed: lines.join('\n'), text, providers, models };
}

/** A file with one entry, whose parameters are given as lines. */
function entry(name: string, params: readonly string[], info: readonly string[] = []): string {
  return [
    'model_list:',
    `  - model_name: ${name}`,
    '    litellm_params:',
    ...params.map((line) => `      ${line}`),
    ...(info.length === 0 ? [] : ['    model_info:', ...info.map((line) => `      ${line}`)]),
    '',
  ].join('\n');
}

const PROVIDERS: Readonly<Record<string, readonly [params: readonly string[], provider: object, model: string]>> = {
  'a prefix with a preset': [
    ['model: groq/llama-x', 'api_key: os.environ/GK'],
    { id: 'groq', preset: 'groq', api_key: '${GK}' },
    'llama-x',
  ],
  'a name that LiteLLM knows without a prefix': [
    ['model: gpt-5'],
    { id: 'openai', preset: 'openai', api_key: '${OPENAI_API_KEY}' },
    'gpt-5',
  ],
  'another name of a preset': [
    ['model: together_ai/meta/llama'],
    { id: 'together', preset: 'together', api_key: '${TOGETHER_API_KEY}' },
    'meta/llama',
  ],
  'a provider beside the model': [
    ['model: some/model', 'custom_llm_provider: fireworks_ai'],
    { id: 'fireworks', preset: 'fireworks', api_key: '${FIREWORKS_API_KEY}' },
    'some/model',
  ],
  'an address that speaks what OpenAI speaks': [
    ['model: openai/m', 'api_base: https://llm.acme.test/v1/', 'api_key: os.environ/K'],
    { id: 'acme', base_url: 'https://llm.acme.test/v1', api_key: '${K}' },
    'm',
  ],
  'an address in the environment, and no key': [
    ['model: openai/m', 'api_base: os.environ/BASE'],
    { id: 'local', base_url: '${BASE}', auth: 'none' },
    'm',
  ],
  'a provider that is not known, with its address': [
    ['model: siliconflow/org/m', 'api_base: https://api.siliconflow.test/v1', 'api_key: os.environ/K'],
    { id: 'siliconflow', base_url: 'https://api.siliconflow.test/v1', api_key: '${K}' },
    'org/m',
  ],
  'Azure with a dated version': [
    [
      'model: azure/d',
      'api_base: https://Acme-1.openai.azure.com/',
      'api_version: "2024-06-01"',
      'api_key: os.environ/K',
    ],
    {
      id: 'azure-acme-1',
      preset: 'azure-classic',
      with: { resource: 'acme-1', api_version: '2024-06-01' },
      api_key: '${K}',
    },
    'd',
  ],
  'Azure without a version': [
    ['model: azure/d', 'api_base: https://acme.openai.azure.com', 'api_key: os.environ/K'],
    { id: 'azure-acme', preset: 'azure', with: { resource: 'acme' }, api_key: '${K}' },
    'd',
  ],
  'Azure at the address of its newer API': [
    [
      'model: azure/d',
      'api_base: https://acme.openai.azure.com/openai/v1/',
      'api_version: v1',
      'api_key: os.environ/K',
    ],
    { id: 'azure-acme', preset: 'azure', with: { resource: 'acme' }, api_key: '${K}' },
    'd',
  ],
  'Azure at the address of its newer API, by way of something': [
    ['model: azure/d', 'api_base: https://azure.acme.test/eu/openai/v1', 'api_version: v1', 'api_key: os.environ/K'],
    {
      id: 'azure',
      base_url: 'https://azure.acme.test/eu/openai/v1',
      auth: { header: 'api-key' },
      api_key: '${K}',
    },
    'd',
  ],
  'Claude on Azure': [
    [
      'model: azure_ai/claude-x',
      'api_base: https://Acme.services.ai.azure.com/anthropic/v1/messages',
      'api_key: os.environ/K',
    ],
    { id: 'azure-anthropic', preset: 'azure-anthropic', with: { resource: 'acme' }, api_key: '${K}' },
    'claude-x',
  ],
  'Claude on Azure by way of something': [
    ['model: azure_ai/claude-x', 'api_base: https://azure.acme.test/', 'api_key: os.environ/K'],
    {
      id: 'azure-anthropic',
      base_url: 'https://azure.acme.test',
      auth: 'x-api-key',
      apis: { messages: { path: '/anthropic/v1/{path}' } },
      verify: { path: '/anthropic/v1/models' },
      api_key: '${K}',
    },
    'claude-x',
  ],
  'Gemini at an address in the environment': [
    ['model: gemini/gemini-x', 'api_base: os.environ/BASE', 'api_key: os.environ/K'],
    { id: 'gemini', preset: 'gemini', base_url: '${BASE}/openai', api_key: '${K}' },
    'gemini-x',
  ],
  'Gemini by way of something': [
    ['model: gemini/gemini-x', 'api_base: https://google.acme.test/v1beta/', 'api_key: os.environ/K'],
    { id: 'gemini', preset: 'gemini', base_url: 'https://google.acme.test/v1beta/openai', api_key: '${K}' },
    'gemini-x',
  ],
  "Perplexity's agents at an address that ends in a version": [
    ['model: perplexity/openai/gpt-5.5', 'api_base: https://api.perplexity.ai/v1', 'api_key: os.environ/K'],
    { id: 'perplexity', preset: 'perplexity', base_url: 'https://api.perplexity.ai/v1', api_key: '${K}' },
    'openai/gpt-5.5',
  ],
  "a preset of Perplexity's": [
    ['model: perplexity/preset/pro-search', 'api_key: os.environ/K'],
    {
      id: 'perplexity-presets',
      preset: 'perplexity',
      apis: { responses: { instead_of_model: { preset: '{model}' } } },
      api_key: '${K}',
    },
    'pro-search',
  ],
  'Azure at an address in the environment': [
    ['model: azure/d', 'api_base: os.environ/AZURE_API_BASE', 'api_version: os.environ/V', 'api_key: os.environ/K'],
    {
      id: 'azure',
      base_url: '${AZURE_API_BASE}',
      auth: { header: 'api-key' },
      apis: {
        chat_completions: { path: '/openai/deployments/{model}/{path}' },
        images: { path: '/openai/deployments/{model}/{path}' },
        embeddings: { path: '/openai/deployments/{model}/{path}' },
      },
      verify: { path: '/openai/models' },
      query: { 'api-version': '${V}' },
      api_key: '${K}',
    },
    'd',
  ],
  'Bedrock with its region beside it': [
    ['model: bedrock/converse/anthropic.claude-x', 'aws_region_name: eu-west-1'],
    { id: 'bedrock', preset: 'bedrock', with: { region: 'eu-west-1' }, api_key: '${AWS_BEARER_TOKEN_BEDROCK}' },
    'anthropic.claude-x',
  ],
  'Bedrock with its region in the name': [
    ['model: bedrock/us-east-1/openai.gpt-oss'],
    {
      id: 'bedrock-us-east-1',
      preset: 'bedrock',
      with: { region: 'us-east-1' },
      api_key: '${AWS_BEARER_TOKEN_BEDROCK}',
    },
    'openai.gpt-oss',
  ],
  'Vertex AI with the key of an account in the environment': [
    ['model: vertex_ai/gemini-x', 'vertex_project: acme-1', 'vertex_location: eu', 'vertex_credentials: os.environ/GC'],
    {
      id: 'vertex',
      preset: 'vertex',
      with: { project: 'acme-1', region: 'eu' },
      token: { kind: 'google', credentials: '${GC}' },
    },
    'google/gemini-x',
  ],
  'Claude on Vertex AI, with the path of a key': [
    ['model: vertex_ai/claude-x', 'vertex_project: os.environ/VP', 'vertex_credentials: /keys/account.json'],
    {
      id: 'vertex-anthropic',
      preset: 'vertex-anthropic',
      with: { project: '${VP}' },
      token: { kind: 'google', credentials: '${GOOGLE_CREDENTIALS}' },
    },
    'claude-x',
  ],
  'Azure with an application of Entra': [
    [
      'model: azure/d',
      'api_base: https://acme.openai.azure.com',
      'tenant_id: os.environ/TENANT',
      'client_id: app-1',
      'client_secret: entra~secret',
    ],
    {
      id: 'azure-acme',
      preset: 'azure',
      with: { resource: 'acme' },
      token: { kind: 'entra', tenant: '${TENANT}', client_id: 'app-1', client_secret: '${AZURE_CLIENT_SECRET}' },
    },
    'd',
  ],
  'Bedrock with a key of IAM': [
    [
      'model: bedrock/openai.gpt-oss',
      'aws_region_name: eu-west-1',
      'aws_access_key_id: os.environ/ID',
      'aws_secret_access_key: os.environ/SECRET',
    ],
    {
      id: 'bedrock',
      preset: 'bedrock',
      with: { region: 'eu-west-1' },
      token: { kind: 'aws', region: 'eu-west-1', access_key_id: '${ID}', secret_access_key: '${SECRET}' },
    },
    'openai.gpt-oss',
  ],
  'a server of one’s own': [
    ['model: ollama_chat/llama3', 'api_base: http://gpu:11434'],
    { id: 'ollama', preset: 'ollama', base_url: 'http://gpu:11434' },
    'llama3',
  ],
  'a timeout and headers': [
    ['model: mistral/m', 'timeout: 2.5', 'extra_headers: { X-Team: a, x-trace: os.environ/T, Authorization: no }'],
    {
      id: 'mistral',
      preset: 'mistral',
      api_key: '${MISTRAL_API_KEY}',
      headers: { 'x-team': 'a', 'x-trace': '${T}' },
      timeouts: { total_ms: 2500 },
    },
    'm',
  ],
};

describe('a deployment of LiteLLM’s becomes a provider and a model', () => {
  for (const [name, [params, provider, model]] of Object.entries(PROVIDERS))
    test(name, async (context) => {
      const { providers, models, text } = await importText(context, entry('public', params));
      assert.ok(!text.includes('entra~secret'));
      assert.deepEqual(providers, [provider]);
      assert.deepEqual(
        models.map((found) => [found['id'], servedBy(found)[0]?.model]),
        [['public', model]],
      );
    });

  test('a credential by its name is one provider for all that name it', async (context) => {
    const { providers, models } = await importText(
      context,
      [
        'model_list:',
        ...['a', 'b'].flatMap((name) => [
          `  - model_name: ${name}`,
          `    litellm_params: { model: openai/${name}, litellm_credential_name: My Cred }`,
        ]),
        'credential_list:',
        '  - credential_name: My Cred',
        '    credential_values: { api_key: os.environ/K, api_base: "https://llm.acme.test" }',
      ].join('\n'),
    );
    assert.deepEqual(providers, [{ id: 'my-cred', base_url: 'https://llm.acme.test', api_key: '${K}' }]);
    assert.equal(models.length, 2);
  });

  test('costs are taken over to the digit, and go before the listed ones', async (context) => {
    const costs = [
      'model: openai/gpt-5',
      'input_cost_per_token: 0.00000125',
      'output_cost_per_token: 1e-05',
      'cache_read_input_token_cost: 1.25e-7',
      'input_cost_per_token_above_200k_tokens: 0.0000025',
      'input_cost_per_token_priority: 2.5e-06',
      'output_cost_per_token_flex: 0.000005',
      'input_cost_per_audio_token: 0.0000001234567',
      'input_cost_per_request: 0.0025',
      'input_cost_per_second: 0.1',
    ];
    const { models, printed, text } = await importText(context, entry('m', costs));
    const { calls: _, ...rest } = servedBy(models[0])[0]?.price ?? {};
    assert.deepEqual(rest, {
      input: '1.25',
      cached_input: '0.125',
      output: '10',
      input_audio: '0.123457',
      request: '0.0025',
      tiers: [{ from_input: 200_001, input: '2.5' }],
      service_tiers: { priority: { input: '2.5' }, flex: { output: '5' } },
    });
    assert.match(text, /# Prices: config\.yaml, and genai-prices /);
    assert.match(printed, /config\.yaml:11: .* input_cost_per_audio_token: rounded up to 0\.123457 per million tokens/);
    assert.match(printed, /config\.yaml:13: .* input_cost_per_second: /);
  });

  test('the price of a deployment is that of its base_model; limits and kinds are taken over', async (context) => {
    const azure = ['model: azure/my-name', 'api_base: https://acme.openai.azure.com', 'api_key: os.environ/K'];
    const chat = await importText(
      context,
      entry('m', azure, ['base_model: azure/gpt-5', 'max_input_tokens: 1000', 'max_output_tokens: 100']),
    );
    const [model] = chat.models;
    assert.deepEqual([model?.['context_length'], model?.['max_output_tokens']], [1000, 100]);
    assert.match(JSON.stringify(model), /"price":\{"input":"1\.25"/);
    const vectors = await importText(
      context,
      entry('v', azure, ['mode: embedding', 'base_model: text-embedding-3-small']),
    );
    assert.equal(vectors.models[0]?.['kind'], 'embedding');
    assert.deepEqual(servedBy(vectors.models[0])[0]?.apis, ['embeddings']);
  });

  test('several deployments of one name are one model, in their order; aliases follow', async (context) => {
    const { models, providers, printed } = await importText(
      context,
      `model_list:
  - { model_name: m, litellm_params: { model: gpt-5, api_key: sk-first, order: 2 } }
  - { model_name: m, litellm_params: { model: gpt-5, api_key: sk-second, order: 1 } }
  - { model_name: m, litellm_params: { model: gpt-5, api_key: sk-first, order: 3 } }
router_settings:
  model_group_alias: { "other": "m", hidden: { model: m, hidden: true }, wrong: nobody, m: m }
`,
    );
    assert.deepEqual(
      providers.map(({ api_key: key }) => key),
      ['${OPENAI_API_KEY}', '${OPENAI_API_KEY_2}'],
    );
    assert.deepEqual(models[0]?.['aliases'], ['other', 'hidden']);
    assert.deepEqual(
      servedBy(models[0]).map(({ provider }) => provider),
      ['openai-2', 'openai'],
    );
    assert.match(printed, /config\.yaml:4: model_list\[2\] m: is the same deployment once more/);
    assert.match(printed, /model_group_alias wrong: there is no imported model "nobody"/);
    assert.match(printed, /model_group_alias m: a model has this name/);
    assert.ok(!JSON.stringify({ models, providers, printed }).includes('sk-'));
  });
});

/** Each beside an entry that is imported. */
const ODD_ENTRIES: Readonly<Record<string, readonly [params: string, expected: RegExp]>> = {
  'an address with a query': [
    'model: azure/d, api_base: "https://a.test/openai?api-version=1&key=PLANTED", api_key: sk-PLANTED',
    /^config\.yaml:5: model_list\[1\] odd: is left out, base_url: must be .* without query/,
  ],
  'an address with a password': ['model: openai/m, api_base: "https://u:PLANTED@a.test"', /base_url: must be /],
  'an address without a scheme': ['model: openai/m, api_base: a.test/v1, api_key: sk-PLANTED', /base_url: must be /],
  'the name of a model with a space': ['model: "openai/two words"', /served_by\[0\]\.model: /],
  'a cost that nobody has': ['model: gpt-5, input_cost_per_token: 1e30', /served_by\[0\]\.price/],
  'a provider of the name of a method': ['model: toString/m', /"toString" is no known provider/],
  'an anchor within itself': [
    'model: gpt-5, extra_body: &one { two: *one }',
    /^config\.yaml:6: \*one: an alias stands/,
  ],
};

describe('an odd entry is listed, and the others are imported', () => {
  for (const [name, [params, expected]] of Object.entries(ODD_ENTRIES))
    test(name, async (context) => {
      const odd = `  - model_name: odd\n    litellm_params: { ${params} }\n`;
      const { models, providers, printed, text } = await importText(
        context,
        entry('m', ['model: groq/x']).trimEnd() + `\n${odd}`,
      );
      assert.equal(models[0]?.['id'], 'm');
      assert.equal(providers[0]?.['id'], 'groq');
      assert.equal(providers.length, models.length);
      assert.ok(
        printed.split('\n').some((line) => expected.test(line)),
        printed,
      );
      assert.ok(!(printed + text).includes('PLANTED'));
    });

  test("of Perplexity's models it is said which have ended, and where its agents are served", async (context) => {
    const text = `${entry('old', ['model: perplexity/sonar-pro'])}${entry('agent', ['model: perplexity/openai/gpt-5.5']).replace('model_list:\n', '')}`;
    const { models, printed } = await importText(context, text);
    assert.deepEqual(
      models.map((model) => servedBy(model)[0]?.apis),
      [['chat_completions'], ['responses', 'messages']],
    );
    assert.match(printed, /model_list\[0\] old: Perplexity announced the end of its chat completions/);
    assert.match(printed, /model_list\[1\] agent: is served on \/v1\/responses and \/v1\/messages alone/);
    assert.doesNotMatch(printed, /\[1\] agent: Perplexity announced|\[0\] old: is served on/);
  });

  test('Claude on Azure is asked by Messages alone, wherever it is', async (context) => {
    for (const base of ['https://acme.services.ai.azure.com', 'https://azure.acme.test']) {
      const { models } = await importText(context, entry('m', ['model: azure_ai/claude-x', `api_base: ${base}`]));
      assert.deepEqual(servedBy(models[0])[0]?.apis, ['messages']);
    }
  });

  test('a preset of Perplexity’s is asked by Responses alone, and may cost otherwise tomorrow', async (context) => {
    const { models, printed } = await importText(context, entry('search', ['model: perplexity/preset/pro-search']));
    assert.deepEqual(servedBy(models[0])[0]?.apis, ['responses']);
    assert.match(printed, /\[0\] search: "preset\/pro-search" is a preset of Perplexity's: .* so look at its price/);
    assert.match(printed, /\[0\] search: is served on \/v1\/responses alone/);
    assert.doesNotMatch(printed, /Perplexity announced/);
  });

  test('headers that a provider cannot have are listed, and credentials in headers are not copied', async (context) => {
    const { providers, printed, text } = await importText(
      context,
      [
        'model_list:',
        '  - model_name: m',
        '    litellm_params:',
        '      model: groq/x',
        '      extra_headers:',
        '        x-umlaut: ü',
        '        x-lines: "a\\r\\nb"',
        '        x-empty: ""',
        '        x-list: [a]',
        '        Content-Length: 5',
        '        Helicone-Auth: Bearer sk-PLANTED1',
        '        cf-aig-authorization: PLANTED2',
        '        X-Api-Token: PLANTED3',
        '        x-tag: sk-proj-PLANTED4',
        '        x-custom: Token PLANTED5',
        '        x-signature: v1.PLANTED6abcdefghijkl',
        '        x-session: aPLANTED7-_0123456789+/==',
        '        x-gateway: tenant:PLANTED0c5b4a39281706f5e4d3c2b1a0',
        '        x-sign: id=abc;sig=PLANTED0c5b4a39281706f5e4',
        `        x-quoted: 'Token="PLANTED8"'`,
        '        x-id: hf_PLANTED9',
        '        x-place: https://user:PLANTED0@h.test/x',
        '        x-uuid: PLANTED1-0a1b-4c2d-8e3f-PLANTED10000',
        '        x-secret: os.environ/SECRET',
        '        x-location: projects/my-prj/locations/us-central1',
        '        x-service: litellm-proxy-europe-west1b2c3',
        '        x-team: a',
        '        x-region: europe-west-of-somewhere',
        '        x-agent: acme gateway 12 of the third floor',
        '        x-number: "12345678901234567890"',
        '        anthropic-beta: context-1m-2025-08-07',
        '        x-versions: context-1m-2025-08-07,output-128k-2025-02-19',
      ].join('\n'),
    );
    assert.deepEqual(providers[0]?.['headers'], {
      'helicone-auth': '${HELICONE_AUTH_HEADER}',
      'cf-aig-authorization': '${CF_AIG_AUTHORIZATION_HEADER}',
      'x-api-token': '${X_API_TOKEN_HEADER}',
      'x-tag': '${X_TAG_HEADER}',
      'x-custom': '${X_CUSTOM_HEADER}',
      'x-signature': '${X_SIGNATURE_HEADER}',
      'x-session': '${X_SESSION_HEADER}',
      'x-gateway': '${X_GATEWAY_HEADER}',
      'x-sign': '${X_SIGN_HEADER}',
      'x-quoted': '${X_QUOTED_HEADER}',
      'x-id': '${X_ID_HEADER}',
      'x-place': '${X_PLACE_HEADER}',
      'x-uuid': '${X_UUID_HEADER}',
      'x-secret': '${SECRET}',
      'x-location': 'projects/my-prj/locations/us-central1',
      'x-service': 'litellm-proxy-europe-west1b2c3',
      'x-team': 'a',
      'x-region': 'europe-west-of-somewhere',
      'x-agent': 'acme gateway 12 of the third floor',
      'x-number': '12345678901234567890',
      'anthropic-beta': 'context-1m-2025-08-07',
      'x-versions': 'context-1m-2025-08-07,output-128k-2025-02-19',
    });
    for (const [line, name] of [
      [6, 'x-umlaut'],
      [7, 'x-lines'],
      [8, 'x-empty'],
      [9, 'x-list'],
      [10, 'Content-Length'],
    ])
      assert.match(printed, new RegExp(`config\\.yaml:${line}: model_list\\[0\\] m header ${name}: `));
    assert.match(printed, /config\.yaml:11: .*Helicone-Auth: .* not copied: put it into HELICONE_AUTH_HEADER\n/);
    assert.ok(!(printed + text).includes('PLANTED'));
  });
});

test('merged mappings are read as LiteLLM reads them, with the lines on which they stand', async (context) => {
  const { providers, models, printed } = await importText(
    context,
    `x-first: &first
  api_key: os.environ/FIRST
  api_base: https://first.acme.test/v1
  weight: 1
x-second: &second { api_key: os.environ/SECOND, timeout: 3 }
model_list:
  - model_name: a
    litellm_params:
      <<: *first
      model: openai/a
  - model_name: b
    litellm_params: { model: openai/b, <<: [*first, *second], api_key: os.environ/OWN }
`,
  );
  assert.deepEqual(providers, [
    { id: 'acme', base_url: 'https://first.acme.test/v1', api_key: '${FIRST}' },
    { id: 'acme-2', base_url: 'https://first.acme.test/v1', api_key: '${OWN}', timeouts: { total_ms: 3000 } },
  ]);
  assert.equal(models.length, 2);
  assert.match(printed, /config\.yaml:4: model_list\[0\] a weight: /);
});

test('of a key that stands twice the last one counts, and the first is listed', async (context) => {
  const first = entry('a', ['model: gpt-5']);
  const { models, printed } = await importText(context, first + entry('b', ['model: gpt-5']));
  assert.deepEqual(
    models.map(({ id }) => id),
    ['b'],
  );
  assert.match(printed, /config\.yaml:1: model_list: it stands again on line 5, which is what counts/);
});

test('a tier has what the tiers below it say', async (context) => {
  const costs = [
    'model: groq/x',
    'input_cost_per_token: 2e-6',
    'output_cost_per_token: 1e-5',
    'output_cost_per_token_above_200k_tokens: 2e-5',
    'input_cost_per_token_above_272k_tokens: 5e-6',
  ];
  const { models } = await importText(context, entry('m', costs));
  assert.deepEqual(servedBy(models[0])[0]?.price['tiers'], [
    { from_input: 200_001, output: '20' },
    { from_input: 272_001, output: '20', input: '5' },
  ]);
});

describe('a key that stands in the file does not go into a variable that has another one', () => {
  for (const [name, params] of [
    ['since the file names it', '{ model: gpt-5, api_key: os.environ/OPENAI_API_KEY }'],
    ['since an entry without a key is meant by it', '{ model: gpt-5 }'],
  ] as const)
    test(name, async (context) => {
      const second = `  - { model_name: b, litellm_params: ${params} }\n`;
      const { providers, printed } = await importText(
        context,
        entry('a', ['model: gpt-5', 'api_key: sk-own']) + second,
      );
      assert.deepEqual(
        providers.map(({ api_key: key }) => key),
        ['${OPENAI_API_KEY_2}', '${OPENAI_API_KEY}'],
      );
      assert.equal(printed.match(/put it into OPENAI_API_KEY_2\n/g)?.length, 1);
    });
});

test('the keys of two accounts of Google go into two variables, written as text or as mappings', async (context) => {
  const account = (name: string) => `  - model_name: ${name}
    litellm_params:
      model: vertex_ai/gemini-x
      vertex_project: p
      vertex_credentials: { client_email: ${name}@x.test, private_key: PLANTED }
`;
  const { providers, text } = await importText(context, `model_list:\n${account('a')}${account('b')}`);
  assert.deepEqual(
    providers.map(({ token }) => (token as { credentials: string }).credentials),
    ['${GOOGLE_CREDENTIALS}', '${GOOGLE_CREDENTIALS_2}'],
  );
  assert.ok(!text.includes('PLANTED'));
});

test('an alias that stands twice is listed, as are aliases that are none', async (context) => {
  const { models, printed } = await importText(
    context,
    `${entry('m', ['model: gpt-5'])}router_settings: { model_group_alias: { other: m } }
litellm_settings: { model_group_alias: { other: m } }
`,
  );
  assert.deepEqual(models[0]?.['aliases'], ['other']);
  assert.match(printed, /litellm_settings\.model_group_alias other: a model has this name/);
  const none = await importText(
    context,
    `${entry('m', ['model: gpt-5'])}router_settings: { model_group_alias: [a] }\n`,
  );
  assert.match(none.printed, /config\.yaml:5: router_settings\.model_group_alias: it is not a mapping/);
});

const NOT_TAKEN = `model_list:
  - model_name: "*"
    litellm_params: { model: "openai/*" }
  - model_name: picture
    litellm_params: { model: dall-e-3 }
  - model_name: vertex
    litellm_params: { model: vertex_ai_beta/gemini-x, vertex_project: p }
  - model_name: nobody
    litellm_params: { model: unknown/x }
  - model_name: bare
    litellm_params: { model: something }
  - litellm_params: { model: gpt-5 }
  - model_name: "two words"
    litellm_params: { model: gpt-5 }
  - model_name: voice
    litellm_params: { model: gpt-5 }
    model_info: { mode: realtime }
  - model_name: kept
    litellm_params: { model: claude-x, rpm: 5, weight: 2, temperature: 0, mock_response: hi }
  - model_name: variant
    litellm_params: { model: "openrouter/some/model:free" }
litellm_settings: { drop_params: true, callbacks: [otel], fallbacks: [{ a: [b] }], new_thing: 1 }
general_settings: { master_key: sk-1234, database_url: "postgresql://u:pw-4711@h/d" }
guardrails: [{ guardrail_name: g }]
environment_variables: { REDIS_PASSWORD: hidden }
`;

test('what is not taken over is listed line by line, with the reason and without secrets', async (context) => {
  const { printed, models, text } = await importText(context, NOT_TAKEN);
  assert.deepEqual(
    models.map(({ id }) => id),
    ['kept', 'variant'],
  );
  for (const [line, expected] of [
    [2, /\*: wildcards/],
    [4, /picture: is no model for text/],
    [6, /vertex: /],
    [8, /nobody: "unknown" is no known provider/],
    [10, /bare: its model has no provider in front/],
    [12, /it has no model_name/],
    [13, /two words: its name is not valid/],
    [15, /voice: models of mode realtime are not served/],
    [18, /kept: is served on \/v1\/messages alone/],
    [19, /kept rpm: limits are set for/],
    [19, /kept weight: /],
    [19, /kept temperature: /],
    [19, /kept mock_response: there are no mocked replies/],
    [21, /variant: "some\/model:free" is a variant/],
    [22, /litellm_settings\.drop_params: /],
    [22, /litellm_settings\.callbacks: /],
    [22, /litellm_settings\.fallbacks: /],
    [22, /litellm_settings\.new_thing: there is nothing like it/],
    [23, /general_settings\.master_key: ADMIN_TOKEN/],
    [23, /general_settings\.database_url: DATABASE_URL/],
    [24, /guardrails: /],
    [25, /environment_variables: /],
  ] as const)
    assert.ok(
      printed.split('\n').some((found) => found.startsWith(`config.yaml:${line}: `) && expected.test(found)),
      `line ${line} ${expected}\n${printed}`,
    );
  for (const secret of ['sk-1234', 'pw-4711', 'hidden']) assert.ok(!(printed + text).includes(secret));
});

const BOMB = `a0: &a0 [x]
${Array.from({ length: 9 }, (_, at) => `a${at + 1}: &a${at + 1} [${Array(9).fill(`*a${at}`).join(', ')}]`).join('\n')}
model_list: []
`;

describe('what cannot be imported', () => {
  for (const [name, text, expected] of [
    ['an empty file', '', /must be a mapping with a model_list/],
    ['YAML that is broken', 'model_list: [', /config\.yaml:1: /],
    ['a list', '- a', /must be a mapping/],
    ['our own file', 'providers: []', /has no model_list/],
    ['models that are no list', 'model_list: { a: { model: gpt-5 } }', /config\.yaml:1: model_list must be a list/],
    ['an anchor that is not there', 'model_list:\n  - *one', /config\.yaml:2: an alias names an anchor that does not/],
    ['anchors that stand for too much', BOMB, /its anchors stand for too much/],
    ['a mistake, without what it quotes', 'model_list: []] sk-PLANTED', /^(?!.*PLANTED).*config\.yaml:1: /],
  ] as const)
    test(name, async (context) => {
      await assert.rejects(importText(context, text), (error: Error) => {
        assert.ok(error instanceof StartFault);
        assert.match(error.message, expected);
        return true;
      });
    });

  test('a mistake, without what it quotes, however it is made', async (context) => {
    for (const value of BROKEN_VALUES) {
      const text = entry('m', ['model: gpt-5', `api_key: ${value}`]);
      await assert.rejects(importText(context, text), (error: Error) => {
        assert.ok(error instanceof StartFault);
        assert.ok(!error.message.includes(QUOTED_SECRET.slice(0, 4)), error.message);
        return true;
      });
    }
  });

  test('a file that is there is not overwritten unless it is said', async (context) => {
    const path = join(temporaryDirectory(context), 'config.yaml');
    writeFileSync(path, entry('m', ['model: gpt-5']));
    const run = (...args: string[]) =>
      importCommand.run(['litellm', path, ...args], { environment: {}, print: () => undefined });
    await assert.rejects(run('--out', path), /exists already: --force overwrites it/);
    assert.equal(await run('--out', path, '--force'), 0);
    await assert.rejects(importCommand.run(['portkey', path], { environment: {}, print: () => undefined }), /portkey/);
  });

  test('without --out the file is printed, with what is not taken over as comments', async (context) => {
    const path = join(temporaryDirectory(context), 'config.yaml');
    writeFileSync(path, NOT_TAKEN);
    const lines: string[] = [];
    await importCommand.run(['litellm', path], { environment: {}, print: (text) => void lines.push(text) });
    assert.deepEqual(mistakesOf(lines.join('\n')), []);
    assert.match(lines.join('\n'), /\n# Not taken over:\n# config\.yaml:2: /);
  });
});

test('a directory of real files (LITELLM_CONFIGS)', {
  skip: DIRECTORY === undefined ? 'LITELLM_CONFIGS names no directory of LiteLLM files' : false,
}, async (context) => {
  const files = readdirSync(DIRECTORY as string).filter((name) => /\.ya?ml$/.test(name));
  assert.ok(files.length > 0 && existsSync(DIRECTORY as string));
  for (const name of files) {
    const { models, printed } = await importText(context, readFileSync(join(DIRECTORY as string, name), 'utf8'));
    context.diagnostic(`${name}: ${models.length} models, ${printed.split('\n').length - 2} lines not taken over`);
  }
});
