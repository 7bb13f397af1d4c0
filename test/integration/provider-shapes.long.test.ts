// Every preset before the double of its provider, over each API that it serves, whole and streamed: as an operator
// writes it, over https by its own host names through a proxy, and directly by our own client. The double takes what
// its provider would take and nothing else.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { PRESET_NAMES, PRESETS, type Preset, type PresetName } from '../../src/domain/configuration/presets.ts';
import type { ApiName } from '../../src/domain/models/apis.ts';
import type { CallEnd } from '../../src/simulator/call-log.ts';
import { nanoUsdOf } from '../../src/simulator/shapes/document-rewrites.ts';
import { SHAPES } from '../../src/simulator/shapes/shapes.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerRow, type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import {
  type DoubleExchange,
  directProvider,
  PROVIDERS_CERTIFICATE,
  type ProviderDoubles,
  presetProvider,
  startProviderDoubles,
} from '../support/provider-doubles.ts';
import { KEYS } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const CANARY = 'canary-0123456789';
const KEY = `sk-${CANARY}`;
const WAYS = ['proxied', 'direct'] as const;
type Way = (typeof WAYS)[number];
const KINDS = ['text', 'image', 'embedding', 'evaluation'] as const;
type Kind = (typeof KINDS)[number];

const SAID = 'Hello [[sim: tokens=7 cached=3 reasoning=2]]';
const MESSAGES = [{ role: 'user', content: SAID }];

interface Asked {
  readonly kind: Kind;
  readonly path: string;
  readonly fields: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly streams: boolean;
}
const ANTHROPIC = { 'anthropic-version': '2023-06-01' };
/** Of the APIs that presets serve. */
const ASKED: Readonly<Partial<Record<ApiName, Asked>>> = {
  chat_completions: {
    kind: 'text',
    path: '/v1/chat/completions',
    fields: { messages: MESSAGES, max_tokens: 50 },
    streams: true,
  },
  responses: { kind: 'text', path: '/v1/responses', fields: { input: SAID, max_output_tokens: 50 }, streams: true },
  messages: {
    kind: 'text',
    path: '/v1/messages',
    fields: { messages: MESSAGES, max_tokens: 50 },
    headers: ANTHROPIC,
    streams: true,
  },
  count_tokens: {
    kind: 'text',
    path: '/v1/messages/count_tokens',
    fields: { messages: MESSAGES },
    headers: ANTHROPIC,
    streams: false,
  },
  images: { kind: 'image', path: '/v1/images/generations', fields: { prompt: 'A cat', n: 2 }, streams: true },
  embeddings: { kind: 'embedding', path: '/v1/embeddings', fields: { input: SAID }, streams: false },
  systemone: {
    kind: 'evaluation',
    path: '/v1/systemone',
    fields: { state: 'Hello', questions: { urgent: { type: 'noul', instructions: 'Is it?' } } },
    streams: false,
  },
};
const API_KINDS = Object.fromEntries(Object.entries(ASKED).map(([api, { kind }]) => [api, kind]));

function askedOf(api: ApiName): Asked {
  const asked = ASKED[api];
  assert.ok(asked !== undefined, `${api} is asked`);
  return asked;
}

/** What the chat and Responses replies of a provider say of their cost; all others are rated by their counts. */
const TELLS: Readonly<Record<string, 'cost of chat' | 'cost' | 'no cached tokens of chat'>> = {
  openrouter: 'cost of chat',
  perplexity: 'cost',
  xai: 'cost',
  gemini: 'no cached tokens of chat',
  bedrock: 'no cached tokens of chat',
  together: 'no cached tokens of chat',
  cohere: 'no cached tokens of chat',
  ollama: 'no cached tokens of chat',
  lmstudio: 'no cached tokens of chat',
  vllm: 'no cached tokens of chat',
  llamacpp: 'no cached tokens of chat',
};

/** Dollars a million, of input, cached input and output: pico-dollars a token. */
const PRICES: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  text: { input: '1', cached_input: '0.1', output: '5' },
  image: { image: '0.04' },
  embedding: { input: '1' },
  evaluation: { input: '1' },
};

function expectedPico(preset: string, api: ApiName, end: CallEnd): bigint {
  const { promptTokens: prompt, cachedTokens: cached, completionTokens: completion, images } = end;
  if (api === 'count_tokens') return 0n;
  if (api === 'images') return BigInt(images) * 40_000_000_000n;
  if (askedOf(api).kind !== 'text') return BigInt(prompt) * 1_000_000n;
  const tells = TELLS[preset];
  if ((tells === 'cost' && api !== 'messages') || (tells === 'cost of chat' && api === 'chat_completions'))
    return BigInt(nanoUsdOf({ prompt, completion })) * 1_000n;
  const known = tells === 'no cached tokens of chat' && api === 'chat_completions' ? 0 : cached;
  return BigInt(prompt - known) * 1_000_000n + BigInt(known) * 100_000n + BigInt(completion) * 5_000_000n;
}

