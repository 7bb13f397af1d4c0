// `stream_usage: request` through a whole gateway: what the provider is asked, what the client gets, and what is
// billed, also when it leaves.

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { type BodyWithHole, fillModel, oddBody } from '../support/body-splices.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { settledGeneration } from '../support/generation-lookup.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { providersConfiguration, type ServedModel } from '../support/provider-configuration.ts';
import { loadRecordedChatExchanges, type RecordedExchange } from '../support/recorded-exchanges.ts';
import { SEED, splitReply } from '../support/replays.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { decimalOfPico, KEYS, PICO_PER_TOKEN } from '../support/test-configuration.ts';
import { withoutUsageChunks } from '../support/usage-chunks.ts';
import { waitFor } from '../support/waiting.ts';

const ASKED = '{"include_usage":true}';

/** What the clients of the replays write, and what the provider gets for it; null: no such field. */
const OPTIONS: readonly (readonly [written: string | null, sent: string])[] = [
  [null, ASKED],
  ['{"include_obfuscation":false}', '{"include_obfuscation":false,"include_usage":true}'],
  ['{"include_usage":false}', ASKED],
  [ASKED, ASKED],
];

interface Replay {
  readonly publicModel: string;
  readonly providerModel: string;
  readonly recorded: RecordedExchange;
  readonly request: (model: string, asked: boolean) => string;
  /** The client asked by itself. */
  readonly clientAsked: boolean;
  readonly reply: Script;
}

const replays = loadRecordedChatExchanges()
  .filter(({ stream, status }) => stream && status === 200)
  .map(makeReplay);

function makeReplay(recorded: RecordedExchange, index: number): Replay {
  const hole = oddBody({ stream: true, padBytes: recorded.expectedUsage?.inputTokens ?? 0 });
  const [written, sent] = OPTIONS[index % OPTIONS.length] ?? [null, ASKED];
  return {
    publicModel: `replay/${index}`,
    providerModel: `replayed-${index}`,
    recorded,
    request: (model, asked) => withOptions(hole, model, asked ? sent : written),
    clientAsked: written === sent,
    reply: {
      status: 200,
      headers: [['content-type', recorded.contentType]],
      body: recorded.responseBody,
      // A length that would be wrong for what the client gets.
      framing: (['chunked', 'length', 'close'] as const)[index % 3] ?? 'chunked',
      split: splitReply(index, recorded.responseBody.length),
    },
  };
}

function withOptions(hole: BodyWithHole, model: string, options: string | null): string {
  const body = fillModel(hole, model);
  const close = body.lastIndexOf('}');
  return options === null ? body : `${body.slice(0, close)},"stream_options":${options}${body.slice(close)}`;
}

const MODELS: readonly ServedModel[] = [
  ...replays.map(({ publicModel, providerModel }) => ({
    id: publicModel,
    deployments: [{ provider: 'fake', model: providerModel, streamUsage: 'request' as const }],
  })),
  {
    id: 'over/asked-first',
    deployments: [
      { provider: 'fake', model: 'busy-and-asked', streamUsage: 'request' },
      { provider: 'fake', model: 'plain' },
    ],
  },
  {
    id: 'over/plain-first',
    deployments: [
      { provider: 'fake', model: 'busy-and-plain' },
      { provider: 'fake', model: 'a', streamUsage: 'request' },
    ],
  },
  { id: 'sim/asked', deployments: [{ provider: 'sim', model: 'sim-small', streamUsage: 'request' }] },
  { id: 'sim/plain', deployments: [{ provider: 'sim', model: 'sim-small' }] },
];

const STREAM = Buffer.from(
  'data: {"choices":[{"index":0,"delta":{}}],"usage":null}\n\ndata: ' +
    '{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\ndata: [DONE]\n\n',
);
const STREAMED: Script = { headers: [['content-type', 'text/event-stream']], body: STREAM, framing: 'chunked' };

