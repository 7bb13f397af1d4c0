// The SDKs of vendors that can be pointed at a URL, as clients of Tollgate, each before the double of its own vendor:
// what comes back is what its vendor would have sent, so that its types and its checks hold.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { Mistral } from '@mistralai/mistralai';
import { OpenRouter } from '@openrouter/sdk';
import Groq from 'groq-sdk';
import OpenAI, { AzureOpenAI } from 'openai';
import { BedrockOpenAI } from 'openai/bedrock';
import { PRESETS, type Preset, type PresetName } from '../../src/domain/configuration/presets.ts';
import { expectFailure } from '../support/client-installation.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { directProvider, type ProviderDoubles, startProviderDoubles } from '../support/provider-doubles.ts';
import { KEYS } from '../support/test-configuration.ts';

const VENDORS: readonly PresetName[] = [
  'openai',
  'anthropic',
  'azure',
  'azure-classic',
  'azure-anthropic',
  'gemini',
  'bedrock',
  'bedrock-mantle',
  'openrouter',
  'mistral',
  'groq',
  'xai',
  'deepseek',
  'perplexity',
  'ollama',
];

let doubles: ProviderDoubles;
let tollgate: Tollgate;

before(async () => {
  doubles = await startProviderDoubles();
  const providers: object[] = [];
  const models: object[] = [];
  for (const name of VENDORS) {
    const preset: Preset = PRESETS[name];
    const isLocal = preset.keyVariable === null;
    const own = isLocal ? { preset: name, with: { address: await doubles.addressAs(name) } } : null;
    for (const [id, key] of [
      [name, 'sk-vendor'],
      [`${name}-refused`, 'refused-0-canary'],
    ] as const) {
      providers.push({ id, ...(own ?? directProvider(name, key, doubles)) });
      for (const kind of ['text', 'embedding', 'evaluation'] as const) {
        const apis = preset.serves.filter((api) => kindOf(api) === kind);
        if (apis.length > 0)
          models.push({
            id: `${id}/${kind}`,
            kind,
            context_length: 100_000,
            ...(kind === 'text' ? { max_completion_tokens_cap: 1_000 } : {}),
            served_by: [
              { provider: id, model: 'm-1', apis, price: { input: '1', ...(kind === 'text' ? { output: '5' } : {}) } },
            ],
          });
      }
    }
  }
  const organization = {
    slug: 'acme',
    billing: 'prepaid',
    opening_credit: '1000.00',
    users: [{ email: 'a@acme.test', role: 'owner' }],
    keys: [{ name: 'ci', user: 'a@acme.test', secret: KEYS.acme }],
  };
  tollgate = await startTollgate({
    configurationYaml: JSON.stringify({ providers, models, organizations: [organization] }),
    clickhouse: 'away',
  });
});
after(async () => {
  await tollgate?.stop();
  await doubles?.stop();
});

function kindOf(api: string): string {
  if (api === 'images') return 'image';
  return api === 'embeddings' ? 'embedding' : api === 'systemone' ? 'evaluation' : 'text';
}

/**
 * groq-sdk asks below /openai/v1 whatever its base URL is, and AzureOpenAI below /openai/deployments/<model>:
 * docs/clients.md has this too.
 */
