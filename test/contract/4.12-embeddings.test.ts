// POST /v1/embeddings over HTTP: every form of input and of reply, what it costs and holds, what is refused, how it is
// looked up and listed, and OpenAI's own client. What holds for every generation route is in 7.4 and 7.8.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI, { NotFoundError } from 'openai';
import { seededRandom } from '../support/byte-splits.ts';
import { type FakeUpstream, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { type GenerationView, settledGeneration } from '../support/generation-lookup.ts';
import { callRoute } from '../support/generation-routes.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { limitedKey, renderOrganization } from '../support/limited-organizations.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { decimalOfPico } from '../support/test-configuration.ts';
import { countRequest } from '../support/token-counting.ts';
import { waitFor } from '../support/waiting.ts';

const PATH = '/v1/embeddings';
/** "0.02" a million. */
const PICO_PER_TOKEN = 20_000n;
const TOKENS_PER_MINUTE = 120;
/** What one organization's credit is enough for. */
const EDGE_TOKENS = 50;

const ORGANIZATIONS = [
  { slug: 'rich', credit: '1000.00' },
  { slug: 'edge', credit: decimalOfPico(PICO_PER_TOKEN * BigInt(EDGE_TOKENS)) },
  { slug: 'broke', credit: '0' },
  { slug: 'free', credit: null },
  { slug: 'bounded', credit: null, limits: ['{ kind: budget, window: month, limit: "1.00" }'] },
  { slug: 'metered', credit: '1000.00', limits: [`{ kind: tokens_per_minute, limit: ${TOKENS_PER_MINUTE} }`] },
];

const configuration = (upstreamUrl: string, simulatorUrl: string): string => `providers:
  - { id: upstream, base_url: ${upstreamUrl}, api_key: sk-upstream, auth: bearer }
  - { id: simulator, base_url: ${simulatorUrl}, api_key: sk-simulator, auth: bearer }
models:
  - id: test/embedding
    kind: embedding
    aliases: [embedding-latest]
    served_by: [{ provider: upstream, model: vectors-3, apis: [embeddings], price: { input: "0.02" } }]
  - id: test/simulated
    kind: embedding
    served_by: [{ provider: simulator, model: sim-vectors, apis: [embeddings], price: { input: "0.02" } }]
  - id: test/priceless
    kind: embedding
    served_by: [{ provider: upstream, model: priceless, apis: [embeddings] }]
  - id: test/chat
    max_completion_tokens_cap: 16
    served_by: [{ provider: upstream, model: chat, apis: [chat_completions], price: { input: "1", output: "1" } }]
organizations:
${ORGANIZATIONS.map(renderOrganization).join('')}`;

const ERROR = '{"error":{"message":"This model does not support dimensions.","type":"invalid_request_error"}}';
const USAGE = '{"prompt_tokens": 9, "total_tokens":9}';

/** As a provider writes it: `embedded` has the JSON of each vector. */
function replyOf(embedded: readonly string[], usage: string | null, usageIsFirst = false): string {
  const data = embedded.map((vector, index) => `{"object":"embedding", "index":${index},\n "embedding":${vector}}`);
  const reported = usage === null ? '' : `"usage": ${usage}, `;
  const rest = `"data":[${data.join(' ,')}], "model":"vectors-3"`;
  if (usageIsFirst) return `{${reported}"object" : "list", ${rest}}`;
  return `{"object" : "list", ${rest}${usage === null ? '' : `, "usage": ${usage}`}}\n`;
}

function floats(dimensions: number, seed: number): string {
  const random = seededRandom(seed);
  return `[${Array.from({ length: dimensions }, () => (random() * 2 - 1).toFixed(9)).join(', ')}]`;
}

function base64(dimensions: number, seed: number): string {
  const random = seededRandom(seed);
  const bytes = Buffer.from(Float32Array.from({ length: dimensions }, () => random() * 2 - 1).buffer);
  return JSON.stringify(bytes.toString('base64'));
}

const SHORT = replyOf([floats(3, 1)], USAGE);

const REQUESTS: Readonly<Record<string, string>> = {
  'a text': '"input":"The food was d\\u00e9licious."',
  'texts, and fields of every kind': '"input" : ["a","b", "usage"], "dimensions":256, "user":"u", "input_type":"query"',
  tokens: '"input":[1212, 318 ,257]',
  'lists of tokens': '"input":[[1212,318],[257]] , "encoding_format":"base64"',
  'floats asked for, in an unusual order': '"encoding_format":"float","future":{"model":"other"},"input":"x"',
  // There is nothing to stream: the field is the provider's to judge.
  'a stream': '"input":"x","stream":true',
};

const LARGE_REPORT = '{"prompt_tokens":8191,"total_tokens":8191}';
const vectors = (count: number, vector: (dimensions: number, seed: number) => string): string[] =>
  Array.from({ length: count }, (_, seed) => vector(3_072, seed));

const REPLIES: Readonly<Record<string, readonly [reply: string, tokens: number]>> = {
  'one short vector': [SHORT, 9],
  'no vector': [replyOf([], USAGE), 9],
  'floats of a megabyte': [replyOf(vectors(24, floats), LARGE_REPORT), 8_191],
  'base64 of half a megabyte': [replyOf(vectors(32, base64), USAGE), 9],
  'the usage before long vectors': [replyOf(vectors(24, floats), USAGE, true), 9],
  'the total alone': [replyOf([base64(8, 1)], '{"total_tokens":7}'), 7],
  'no tokens': [replyOf([floats(2, 1)], '{"prompt_tokens":0,"total_tokens":0}'), 0],
};

describe('embeddings', () => {
  let upstream: FakeUpstream;
  let simulator: SimulatedProvider;
  let tollgate: Front;
  let ledger: LedgerView;
  let script: ScriptedReply = { body: SHORT };

  before(async () => {
    upstream = await startFakeUpstream(() => script);
    simulator = await startSimulatedProvider();
    tollgate = await startFront({ configurationYaml: configuration(upstream.url, simulator.url), reports: true });
    ledger = openLedgerView(tollgate.postgresUrl);
  });

  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await simulator?.stop();
    await upstream?.close();
    assert.deepEqual(upstream?.violations, []);
  });

  const bodyOf = (fields: string, model = 'test/embedding'): string => `{"model" : "${model}", ${fields}}`;

  function send(
    body: string,
    slug = 'rich',
    reply: ScriptedReply = { body: SHORT },
    label = 'embedding',
    isOffFormat = false,
  ): Promise<HttpAnswer> {
    script = reply;
    const headers = {
      authorization: `Bearer ${limitedKey(slug)}`,
      'content-type': 'application/json',
      'x-client-request-id': label,
    };
    return httpCall(tollgate.url + PATH, { headers, body, isOffFormat });
  }

  const recordOf = (answer: HttpAnswer, slug = 'rich'): Promise<GenerationView> =>
    settledGeneration(tollgate.url, limitedKey(slug), String(answer.headers['x-service-execution-id']));

  async function get(path: string, slug = 'rich'): Promise<Record<string, unknown>> {
    const answer = await httpCall(tollgate.url + path, { headers: { authorization: `Bearer ${limitedKey(slug)}` } });
    assert.equal(answer.status, 200, answer.body.toString());
    return JSON.parse(answer.body.toString()) as Record<string, unknown>;
  }

  /** Charged exactly by its input, from a hold of as many tokens as its body has bytes. */
  async function assertCharged(answer: HttpAnswer, body: string, tokens: number, source = 'reported'): Promise<void> {
    const record = await recordOf(answer);
    const cost = decimalOfPico(PICO_PER_TOKEN * BigInt(tokens));
    assert.deepEqual(record, {
      id: answer.headers['x-service-execution-id'],
      model: 'test/embedding',
      streamed: false,
      billingStatus: 'final',
      tokensPrompt: String(tokens),
      tokensCompletion: '0',
      totalCost: cost,
      ratedCost: cost,
      authorizedAmount: decimalOfPico(PICO_PER_TOKEN * BigInt(Buffer.byteLength(body))),
      currency: 'USD',
    });
    const rows = await ledger.query('SELECT usage_source FROM generations WHERE id = $1', [record.id]);
    assert.deepEqual(rows, [{ usage_source: source }]);
  }

  for (const [name, fields] of Object.entries(REQUESTS)) {
    test(`${name}: sent as written but for the model, and priced by its input`, async () => {
      const body = bodyOf(fields);
      const answer = await send(body);
      assert.deepEqual([answer.status, answer.body.toString()], [200, SHORT]);
      const request = upstream.requests.at(-1);
      assert.deepEqual([request?.method, request?.path], ['POST', PATH]);
      assert.equal(request?.body.toString(), bodyOf(fields, 'vectors-3'));
      await assertCharged(answer, body, 9);
    });
  }

  for (const [name, [reply, tokens]] of Object.entries(REPLIES)) {
    for (const framing of ['length', 'chunked', 'close'] as const) {
      test(`${name}, ${framing}: byte for byte, however it is split`, async () => {
        const body = bodyOf(`"input":"${'word '.repeat(2_000)}"`);
        const seed = reply.length + framing.length;
        const answer = await send(body, 'rich', {
          body: reply,
          framing,
          split: { kind: 'random', seed, bytesMax: 65_536 },
        });
        assert.deepEqual([answer.status, answer.complete], [200, true]);
        assert.ok(answer.body.equals(Buffer.from(reply)), `the reply is as it was sent, split by seed ${seed}`);
        await assertCharged(answer, body, tokens);
      });
    }
  }

  describe('without a usable report', () => {
    const TEXTS = ['The quick brown fox.', 'Ein zweiter Text mit Umlauten: äöü.'];
    const INPUTS: readonly (readonly [name: string, input: unknown, tokens: () => Promise<number | null>])[] = [
      ['texts', TEXTS, () => countRequest('embeddings', { input: TEXTS })],
      ['a text', TEXTS[0], () => countRequest('embeddings', { input: [TEXTS[0]] })],
      ['tokens', [5, 6, 7, 8], () => Promise.resolve(4)],
      ['lists of tokens', [[5, 6, 7], [], [8, 9]], () => Promise.resolve(5)],
    ];
    const USAGES = [null, '{}', '{"prompt_tokens":null}', '{"prompt_tokens":-5,"total_tokens":-5}', '"none"'];
    for (const [name, input, tokens] of INPUTS) {
      for (const usage of USAGES) {
        test(`usage ${usage ?? 'absent'}: the input is counted, ${name}`, async () => {
          const expected = await tokens();
          assert.ok(expected !== null && expected > 3);
          const body = bodyOf(`"input":${JSON.stringify(input)}`);
          const answer = await send(body, 'rich', { body: replyOf([floats(4, 1)], usage) }, 'embedding', true);
          await assertCharged(answer, body, expected, 'counted');
        });
      }
    }

    test('a reply that breaks off is cut, and its input is paid for', async () => {
      const reply = replyOf([floats(3_072, 1)], USAGE);
      const body = bodyOf('"input":[5,6,7]');
      const fault = { kind: 'cut', afterBytes: 9_000 } as const;
      const answer = await send(body, 'rich', { body: reply, fault });
      assert.equal(answer.complete, false);
      assert.equal(answer.body.toString(), reply.slice(0, 9_000));
      await assertCharged(answer, body, 3, 'counted');
    });
  });

  test("the provider's refusal is relayed, and costs nothing", async () => {
    const headers = [['content-type', 'application/json']] as const;
    const answer = await send(bodyOf('"input":"x","dimensions":7'), 'rich', { status: 400, headers, body: ERROR });
    assert.deepEqual([answer.status, answer.body.toString()], [400, ERROR]);
    const record = await recordOf(answer);
    assert.deepEqual([record.billingStatus, record.totalCost], ['not_billed', '0']);
  });

  describe('refused', () => {
    const TEXT = '"input":"x"';
    const REFUSED: readonly (readonly [name: string, slug: string, body: string, status: number, error: unknown])[] = [
      ['no credit', 'broke', bodyOf(TEXT), 402, 'insufficient_credit'],
      ['no price', 'rich', bodyOf(TEXT, 'test/priceless'), 422, 'not_safely_billable'],
      ['another price', 'rich', bodyOf(`${TEXT},"service_tier":"flex"`), 422, 'not_safely_billable'],
      ['other models', 'rich', bodyOf(`${TEXT},"models":["a","b"]`), 422, 'not_safely_billable'],
      [
        'input without a bound',
        'rich',
        bodyOf('"input":[{"type":"image_url","image_url":{"url":"https://x.test/a.png"}}]'),
        422,
        'not_safely_billable',
      ],
      [
        'more tokens than the limit',
        'metered',
        bodyOf(`"input":"${'word '.repeat(TOKENS_PER_MINUTE + 1)}"`),
        422,
        'traffic_token_bound_required',
      ],
    ];
    for (const [name, slug, body, status, error] of REFUSED) {
      test(`${name}: ${status}, recorded, and no provider is asked`, async () => {
        const callsBefore = upstream.requests.length;
        const answer = await send(body, slug);
        assert.equal(answer.status, status, answer.body.toString());
        assert.equal((JSON.parse(answer.body.toString()) as { error: unknown }).error, error);
        assert.equal(upstream.requests.length, callsBefore);
        const record = await recordOf(answer, slug);
        assert.deepEqual([record.billingStatus, record.totalCost], ['not_billed', '0']);
      });
    }

    const ERRORS: readonly (readonly [name: string, path: string, body: string, status: number, code: string])[] = [
      ['no model', PATH, '{"input":"x"}', 400, 'missing_model'],
      ['a model that is none', PATH, bodyOf(TEXT, 'no/such'), 404, 'model_not_found'],
      ['the virtual model', PATH, bodyOf(TEXT, 'service/auto'), 404, 'model_not_found'],
      ['a chat model', PATH, bodyOf(TEXT, 'test/chat'), 400, 'api_not_supported'],
      ['elsewhere', '/v1/chat/completions', bodyOf('"messages":[]'), 400, 'api_not_supported'],
      ['no JSON', PATH, '{"model":', 400, 'invalid_json'],
    ];
    for (const [name, path, body, status, code] of ERRORS) {
      test(`${name}: ${status} in OpenAI's form`, async () => {
        const answer = await callRoute(tollgate.url + path, { key: limitedKey('rich'), body });
        assert.equal(answer.status, status, answer.body);
        const { error } = JSON.parse(answer.body) as { error: Record<string, unknown> };
        assert.deepEqual([error['type'], error['code']], ['invalid_request_error', code]);
      });
    }

    test('whoever is not billed may send all of that', async () => {
      for (const body of [
        bodyOf(TEXT, 'test/priceless'),
        bodyOf(`${TEXT},"models":["a"]`),
        bodyOf('"input":[{"image_url":{"url":"https://x.test/a.png"}}]'),
      ])
        assert.equal((await send(body, 'free')).status, 200);
    });
  });

  test('near the edge the exact count is held, and what is left is too little for the same again', async () => {
    const input = 'word '.repeat(8);
    const body = `{"model":"embedding-latest","input":"${input}"}`;
    const tokens = await countRequest('embeddings', { input });
    // Each byte that is in no text may be a token as well.
    const held = Buffer.byteLength(body) - input.length + (tokens ?? 0);
    assert.ok(held <= EDGE_TOKENS && held > EDGE_TOKENS - 9 && Buffer.byteLength(body) > EDGE_TOKENS);
    const answer = await send(body, 'edge');
    assert.equal(answer.status, 200, answer.body.toString());
    const record = await recordOf(answer, 'edge');
    assert.equal(record.authorizedAmount, decimalOfPico(PICO_PER_TOKEN * BigInt(held)));
    assert.equal(record.totalCost, decimalOfPico(PICO_PER_TOKEN * 9n));
    assert.equal((await send(body, 'edge')).status, 402);
  });

  test('a limit on tokens counts input', async () => {
    const body = bodyOf(`"input":"${'x'.repeat(70)}"`);
    assert.ok(body.length > 100 && body.length <= TOKENS_PER_MINUTE);
    const reply = { body: replyOf([floats(2, 1)], '{"prompt_tokens":100,"total_tokens":100}') };
    assert.equal((await send(body, 'metered', reply)).status, 200);
    const answer = await send(body, 'metered', reply);
    assert.equal(answer.status, 429);
    assert.equal((JSON.parse(answer.body.toString()) as { error: unknown }).error, 'rate_limit');
  });

  test('what a request of who is not billed cannot have used is spent in no budget and in no report', async () => {
    const body = bodyOf('"input":["one","two"]');
    const most = decimalOfPico(PICO_PER_TOKEN * BigInt(Buffer.byteLength(body)));
    const claim = 9_007_199_254_740_991;
    const answer = await send(body, 'bounded', {
      body: replyOf([floats(2, 1)], `{"prompt_tokens":${claim},"total_tokens":${claim}}`),
    });
    assert.equal((await recordOf(answer, 'bounded')).ratedCost, decimalOfPico(PICO_PER_TOKEN * BigInt(claim)));
    const spent = async () => {
      const { data: limits } = (await get('/v1/usage/limits/current', 'bounded')) as { data: { used: string }[] };
      const { data: usage } = (await get('/v1/usage/me', 'bounded')) as { data: { requests: number; cost: string } };
      return { requests: usage.requests, cost: usage.cost, used: limits[0]?.used };
    };
    const seen = await waitFor('the report to have it', spent, ({ requests }) => requests === 1);
    assert.deepEqual(seen, { requests: 1, cost: most, used: most });
  });

  test('is listed by its label, in the reports, among the models and in the description', async () => {
    const label = 'label-of-embeddings';
    const answer = await send(bodyOf('"input":"x"'), 'rich', { body: SHORT }, label);
    const id = answer.headers['x-service-execution-id'];
    await recordOf(answer);
    const { data } = (await get(`/v1/generations?client_request_id=${label}`)) as { data: { id: string }[] };
    assert.deepEqual(
      data.map((found) => found.id),
      [id],
    );
    const entry = await waitFor(
      'the request in the listing',
      async () => {
        const listed = (await get('/v1/usage/me/requests?limit=100')) as { data: Record<string, unknown>[] };
        return listed.data.find((found) => found['id'] === id);
      },
      (found) => found !== undefined,
    );
    assert.deepEqual([entry?.['api'], entry?.['model'], entry?.['status']], ['embeddings', 'test/embedding', 200]);
    const models = (await get('/v1/models')) as { data: Record<string, unknown>[] };
    const listed = models.data.find((found) => found['id'] === 'embedding-latest');
    assert.deepEqual(
      [listed?.['kind'], listed?.['apis'], listed?.['pricing']],
      ['embedding', ['embeddings'], { currency: 'USD', input: '0.02', output: '0' }],
    );
    const { paths } = (await get('/openapi.json')) as { paths: Record<string, object> };
    assert.ok(PATH in paths);
  });

  describe("OpenAI's client", () => {
    const client = (): OpenAI =>
      new OpenAI({ baseURL: `${tollgate.url}/v1`, apiKey: limitedKey('rich'), maxRetries: 0 });

    test('asks for base64 by itself and decodes it to what floats say', async () => {
      const wanted = { model: 'test/simulated', input: ['one text', 'another'], dimensions: 64 };
      const decoded = await client().embeddings.create(wanted);
      const plain = await client().embeddings.create({ ...wanted, encoding_format: 'float' });
      assert.deepEqual(
        decoded.data.map(({ embedding }) => embedding),
        plain.data.map(({ embedding }) => embedding),
      );
      assert.equal(decoded.data.map(({ index, embedding }) => `${index}: ${embedding.length}`).join(), '0: 64,1: 64');
      assert.deepEqual(decoded.usage, { prompt_tokens: 4, total_tokens: 4 });
    });

    test('embeds tokens, and learns what it cost', async () => {
      const { data, response } = await client()
        .embeddings.create({
          model: 'test/simulated',
          input: [
            [1, 2, 3],
            [4, 5],
          ],
        })
        .withResponse();
      assert.deepEqual([data.data.length, data.usage.prompt_tokens], [2, 5]);
      const id = response.headers.get('x-service-execution-id') ?? '';
      const record = await settledGeneration(tollgate.url, limitedKey('rich'), id);
      assert.deepEqual([record.tokensPrompt, record.totalCost], ['5', decimalOfPico(PICO_PER_TOKEN * 5n)]);
    });

    test('tells a model that does not exist by its own error', async () => {
      await assert.rejects(
        async () => client().embeddings.create({ model: 'no/such', input: 'x' }),
        (error) => error instanceof NotFoundError && error.code === 'model_not_found',
      );
    });
  });
});
