// The promise that only `model` changes. Every recorded chat exchange, and what coding agents sent, goes through a
// whole gateway, split at random down to one byte; the provider must get the request and the client the response
// exactly, and the usage found must be the recording's.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { type BodyWithHole, fillModel, findModelHole, oddBody } from '../support/body-splices.ts';
import {
  type FakeUpstream,
  type ReceivedRequest,
  type ScriptedReply,
  startFakeUpstream,
} from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { settledGeneration } from '../support/generation-lookup.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { loadRecordedChatExchanges, type RecordedExchange } from '../support/recorded-exchanges.ts';
import { agentExchanges, inParallel, SEED, splitReply } from '../support/replays.ts';
import {
  decimalOfPico,
  expectedCostPico,
  KEYS,
  PROVIDER_KEY,
  type TestModel,
  testConfiguration,
} from '../support/test-configuration.ts';

/** One replay: its own public model and provider model, so that a request at the provider names its exchange. */
interface Replay {
  readonly name: string;
  readonly publicModel: string;
  readonly providerModel: string;
  readonly request: BodyWithHole;
  readonly reply: ScriptedReply & { readonly body: Buffer };
  readonly recorded: RecordedExchange;
}

const recordings = loadRecordedChatExchanges();
const replays = [...recordings, ...agentExchanges('chat/completions', recordings)].map(makeReplay);

function makeReplay(recorded: RecordedExchange, index: number): Replay {
  const hole =
    recorded.requestBody === null
      ? // Long enough that the recording's input tokens are within what such a body can hold.
        oddBody({ stream: recorded.stream, padBytes: recorded.expectedUsage?.inputTokens ?? 0 })
      : findModelHole(recorded.requestBody.toString('utf8'));
  return {
    name: recorded.name,
    publicModel: `replay/${index}`,
    providerModel: `replayed-${index}-2026-11-20`,
    request: hole,
    reply: {
      status: recorded.status,
      headers: [
        ['Content-Type', recorded.contentType],
        ['X-Request-Id', `req_${index}`],
        ['Set-Cookie', 'session=provider'],
        ['X-Provider-Internal', 'secret'],
      ],
      body: recorded.responseBody,
      framing: framingOf(index, recorded.stream),
      split: splitReply(index, recorded.responseBody.length),
    },
    recorded,
  };
}

function framingOf(index: number, stream: boolean): 'length' | 'chunked' | 'close' {
  if (stream) return index % 7 === 0 ? 'close' : 'chunked';
  return (['length', 'chunked', 'length', 'close'] as const)[index % 4] ?? 'length';
}

const MODELS: readonly TestModel[] = [
  ...replays.map((replay) => ({ id: replay.publicModel, providerModel: replay.providerModel, outputCap: 16_384 })),
  { id: 'odd/plain', providerModel: 'a', outputCap: 16_384, aliases: ['odd/"quoted"\\slash'] },
  { id: 'odd/much-longer-than-what-the-provider-calls-it', providerModel: 'b', outputCap: 16_384 },
  { id: 'o', providerModel: 'a-provider-name-that-is-very-much-longer-than-the-public-one', outputCap: 16_384 },
];