const presetOf = (name: PresetName): Preset => PRESETS[name];
const isLocal = (name: PresetName): boolean => SHAPES[name]?.auth === null;
/** Those that take a token in the place of a key have tests of their own. */
const NAMES = PRESET_NAMES.filter((name) => isLocal(name) || presetOf(name).keyVariable !== null);
/** With what an address has to escape. */
const PROVIDER_MODEL = 'acme/Large-1.0';

async function configurationOf(doubles: ProviderDoubles): Promise<string> {
  const providers: object[] = [];
  const models: object[] = [];
  for (const name of NAMES) {
    const { serves } = presetOf(name);
    const offer = (id: string, provider: object, kinds: readonly Kind[], model = PROVIDER_MODEL): void => {
      providers.push({ id, ...provider });
      for (const kind of kinds) {
        const apis = serves.filter((api) => API_KINDS[api] === kind);
        const price = {
          ...PRICES[kind],
          ...(kind === 'text' && TELLS[name]?.startsWith('cost') ? { cost: 'reported' } : {}),
        };
        if (apis.length > 0)
          models.push({
            id: `${id}/${kind}`,
            kind,
            context_length: 100_000,
            ...(kind === 'text' ? { max_completion_tokens_cap: 1_000 } : {}),
            served_by: [{ provider: id, model, apis, price }],
          });
      }
    };
    if (isLocal(name)) {
      const address = await doubles.addressAs(name);
      offer(`${name}-direct`, { preset: name, with: { address } }, KINDS);
      offer(`${name}-unknown`, { preset: name, with: { address } }, KINDS, 'unknown-1');
      continue;
    }
    offer(`${name}-proxied`, presetProvider(name, KEY), KINDS);
    offer(`${name}-direct`, { ...directProvider(name, KEY, doubles), proxy: 'none' }, KINDS);
    offer(`${name}-unknown`, presetProvider(name, KEY), KINDS, 'unknown-1');
    for (const index of (SHAPES[name]?.refusals ?? []).keys())
      offer(`${name}-refused-${index}`, presetProvider(name, `refused-${index}-${CANARY}`), KINDS);
  }
  const organization = {
    slug: 'acme',
    billing: 'prepaid',
    opening_credit: '1000.00',
    users: [{ email: 'a@acme.test', role: 'owner' }],
    keys: [{ name: 'ci', user: 'a@acme.test', secret: KEYS.acme }],
  };
  return JSON.stringify({ providers, models, organizations: [organization] });
}

let doubles: ProviderDoubles;
let tollgate: Tollgate;
let ledger: LedgerView;
/** By execution id. */
const bills = new Map<string, { readonly what: string; readonly pico: bigint }>();

before(async () => {
  doubles = await startProviderDoubles();
  tollgate = await startTollgate({
    configurationYaml: await configurationOf(doubles),
    clickhouse: 'away',
    env: { HTTPS_PROXY: doubles.proxyUrl, NODE_EXTRA_CA_CERTS: PROVIDERS_CERTIFICATE },
  });
  ledger = openLedgerView(tollgate.postgresUrl);
});
after(async () => {
  await ledger?.close();
  await tollgate?.stop();
  await doubles?.stop();
});

interface Call {
  readonly answer: HttpAnswer;
  readonly arrived: DoubleExchange;
  readonly sent: string;
}

async function ask(provider: string, api: ApiName, isStreamed = false): Promise<Call> {
  const { kind, path, fields, headers } = askedOf(api);
  const asksForUsage = isStreamed && api === 'chat_completions' && !provider.startsWith('cohere');
  const sent = JSON.stringify({
    model: `${provider}/${kind}`,
    ...fields,
    ...(isStreamed ? { stream: true } : {}),
    ...(asksForUsage ? { stream_options: { include_usage: true } } : {}),
  });
  const before = doubles.exchanges.length;
  const answer = await httpCall(`${tollgate.url}${path}`, {
    headers: { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json', ...headers },
    body: sent,
  });
  assert.equal(doubles.exchanges.length, before + 1, `one call: ${answer.body.toString().slice(0, 300)}`);
  return { answer, arrived: doubles.exchanges[before] as DoubleExchange, sent };
}

const CREDENTIALS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'cookie', 'proxy-authorization'];

