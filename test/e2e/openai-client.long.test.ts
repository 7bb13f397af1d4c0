// The real `openai` client from the npm registry against a whole installation with the simulated provider behind it
// (spec 4.1, 4.5, 4.6, 7).

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { parse } from 'lossless-json';
import OpenAI from 'openai';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import {
  askForGenerations,
  lookupGeneration,
  readGeneration,
  settledGeneration,
} from '../support/generation-lookup.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import {
  decimalOfPico,
  expectedCostPico,
  KEYS,
  OPENING_CREDIT_PICO,
  testConfiguration,
} from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const EXECUTION_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('the openai client', () => {
  let provider: SimulatedProvider;
  let tollgate: Tollgate;
  let ledger: LedgerView;
  const client = (apiKey: string): OpenAI => new OpenAI({ baseURL: `${tollgate.url}/v1`, apiKey, maxRetries: 0 });

  before(async () => {
    provider = await startSimulatedProvider();
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: testConfiguration({ upstreamUrl: provider.url }),
      gatewayProcesses: 2,
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });

  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await provider?.stop();
  });

  test('completes, and the lookup shows the exact cost', async () => {
    const { data, response } = await client(KEYS.acme)
      .chat.completions.create({
        model: 'sim/small',
        messages: [{ role: 'user', content: 'Say something. [[sim: tokens=17 cached=3]]' }],
      })
      .withResponse();
    assert.equal(data.choices[0]?.finish_reason, 'stop');
    assert.ok((data.choices[0]?.message.content ?? '').length > 17);
    assert.equal(data.usage?.completion_tokens, 17);
    const id = executionId(response);
    const record = await settledGeneration(tollgate.url, KEYS.acme, id);
    const cost = decimalOfPico(expectedCostPico({ input: data.usage?.prompt_tokens ?? 0, cached: 3, output: 17 }));
    assert.equal(record.id, id);
    assert.equal(record.model, 'sim/small');
    assert.equal(record.streamed, false);
    assert.equal(record.billingStatus, 'final');
    assert.equal(record.tokensPrompt, String(data.usage?.prompt_tokens));
    assert.equal(record.tokensCompletion, '17');
    assert.equal(record.totalCost, cost);
    assert.equal(record.ratedCost, cost);
    assert.equal(record.currency, 'USD');
    assert.ok(record.authorizedAmount !== null && Number(record.authorizedAmount) >= Number(cost));
  });

  test('streams, with usage where it is asked for', async () => {
    const { data, response } = await client(KEYS.acme)
      .chat.completions.create({
        model: 'sim/small-latest',
        messages: [{ role: 'user', content: 'Stream. [[sim: tokens=40 split_utf8]]' }],
        stream: true,
        stream_options: { include_usage: true },
      })
      .withResponse();
    let text = '';
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of data) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.ok(!text.includes('\ufffd'), 'characters survived being split');
    assert.equal(usage?.completion_tokens, 40);
    const record = await settledGeneration(tollgate.url, KEYS.acme, executionId(response));
    assert.equal(record.streamed, true);
    assert.equal(record.tokensPrompt, String(usage?.prompt_tokens));
    assert.equal(record.tokensCompletion, '40');
    const cost = expectedCostPico({ input: usage?.prompt_tokens ?? 0, cached: 0, output: 40 });
    assert.equal(record.totalCost, decimalOfPico(cost));
  });

  test('a stream without usage is counted: as many tokens as the model said', async () => {
    const { data, response } = await client(KEYS.acme)
      .chat.completions.create({
        model: 'sim/small',
        messages: [{ role: 'user', content: 'Quietly. [[sim: tokens=30]]' }],
        stream: true,
      })
      .withResponse();
    for await (const chunk of data) assert.equal(chunk.usage ?? null, null, 'nobody asked for usage');
    const record = await settledGeneration(tollgate.url, KEYS.acme, executionId(response));
    assert.equal(record.tokensCompletion, '30');
    assert.equal(record.billingStatus, 'final');
    assert.ok(Number(record.tokensPrompt) > 0);
  });

  test('leaving in mid-stream cuts the provider', async () => {
    const stream = await client(KEYS.acme).chat.completions.create({
      model: 'sim/small',
      messages: [{ role: 'user', content: 'Leaving early. [[sim: tokens=5000 delay_ms=50]]' }],
      max_tokens: 5000,
      stream: true,
    });
    let chunks = 0;
    for await (const chunk of stream) {
      chunks += chunk.choices.length;
      if (chunks === 5) break; // The client closes the connection.
    }
    // The whole stream would take minutes; the promise is a second, the wait below only a backstop.
    const end = await provider.lastEnd();
    assert.equal(end.completed, false);
    assert.ok(end.completionTokens < 100);
  });

  describe('shows refusals', () => {
    const messages = [{ role: 'user' as const, content: 'Hello.' }];

    test('of a wrong key', async () => {
      const error = await refusal(client('tg-wrong').chat.completions.create({ model: 'sim/small', messages }));
      assert.equal(error.status, 401);
      assert.match(error.message, /unauthorized/);
      assert.ok(error instanceof OpenAI.AuthenticationError);
    });

    test('of an unknown and of a retired model', async () => {
      for (const model of ['sim/never', 'sim/retired', 'sim-small']) {
        const error = await refusal(client(KEYS.acme).chat.completions.create({ model, messages }));
        assert.equal(error.status, 404, model);
        assert.equal(error.code, 'model_not_found');
        assert.match(error.message, new RegExp(model));
        assert.ok(error instanceof OpenAI.NotFoundError);
      }
    });

    test('of a missing model', async () => {
      const body = { messages } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming;
      const error = await refusal(client(KEYS.acme).chat.completions.create(body));
      assert.equal(error.status, 400);
      assert.equal(error.param, 'model');
      assert.equal(error.type, 'invalid_request_error');
    });

    test('of a wallet that is too small (402)', async () => {
      const error = await refusal(client(KEYS.poor).chat.completions.create({ model: 'sim/small', messages }));
      assert.equal(error.status, 402);
      assert.match(error.message, /insufficient_credit/);
    });

    test('of an output without bound (422), which a limit cures', async () => {
      const error = await refusal(client(KEYS.acme).chat.completions.create({ model: 'sim/uncapped', messages }));
      assert.equal(error.status, 422);
      assert.match(error.message, /not_safely_billable/);
      const answer = await client(KEYS.acme).chat.completions.create({
        model: 'sim/uncapped',
        messages,
        max_tokens: 6,
      });
      assert.equal(answer.choices[0]?.finish_reason, 'length');
    });

    test("of the provider, in the provider's own words", async () => {
      const asked = [{ role: 'user' as const, content: 'Refuse. [[sim: status=429 retry_after=7]]' }];
      const error = await refusal(client(KEYS.free).chat.completions.create({ model: 'sim/limited', messages: asked }));
      assert.equal(error.status, 429);
      assert.equal(error.code, 'rate_limit_exceeded');
      assert.equal(error.headers?.get('retry-after'), '7');
    });

    test('and a stream that the provider cut never ends cleanly', async () => {
      const asked = [{ role: 'user' as const, content: 'Break. [[sim: tokens=50 cut_after=10]]' }];
      const stream = await client(KEYS.acme).chat.completions.create({
        model: 'sim/small',
        messages: asked,
        stream: true,
      });
      let text = '';
      await assert.rejects(async () => {
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      });
      assert.ok(text.length > 0);
    });
  });

  test('lists models', async () => {
    const page = await client(KEYS.acme).models.list();
    const ids = page.data.map((model) => model.id);
    assert.ok(ids.includes('sim/small'));
    assert.ok(ids.includes('sim/uncapped'));
    assert.ok(!ids.includes('sim/retired'), 'inactive models are not listed (spec 4.6)');
  });

  test('finds generations by the label it sent, and the provider never sees labels', async () => {
    const label = 'label-1f3a';
    const ids: string[] = [];
    for (let count = 0; count < 2; count += 1) {
      const { response } = await client(KEYS.acme)
        .chat.completions.create(
          { model: 'sim/small', messages: [{ role: 'user', content: `Labelled ${count}` }] },
          { headers: { 'X-Client-Request-Id': label, 'X-Service-Tag': 'night, Batch-7, not valid!' } },
        )
        .withResponse();
      ids.push(executionId(response));
    }
    for (const id of ids) await settledGeneration(tollgate.url, KEYS.acme, id);
    const answer = await askForGenerations(tollgate.url, KEYS.acme, `generations?client_request_id=${label}`);
    const { data } = parse(answer.body.toString('utf8')) as { data: Record<string, unknown>[] };
    assert.deepEqual(data.map((entry) => readGeneration(entry).id).sort(), ids.sort());
    const none = await askForGenerations(tollgate.url, KEYS.acme, 'generations?client_request_id=nobody');
    assert.deepEqual(JSON.parse(none.body.toString('utf8')), { data: [] });
  });

  test('a foreign or absent execution is not found', async () => {
    const { response } = await client(KEYS.acme)
      .chat.completions.create({ model: 'sim/small', messages: [{ role: 'user', content: 'Mine.' }] })
      .withResponse();
    const id = executionId(response);
    await settledGeneration(tollgate.url, KEYS.acme, id);
    assert.notEqual(await lookupGeneration(tollgate.url, KEYS.acmeSecond, id), null, 'same organization, same payer');
    assert.equal(await lookupGeneration(tollgate.url, KEYS.other, id), null);
    assert.equal(await lookupGeneration(tollgate.url, KEYS.acme, '01890000-0000-7000-8000-000000000000'), null);
  });

  test('every dollar that left the wallet is in a generation', async () => {
    await waitFor(
      'the wallet to agree with its generations',
      async () => {
        const [row] = await ledger.query(
          `SELECT coalesce(sum(charge), 0)::text AS charged FROM generations
           JOIN organizations ON organizations.id = generations.organization_id WHERE organizations.slug = 'acme'`,
        );
        return {
          charged: BigInt(String(row?.charged)),
          spent: OPENING_CREDIT_PICO - (await ledger.wallet('acme')).balance,
        };
      },
      ({ charged, spent }) => charged > 0n && charged === spent,
    );
    assert.equal((await ledger.wallet('poor')).balance, 1_000_000n, 'a refused request costs nothing');
    assert.equal((await ledger.wallet('other')).balance, 5n * 10n ** 12n);
  });
});

function executionId(response: Response): string {
  const id = response.headers.get('x-service-execution-id') ?? '';
  assert.match(id, EXECUTION_ID);
  return id;
}

async function refusal(call: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof OpenAI.APIError, String(error));
    return error;
  }
  throw new Error('the call was not refused');
}