const belowV1: typeof fetch = (url, init) =>
  fetch(
    (url instanceof Request ? url.url : url.toString()).replace(/\/openai\/(?:v1|deployments\/[^/]+)\//, '/v1/'),
    init,
  );

const USER = [{ role: 'user' as const, content: 'Hello [[sim: tokens=7]]' }];
const TOKENS = 7;

interface Said {
  readonly text: string;
  readonly tokens: number | null | undefined;
}

interface Client {
  readonly name: string;
  /** The presets whose doubles it is before. */
  readonly vendors: readonly PresetName[];
  readonly ask: (key: string, model: string) => Promise<Said>;
  readonly stream: (key: string, model: string) => Promise<Said>;
  /** What the SDK throws where a key is wrong, and where no provider could serve. */
  readonly statusOf: (error: unknown) => number | undefined;
}

/** Of a content that could also be parts. */
function plainText(content: unknown): string {
  return typeof content === 'string' ? content : '';
}

function statusOf(error: unknown): number | undefined {
  return (error as { readonly status?: number }).status;
}

type ChatStream = AsyncIterable<{
  readonly choices: readonly { readonly delta: { readonly content?: string | null | undefined } }[];
  readonly usage?: { readonly completion_tokens?: number } | null;
  readonly x_groq?: { readonly usage?: { readonly completion_tokens?: number } | null | undefined } | null;
}>;

async function readChat(stream: ChatStream): Promise<Said> {
  let text = '';
  let tokens: number | undefined;
  for await (const { choices, usage, x_groq: groq } of stream) {
    text += choices[0]?.delta.content ?? '';
    tokens = usage?.completion_tokens ?? groq?.usage?.completion_tokens ?? tokens;
  }
  return { text, tokens };
}

function openaiChat(name: string, vendors: readonly PresetName[], clientOf: (key: string) => OpenAI): Client {
  return {
    name,
    vendors,
    statusOf,
    async ask(key, model) {
      const { choices, usage } = await clientOf(key).chat.completions.create({ model, messages: USER });
      return { text: choices[0]?.message.content ?? '', tokens: usage?.completion_tokens };
    },
    async stream(key, model) {
      const options = { stream: true, stream_options: { include_usage: true } } as const;
      return readChat(await clientOf(key).chat.completions.create({ model, messages: USER, ...options }));
    },
  };
}

function anthropicMessages(name: string, vendors: readonly PresetName[]): Client {
  const clientOf = (apiKey: string): Anthropic => new Anthropic({ apiKey, baseURL: tollgate.url, maxRetries: 0 });
  const textOf = ({ content, usage }: Anthropic.Message): Said => ({
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    tokens: usage.output_tokens,
  });
  return {
    name,
    vendors,
    statusOf,
    ask: async (key, model) => textOf(await clientOf(key).messages.create({ model, max_tokens: 50, messages: USER })),
    stream: async (key, model) =>
      textOf(await clientOf(key).messages.stream({ model, max_tokens: 50, messages: USER }).finalMessage()),
  };
}

const CLIENTS: readonly Client[] = [
  openaiChat(
    'openai',
    [
      'openai',
      'azure',
      'azure-classic',
      'gemini',
      'bedrock',
      'bedrock-mantle',
      'xai',
      'deepseek',
      'perplexity',
      'ollama',
    ],
    (apiKey) => new OpenAI({ apiKey, baseURL: `${tollgate.url}/v1`, maxRetries: 0 }),
  ),
  openaiChat('AzureOpenAI', ['azure', 'azure-classic'], (key) => {
    const azureADTokenProvider = async (): Promise<string> => key;
    return new AzureOpenAI({
      endpoint: tollgate.url,
      apiVersion: '2024-10-21',
      azureADTokenProvider,
      fetch: belowV1,
      maxRetries: 0,
    });
  }),
  openaiChat('BedrockOpenAI', ['bedrock'], (apiKey) => {
    return new BedrockOpenAI({ apiKey, baseURL: `${tollgate.url}/v1`, awsRegion: 'eu-west-1', maxRetries: 0 });
  }),
  anthropicMessages('@anthropic-ai/sdk', ['anthropic', 'azure-anthropic', 'bedrock', 'deepseek']),
  {
    name: 'groq-sdk',
    vendors: ['groq'],
    statusOf,
    async ask(apiKey, model) {
      const client = new Groq({ apiKey, baseURL: tollgate.url, fetch: belowV1, maxRetries: 0 });
      const { choices, usage } = await client.chat.completions.create({ model, messages: USER });
      return { text: choices[0]?.message.content ?? '', tokens: usage?.completion_tokens };
    },
    async stream(apiKey, model) {
      const client = new Groq({ apiKey, baseURL: tollgate.url, fetch: belowV1, maxRetries: 0 });
      return readChat(await client.chat.completions.create({ model, messages: USER, stream: true }));
    },
  },
  {
    name: '@mistralai/mistralai',
    vendors: ['mistral'],
    statusOf: (error) => (error as { readonly statusCode?: number }).statusCode,
    async ask(apiKey, model) {
      const client = new Mistral({ apiKey, serverURL: tollgate.url, retryConfig: { strategy: 'none' } });
      const { choices, usage } = await client.chat.complete({ model, messages: USER });
      return { text: plainText(choices?.[0]?.message?.content), tokens: usage.completionTokens };
    },
    async stream(apiKey, model) {
      const client = new Mistral({ apiKey, serverURL: tollgate.url, retryConfig: { strategy: 'none' } });
      let [text, tokens] = ['', 0];
      for await (const { data } of await client.chat.stream({ model, messages: USER })) {
        text += plainText(data.choices[0]?.delta.content);
        tokens = data.usage?.completionTokens ?? tokens;
      }
      return { text, tokens };
    },
  },
  {
    name: '@openrouter/sdk',
    vendors: ['openrouter'],
    statusOf: (error) => (error as { readonly statusCode?: number }).statusCode,
    async ask(apiKey, model) {
      const client = new OpenRouter({ apiKey, serverURL: `${tollgate.url}/v1`, retryConfig: { strategy: 'none' } });
      const answer = await client.chat.send({ chatRequest: { model, messages: USER, stream: false } });
      assert.ok('choices' in answer);
      return { text: plainText(answer.choices[0]?.message.content), tokens: answer.usage?.completionTokens };
    },
    async stream(apiKey, model) {
      const client = new OpenRouter({ apiKey, serverURL: `${tollgate.url}/v1`, retryConfig: { strategy: 'none' } });
      let [text, tokens] = ['', 0];
      const events = await client.chat.send({ chatRequest: { model, messages: USER, stream: true } });
      assert.ok(Symbol.asyncIterator in events);
      for await (const chunk of events) {
        text += chunk.choices[0]?.delta.content ?? '';
        tokens = chunk.usage?.completionTokens ?? tokens;
      }
      return { text, tokens };
    },
  },
];

for (const { name, vendors, ask, stream, statusOf: statusIn } of CLIENTS) {
  describe(name, () => {
    for (const vendor of vendors) {
      test(`before ${vendor}: whole and streamed`, async () => {
        const whole = await ask(KEYS.acme, `${vendor}/text`);
        const streamed = await stream(KEYS.acme, `${vendor}/text`);
        for (const { text, tokens } of [whole, streamed]) {
          assert.ok(text.length > 10, text);
          assert.equal(tokens, TOKENS);
        }
      });

      test(`before ${vendor}: a wrong key is its error for 401; a refused key of the operator's is its 502`, async () => {
        for (const call of [ask, stream]) {
          assert.equal(statusIn(await expectFailure(call('tg-wrong', `${vendor}/text`))), 401);
          if (vendor === 'ollama') continue;
          const refused = await expectFailure(call(KEYS.acme, `${vendor}-refused/text`));
          assert.equal(statusIn(refused), 502, String(refused));
          assert.doesNotMatch(JSON.stringify(refused) + String(refused), /canary/);
        }
      });
    }
  });
}

test('the mistral client embeds', async () => {
  const client = new Mistral({ apiKey: KEYS.acme, serverURL: tollgate.url });
  const { data } = await client.embeddings.create({ model: 'mistral/embedding', inputs: ['one', 'two'] });
  assert.equal(data.length, 2);
});