function assertCredentials(name: PresetName, { headers }: DoubleExchange): void {
  const auth = SHAPES[name]?.auth ?? null;
  const expected = auth === null ? {} : auth === 'bearer' ? { authorization: `Bearer ${KEY}` } : { [auth]: KEY };
  const found = CREDENTIALS.flatMap((header) => (headers[header] === undefined ? [] : [[header, headers[header]]]));
  assert.deepEqual(Object.fromEntries(found), expected);
}

describe('every preset before its double', () => {
  test('has one', () =>
    assert.deepEqual(
      PRESET_NAMES.filter((name) => SHAPES[name] === undefined),
      [],
    ));

  for (const name of NAMES) {
    const ways: readonly Way[] = isLocal(name) ? ['direct'] : WAYS;
    for (const way of ways) {
      test(`${name}, ${way}: what arrives, what comes back`, async () => {
        for (const api of presetOf(name).serves) {
          for (const isStreamed of askedOf(api).streams ? [false, true] : [false]) {
            const what = `${name} ${way} ${api}${isStreamed ? ' streamed' : ''}`;
            const { answer, arrived, sent } = await ask(`${name}-${way}`, api, isStreamed);
            assert.equal(answer.status, 200, `${what}: ${arrived.host}${arrived.path} ${answer.body.toString()}`);
            assert.ok(answer.complete, what);
            assert.ok(answer.body.equals(arrived.reply), `${what}: the reply is relayed byte for byte`);
            assert.ok(answer.body.length > 10, what);
            assertCredentials(name, arrived);
            const model = `"${name}-${way}/${askedOf(api).kind}"`;
            assert.equal(arrived.body.toString(), sent.replace(model, `"${PROVIDER_MODEL}"`), what);
            assert.equal(arrived.path.split('?')[1], name === 'azure-classic' ? 'api-version=2024-10-21' : undefined);
            const end = doubles.ends.at(-1) as CallEnd;
            const id = String(answer.headers['x-service-execution-id']);
            bills.set(id, { what, pico: expectedPico(name, api, end) });
          }
        }
      });
    }

    test(`${name}: another refusal is relayed in its own form`, async () => {
      const [api] = presetOf(name).serves as readonly [ApiName];
      const { answer, arrived } = await ask(`${name}-unknown`, api);
      assert.deepEqual([answer.status, answer.body.toString()], [arrived.status, arrived.reply.toString()]);
      assert.ok(answer.status === 404 || answer.status === 400, String(answer.status));
      bills.set(String(answer.headers['x-service-execution-id']), { what: `${name} unknown`, pico: 0n });
    });

    for (const [index, { status }] of isLocal(name) ? [] : (SHAPES[name]?.refusals ?? []).entries()) {
      test(`${name}: a key that is refused with ${status} (${index}) is 502, and nobody sees it`, async () => {
        for (const api of presetOf(name).serves) {
          const { answer, arrived } = await ask(`${name}-refused-${index}`, api);
          const text = `${JSON.stringify(answer.headers)}${answer.body.toString()}`;
          assert.equal(arrived.status, status);
          assert.equal(answer.status, 502, text);
          assert.match(text, /No provider of this model could serve the request/);
          // An id may have any digits.
          assert.doesNotMatch(text.replaceAll(/[0-9a-f-]{32,36}/g, 'id'), /canary|6789|refused-|acme-1|arn:/);
          bills.set(String(answer.headers['x-service-execution-id']), { what: `${name} refused ${api}`, pico: 0n });
        }
      });
    }
  }

  test('each is charged what its provider bills, to the pico-dollar', async () => {
    const rows = await waitFor(
      'all to be posted',
      () =>
        ledger.query(
          `SELECT id, coalesce(charge, 0)::text AS charge, suspense::text, error_code AS error FROM generations
            WHERE id = ANY($1) AND outcome IS NOT NULL`,
          [[...bills.keys()]],
        ),
      (found) => found.length === bills.size,
    );
    const differing = rows.flatMap((row: LedgerRow) => {
      const { what = '', pico = -1n } = bills.get(String(row['id'])) ?? {};
      const isRight = String(row['charge']) === String(pico) && (row['suspense'] ?? '0') === '0';
      return isRight
        ? []
        : [`${what}: ${row['charge']} and suspense ${row['suspense']}, not ${pico} (${row['error']})`];
    });
    assert.deepEqual(differing, []);
    assert.ok(bills.size > 150, String(bills.size));
  });

  test('no key is in what the installation printed', () => assert.doesNotMatch(tollgate.output(), /canary/));
});