describe('stream_usage: request', () => {
  let fake: FakeUpstream;
  let sim: SimulatedProvider;
  let tollgate: Front;
  let ledger: LedgerView;
  const byProviderModel = new Map(replays.map((replay) => [replay.providerModel, replay]));

  before(async () => {
    fake = await startFakeUpstream(({ body }) => {
      const model = modelOf(body);
      if (model.startsWith('busy')) return { status: 500, headers: [['content-type', 'application/json']], body: '{}' };
      return byProviderModel.get(model)?.reply ?? STREAMED;
    });
    sim = await startSimulatedProvider();
    const providers = [
      { id: 'fake', url: fake.url },
      { id: 'sim', url: sim.url, onDisconnect: 'drain' as const },
    ];
    tollgate = await startFront({
      configurationYaml: providersConfiguration(providers, MODELS),
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });

  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await Promise.all([fake?.close(), sim?.stop()]);
  });

  const headers = { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' };
  const send = (body: string): Promise<HttpAnswer> =>
    httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body });
  const settled = (id: string) => settledGeneration(tollgate.url, KEYS.acme, id);

  test(`replays ${replays.length} recorded streams: one edit of the request, one chunk less in the reply, ` +
    `the usage billed (TEST_SEED=${SEED})`, {
    skip: replays.length === 0 && 'no recordings here',
  }, async () => {
    const queue = [...replays];
    const worker = async (): Promise<void> => {
      for (let replay = queue.shift(); replay !== undefined; replay = queue.shift()) await assertReplay(replay);
    };
    await Promise.all([1, 2, 3, 4].map(worker));
    assert.deepEqual(fake.violations, []);
  });

  async function assertReplay({ publicModel, providerModel, recorded, request, clientAsked }: Replay): Promise<void> {
    const where = `${recorded.name} (${publicModel})`;
    const answer = await send(request(publicModel, false));
    assert.ok(answer.complete && answer.status === 200, where);
    assert.ok(
      answer.body.equals(clientAsked ? recorded.responseBody : withoutUsageChunks(recorded.responseBody)),
      `${where}: response bytes`,
    );
    const calls = fake.requests.filter(({ body }) => modelOf(body) === providerModel);
    assert.deepEqual(
      calls.map(({ body }) => body.toString()),
      [request(providerModel, true)],
      `${where}: request bytes`,
    );
    const { expectedUsage } = recorded;
    if (expectedUsage === null) return;
    const { tokensPrompt, tokensCompletion } = await settled(String(answer.headers['x-service-execution-id']));
    assert.deepEqual(
      [tokensPrompt, tokensCompletion],
      [String(expectedUsage.inputTokens), String(expectedUsage.outputTokens)],
      where,
    );
  }

  test('whoever serves in the end gets the body that its own deployment asks for', async () => {
    const hole = oddBody({ stream: true });
    const cases = [
      {
        model: 'over/asked-first',
        got: [withOptions(hole, 'busy-and-asked', ASKED), withOptions(hole, 'plain', null)],
        reply: STREAM,
      },
      {
        model: 'over/plain-first',
        got: [withOptions(hole, 'busy-and-plain', null), withOptions(hole, 'a', ASKED)],
        reply: withoutUsageChunks(STREAM),
      },
    ];
    for (const { model, got, reply } of cases) {
      const before = fake.requests.length;
      const answer = await send(fillModel(hole, model));
      assert.equal(answer.body.toString(), reply.toString());
      assert.deepEqual(
        fake.requests.slice(before).map(({ body }) => body.toString()),
        got,
      );
    }
  });

  test('a reply that is no stream, asked for or not, is left as it is', async () => {
    const whole = await send(
      JSON.stringify({ model: 'sim/asked', messages: [{ role: 'user', content: 'Hi. [[sim: tokens=3]]' }] }),
    );
    assert.equal(
      (JSON.parse(whole.body.toString()) as { usage: { completion_tokens: number } }).usage.completion_tokens,
      3,
    );
    const refused = await send(bodyOf('sim/asked', 'Hi. [[sim: status=400]]'));
    assert.equal(refused.status, 400);
    assert.ok(refused.body.includes('"error"'));
  });

  test('hidden reasoning of a whole stream is billed to a client that never asked', async () => {
    const answer = await send(bodyOf('sim/asked', 'Think. [[sim: tokens=5 reasoning=700]]'));
    const text = answer.body.toString();
    assert.ok(answer.complete && text.endsWith('data: [DONE]\n\n'));
    assert.ok(!text.includes('"choices":[]') && !text.includes('completion_tokens'));
    // The others stay as the provider wrote them: it says this in every chunk of a stream that was asked for usage.
    assert.equal(text.match(/"usage":null/g)?.length, text.match(/^data: \{/gm)?.length);
    await assertBilled(String(answer.headers['x-service-execution-id']), 'completed', 705);
  });

  test('hidden reasoning of a stream whose client left is billed, with on_disconnect: drain', async () => {
    const id = await leaveAfterFirstChunk('sim/asked');
    await assertBilled(id, 'usage_then_cut', 730);
    // Without the option the provider says nothing, and what nobody saw cannot be counted.
    const plain = await leaveAfterFirstChunk('sim/plain');
    const row = await readExecution(plain);
    assert.deepEqual([row['outcome'], row['source'], row['output']], ['aborted_mid_stream', 'counted', '30']);
  });

  async function assertBilled(id: string, outcome: string, outputTokens: number): Promise<void> {
    const record = await settled(id);
    const row = await readExecution(id);
    assert.deepEqual(
      [row['outcome'], row['source'], row['output'], row['reasoning']],
      [outcome, 'reported', String(outputTokens), '700'],
    );
    const cost = BigInt(record.tokensPrompt ?? 0) * PICO_PER_TOKEN.input + BigInt(outputTokens) * PICO_PER_TOKEN.output;
    assert.equal(record.totalCost, decimalOfPico(cost));
  }

  async function readExecution(id: string): Promise<Readonly<Record<string, unknown>>> {
    const question = `SELECT outcome, usage_source AS source, output_tokens::text AS output,
      reasoning_tokens::text AS reasoning
                        FROM generations WHERE id = $1 AND outcome IS NOT NULL`;
    const [row] = await waitFor(
      `execution ${id} to be posted`,
      () => ledger.query(question, [id]),
      (rows) => rows.length === 1,
    );
    return row ?? {};
  }

  function leaveAfterFirstChunk(model: string): Promise<string> {
    const body = bodyOf(model, 'Think long. [[sim: tokens=30 delay_ms=20 reasoning=700]]');
    return new Promise((resolve, reject) => {
      const options = {
        method: 'POST',
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        agent: false,
      };
      const request = httpRequest(`${tollgate.url}/v1/chat/completions`, options);
      request.on('error', reject);
      request.on('response', (response) => {
        response.on('error', () => undefined);
        response.once('data', () => {
          request.off('error', reject).on('error', () => undefined);
          request.destroy();
          resolve(String(response.headers['x-service-execution-id']));
        });
      });
      request.end(body);
    });
  }
});

function bodyOf(model: string, content: string): string {
  return JSON.stringify({ model, stream: true, max_tokens: 4_000, messages: [{ role: 'user', content }] });
}

function modelOf(body: Buffer): string {
  return (JSON.parse(body.toString()) as { model: string }).model;
}
