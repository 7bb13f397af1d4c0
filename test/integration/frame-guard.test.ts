// One intended request never becomes two handler calls: requests whose framing can be read in two ways, on raw sockets,
// whole, byte by byte and in two packets. What would be smuggled names a model of its own, so that a call of it cannot
// be missed.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Exchange } from '../../src/http/exchange.ts';
import { chooseFront } from '../../src/http/fronts/choose-front.ts';
import type { SplitPlan } from '../support/byte-splits.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import {
  FRAMING_ATTACKS,
  type FramingAttack,
  INTENDED_BODY,
  intendedPost,
  KNOWN_GAPS,
} from '../support/framing-attacks.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';
import {
  exchangeRaw,
  finalStatuses,
  type OpenRawExchange,
  openRaw,
  type RawExchange,
} from '../support/raw-connection.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const REPLY =
  '{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,' +
  '"total_tokens":2}}';

const ANOTHER_MARK = 'another';
const ANOTHER_BODY = JSON.stringify({ model: 'sim/intended', messages: [], user: ANOTHER_MARK });

describe('the frame guard', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let port: number;
  /** The front on node:http, whatever front this run has. */
  let strict: HttpFront;
  let calledOnNode = 0;

  before(async () => {
    upstream = await startFakeUpstream(() => ({ body: REPLY }));
    const models = ['intended', 'smuggled'].map((name) => ({
      id: `sim/${name}`,
      providerModel: `sim-${name}`,
      outputCap: 100,
    }));
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models }),
    });
    port = Number(new URL(tollgate.url).port);
    const handle = (exchange: Exchange): void => {
      calledOnNode += 1;
      exchange.answerJson(200, '{"a":1}');
    };
    const routes = (['GET', 'POST'] as const).map(
      (method) => ({ method, path: '/*', envelope: 'openai', handle }) as const,
    );
    strict = await startHttpFront(routes, {}, (await chooseFront('node')).front);
  });

  after(async () => {
    await strict?.stop();
    await tollgate?.stop();
    await upstream?.close();
  });

  // The pinned uWebSockets.js answers 505 to a request line that arrives in pieces, so the pieces begin behind it; that
  // case has its own test.
  const lineEnd = (bytes: string): number => bytes.indexOf('\n') + 1;
  const headEnd = (bytes: string): number => bytes.indexOf('\r\n\r\n') + 4;
  const SPLITS: readonly [string, (bytes: string) => SplitPlan][] = [
    ['whole', () => ({ kind: 'whole' })],
    ['one byte each', (bytes) => ({ kind: 'each_byte', from: lineEnd(bytes) })],
    ['cut after the head', (bytes) => ({ kind: 'two', at: headEnd(bytes) })],
    ['cut inside the body', (bytes) => ({ kind: 'two', at: headEnd(bytes) + 10 })],
    ['cut inside the head', (bytes) => ({ kind: 'two', at: lineEnd(bytes) + 9 })],
  ];
  /** Connections on which the server waits for a better ending; it must give up on each by itself. */
  const waiting: OpenRawExchange[] = [];

  for (const [splitName, splitOf] of SPLITS) {
    describe(`with requests sent ${splitName}`, () => {
      for (const attack of FRAMING_ATTACKS) test(attack.name, () => withstand(attack, splitOf(attack.bytes)));
      for (const attack of KNOWN_GAPS)
        test(`${attack.name}, on node:http`, () => withstandOnNode(attack, splitOf(attack.bytes)));
    });
  }

  /** What the parser of uWebSockets.js hides, that of node:http refuses. */
  async function withstandOnNode(gap: FramingAttack, split: SplitPlan): Promise<void> {
    const { received, closedByServer } = await exchangeRaw(strict.port, Buffer.from(gap.bytes, 'latin1'), split);
    assert.deepEqual(finalStatuses(received), [400], received);
    assert.ok(closedByServer);
    assert.equal(calledOnNode, 0);
  }

  async function withstand(attack: FramingAttack, split: SplitPlan): Promise<void> {
    const before = upstream.requests.length;
    const exchange = await openRaw(port, Buffer.from(attack.bytes, 'latin1'), split, serveAnother);
    const { received, closedByServer } = exchange;
    const calls = callsSince(before);
    const statuses = finalStatuses(received);
    if (statuses.length === 0 && !closedByServer) waiting.push(exchange);
    else exchange.destroy();
    const shown = `${JSON.stringify({ received, closedByServer })}`;
    assert.ok(
      calls.length <= (attack.mayServe === true ? 1 : 0),
      `${calls.length} calls at the provider: ${calls.join(' ')}; ${shown}`,
    );
    for (const call of calls) assert.ok(call.includes('sim-intended'), call);
    const responsesMax = attack.mayBeBrokenOff === true && closedByServer ? 2 : 1;
    assert.ok(statuses.length <= responsesMax, `${statuses.length} responses to one request: ${shown}`);
    for (const status of statuses) assert.ok(attack.statuses.includes(status), shown);
    if (attack.closes && statuses.length > 0)
      assert.ok(closedByServer, `the connection must not be used again: ${shown}`);
  }

  /** What was on the way on other connections before is with its handler, and its call at the provider, after this. */
  async function serveAnother(): Promise<void> {
    const answer = await httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${KEYS.free}` },
      body: ANOTHER_BODY,
    });
    assert.equal(answer.status, 200);
  }

  /** The bodies of calls that a connection under test may have caused. */
  function callsSince(before: number): string[] {
    const bodies = upstream.requests.slice(before).map((request) => request.body.toString('utf8'));
    return bodies.filter((body) => !body.includes(ANOTHER_MARK));
  }

  test('a request line in pieces is served or refused, never read as something else', async () => {
    const bytes = intendedPost();
    for (let at = 1; at < lineEnd(bytes); at += 1) {
      const before = upstream.requests.length;
      const { received } = await exchangeRaw(port, Buffer.from(bytes), { kind: 'two', at }, serveAnother);
      const [status, ...more] = finalStatuses(received);
      assert.ok((status === 200 || status === 505) && more.length === 0, `cut at ${at}: ${received}`);
      assert.equal(callsSince(before).length, status === 200 ? 1 : 0);
    }
  });

  test('a request line that is cut behind a body in chunks: one answer at most, and nothing of it is served', async () => {
    const attacks = FRAMING_ATTACKS.filter(({ name }) => /^a chunked body .*then a request$/.test(name));
    assert.equal(attacks.length, 2);
    for (const attack of attacks) {
      const version = attack.bytes.lastIndexOf('HTTP/1.1');
      for (let at = version; at < version + 10; at += 1) await withstand(attack, { kind: 'two', at });
    }
  });

  test('two requests on one connection, one after the other, are two', async () => {
    const before = upstream.requests.length;
    const first = await exchangeRaw(port, Buffer.from(intendedPost()), { kind: 'whole' }, serveAnother);
    assert.deepEqual(finalStatuses(first.received), [200]);
    assert.equal(first.closedByServer, false);
    assert.equal(callsSince(before).length, 1);
  });

  test('a pipelined second request is answered after the first or not at all', async () => {
    // A connection that is cut leaves a first call that reaches the provider when the next pair is already under way,
    // so each pair is marked.
    const body = (model: string, pair: string): string => JSON.stringify({ model, messages: [], user: pair });
    const served = new Map<string, number>();
    for (const [pair, splitOf] of SPLITS) {
      const bytes =
        intendedPost({ body: body('sim/intended', pair) }) + intendedPost({ body: body('sim/smuggled', pair) });
      const exchange: RawExchange = await exchangeRaw(port, Buffer.from(bytes), splitOf(bytes), serveAnother);
      const statuses = finalStatuses(exchange.received);
      assert.ok(statuses.length <= 2, JSON.stringify(exchange));
      if (statuses.length < 2) assert.ok(exchange.closedByServer, 'what is not answered is not left waiting');
      served.set(pair, statuses.filter((status) => status === 200).length);
    }
    // Answered on a connection of its own, so every call before it has reached the provider or never will.
    await httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${KEYS.free}` },
      body: INTENDED_BODY,
    });
    for (const [pair, answers] of served) {
      const calls = upstream.requests
        .map((request) => JSON.parse(request.body.toString('utf8')) as { model: string; user?: string })
        .filter((call) => call.user === pair);
      const models = calls.map((call) => call.model);
      assert.deepEqual(
        models,
        ['sim-intended', 'sim-smuggled'].slice(0, models.length),
        `${pair}: each at most once, in order`,
      );
      assert.ok(models.length >= answers, `${pair}: ${answers} answers, ${models.length} calls`);
    }
  });

  test('no connection is left waiting for ever', async () => {
    const before = upstream.requests.length;
    await Promise.all(waiting.map((exchange) => exchange.closed));
    for (const exchange of waiting) exchange.destroy();
    assert.equal(upstream.requests.length, before);
  });

  test('after all of it the gateway serves', async () => {
    const answer = await httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${KEYS.free}` },
      body: INTENDED_BODY,
    });
    assert.equal(answer.status, 200);
    assert.deepEqual(upstream.violations, []);
  });
});