describe('the relay', { skip: replays.length === 0 ? 'no recordings beside the repository' : false }, () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let ledger: LedgerView;
  const byProviderModel = new Map(replays.map((replay) => [replay.providerModel, replay]));

  before(async () => {
    upstream = await startFakeUpstream(
      (request) => byProviderModel.get(modelOf(request))?.reply ?? { body: '{"choices":[]}' },
    );
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: MODELS }),
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });

  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await upstream?.close();
  });

  const send = (body: string, headers: Readonly<Record<string, string>> = {}): Promise<HttpAnswer> =>
    httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json', ...headers },
      body,
    });

  test(`replays ${replays.length} recorded exchanges byte for byte (TEST_SEED=${SEED})`, async () => {
    await inParallel(replays, async (replay) => {
      const body = fillModel(replay.request, replay.publicModel);
      // What has no price is refused to who is billed.
      const key = asksForWhatHasNoPrice(body) ? KEYS.free : KEYS.acme;
      const answer = await send(body, { authorization: `Bearer ${key}` });
      const where = `${replay.name} (${replay.publicModel})`;
      if (replay.recorded.status === 401) return assertKeyRefusalIsHidden(answer, replay, where);
      assert.equal(answer.status, replay.recorded.status, where);
      assert.ok(answer.complete, `${where}: the response came whole`);
      assert.equal(answer.headers['content-type'], replay.recorded.contentType, where);
      assert.equal(answer.headers['set-cookie'], undefined, where);
      assert.equal(answer.headers['x-provider-internal'], undefined, where);
      assert.equal(sha256(answer.body), sha256(replay.recorded.responseBody), `${where}: response bytes`);
      const got = upstream.requests.filter((request) => modelOf(request) === replay.providerModel);
      assert.equal(got.length, 1, `${where}: one call at the provider`);
      assert.equal(
        got[0]?.body.toString('utf8'),
        fillModel(replay.request, replay.providerModel),
        `${where}: request bytes`,
      );
      await assertUsage(replay, String(answer.headers['x-service-execution-id']), key);
    });
    assert.deepEqual(upstream.violations, []);
  });

  /**
   * The service's own key is none of the client's business: it is told that nobody could serve, and not in the
   * provider's words.
   */
  function assertKeyRefusalIsHidden(answer: HttpAnswer, replay: Replay, where: string): void {
    assert.equal(answer.status, 502, where);
    assert.equal(
      (JSON.parse(answer.body.toString('utf8')) as { error: { code: string } }).error.code,
      'provider_unavailable',
      where,
    );
    assert.equal(
      upstream.requests.filter((request) => modelOf(request) === replay.providerModel).length,
      1,
      `${where}: one call at the provider`,
    );
  }

  async function assertUsage(replay: Replay, id: string, key: string): Promise<void> {
    const { expectedUsage, status } = replay.recorded;
    const record = await settledGeneration(tollgate.url, key, id);
    if (expectedUsage === null) {
      if (status >= 400)
        assert.equal(record.totalCost ?? '0', '0', `${replay.name}: a provider's refusal costs nothing`);
      return;
    }
    assert.equal(record.tokensPrompt, show(expectedUsage.inputTokens), `${replay.name}: input tokens`);
    assert.equal(record.tokensCompletion, show(expectedUsage.outputTokens), `${replay.name}: output tokens`);
    const { inputTokens, outputTokens } = expectedUsage;
    const cachedTokens = partOf(expectedUsage.cachedTokens, inputTokens);
    const counts = { input: inputTokens ?? 0, cached: cachedTokens ?? 0, output: outputTokens ?? 0 };
    assert.equal(record.ratedCost, decimalOfPico(expectedCostPico(counts)), `${replay.name}: rated cost`);
    const [row] = await ledger.query(
      'SELECT cached_input_tokens::text AS cached, reasoning_tokens::text AS reasoning FROM generations WHERE id = $1',
      [id],
    );
    assert.equal(row?.cached, show(cachedTokens), `${replay.name}: cached tokens`);
    assert.equal(
      row?.reasoning,
      show(partOf(expectedUsage.reasoningTokens, outputTokens)),
      `${replay.name}: reasoning tokens`,
    );
  }

  test('changes nothing but the value of model', async () => {
    const hole = oddBody({ stream: false });
    const cases: readonly [string, string][] = [
      [fillModel(hole, 'odd/plain'), fillModel(hole, 'a')],
      [fillModel(hole, 'odd/"quoted"\\slash'), fillModel(hole, 'a')],
      [fillModel(hole, 'odd/much-longer-than-what-the-provider-calls-it'), fillModel(hole, 'b')],
      [fillModel(hole, 'o'), fillModel(hole, 'a-provider-name-that-is-very-much-longer-than-the-public-one')],
      // The key and the value may be spelt with escapes; the key keeps its spelling.
      [
        `{"\\u006dodel":"\\u006f","messages":[]}`,
        `{"\\u006dodel":"a-provider-name-that-is-very-much-longer-than-the-public-one","messages":[]}`,
      ],
      [`{"messages":[],"model":"odd\\/plain"}`, `{"messages":[],"model":"a"}`],
    ];
    for (const [sent, expected] of cases) {
      const before = upstream.requests.length;
      const answer = await send(sent);
      assert.equal(answer.status, 200, `${sent.slice(0, 80)}: ${answer.body.toString('utf8')}`);
      assert.equal(upstream.requests[before]?.body.toString('utf8'), expected);
    }
  });

  test('passes headers by allowlist in both directions', async () => {
    const before = upstream.requests.length;
    const answer = await send(fillModel(oddBody({ stream: false }), 'odd/plain'), {
      accept: 'application/json',
      'accept-encoding': 'gzip, br',
      'user-agent': 'test-client/1.0',
      'openai-beta': 'assistants=v2',
      cookie: 'client=secret',
      'x-client-request-id': 'label',
      'x-service-tag': 'tag',
      'x-service-anything': 'brand',
      'x-forwarded-for': '10.0.0.1',
      'proxy-authorization': 'Basic secret',
      te: 'trailers',
      connection: 'close, x-nominated',
      'x-nominated': 'hop',
    });
    assert.equal(answer.status, 200);
    const fields = new Map(upstream.requests[before]?.headers.map(([name, value]) => [name.toLowerCase(), value]));
    assert.equal(fields.get('authorization'), `Bearer ${PROVIDER_KEY}`);
    assert.equal(fields.get('accept-encoding'), 'identity');
    assert.equal(fields.get('content-type'), 'application/json');
    assert.equal(fields.get('user-agent'), 'test-client/1.0');
    assert.equal(fields.get('openai-beta'), 'assistants=v2');
    const forbidden = [
      'cookie',
      'x-client-request-id',
      'x-service-tag',
      'x-service-anything',
      'proxy-authorization',
      'te',
      'x-nominated',
    ];
    for (const name of forbidden) assert.equal(fields.get(name), undefined, name);
    assert.ok(!JSON.stringify([...fields]).includes(KEYS.acme), 'the client key stays here');
    assert.ok(!JSON.stringify(answer.headers).includes(PROVIDER_KEY), 'the provider key stays here');
    assert.equal(answer.headers['x-service-execution-id']?.length, 36);
  });
});

function modelOf(request: ReceivedRequest): string {
  const model = (JSON.parse(request.body.toString('utf8')) as { model?: unknown }).model;
  return typeof model === 'string' ? model : '';
}

function asksForWhatHasNoPrice(body: string): boolean {
  const request = JSON.parse(body) as Readonly<Record<string, unknown>>;
  const tools = Array.isArray(request.tools) ? (request.tools as readonly { readonly type?: unknown }[]) : [];
  return (
    'web_search_options' in request ||
    'plugins' in request ||
    tools.some(({ type }) => type !== 'function' && type !== 'custom')
  );
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * Some providers count cached input (Grok's hidden prompt) or reasoning (xAI) beside the total and not inside it: then
 * it is not a part of it, and what is not known to be cached costs the full price.
 */
function partOf(part: number | null, whole: number | null): number | null {
  return part !== null && whole !== null && part > whole ? null : part;
}

function show(count: number | null): string | null {
  return count === null ? null : String(count);
}
