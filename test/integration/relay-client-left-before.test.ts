// A client that leaves while something is looked up for its request is not served: no provider is called, nothing is
// recorded and nothing stays held, whichever look-up it was. Real sockets; the stores are the test's, and answer when
// it lets them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import { classifierAnswer, Gate, PlaneInProcess, sendAndHold, VIRTUAL_MODEL } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { pause, waitFor } from '../support/waiting.ts';

const CHAT = '/v1/chat/completions';
const RESPONSES = '/v1/responses';
const ROUNDS = 10;
const CLASSIFIED: readonly string[] = Array(ROUNDS).fill('/v1/systemone');

const chatBody = (model: string, words = 'hello there, how are you today?'): string =>
  JSON.stringify({ model, max_tokens: 10, messages: [{ role: 'user', content: words }] });

interface Case {
  readonly name: string;
  readonly gate: keyof PlaneInProcess['gates'];
  readonly path: string;
  /** By the number of the round. */
  readonly body: (round: number) => string | null;
  /** By the number of the round; else one that is warm. */
  readonly key?: (round: number) => string;
  /** How many look-ups that makes; else one each round. */
  readonly lookUps?: number;
  /** The classifier has been asked before. */
  readonly isClassified?: true;
}

const CASES: readonly Case[] = [
  {
    name: 'its credential',
    gate: 'credential',
    path: CHAT,
    body: () => chatBody('sim/small'),
    // One for all clients of a test.
    key: (round) => `key-cold-${Math.floor(round / ROUNDS)}`,
    lookUps: 1,
  },
  {
    name: 'its lease',
    gate: 'lease',
    path: CHAT,
    body: () => chatBody('sim/small'),
    key: (round) => `key-lease-${round}`,
  },
  {
    name: 'what it continues',
    gate: 'continuation',
    path: RESPONSES,
    body: (round) =>
      JSON.stringify({
        model: 'sim/small',
        input: 'go on',
        max_output_tokens: 10,
        previous_response_id: `resp_${round}`,
      }),
    // Of one organization so many are looked up at a time.
    lookUps: 2,
  },
  {
    name: 'the route of its turn',
    gate: 'route',
    path: CHAT,
    body: (round) => chatBody(VIRTUAL_MODEL, `a turn of its own, number ${round}, all new`),
  },
  {
    name: 'what became of the route of its turn',
    gate: 'decidedRoute',
    path: CHAT,
    body: (round) => chatBody(VIRTUAL_MODEL, `a turn to be written down, number ${round}, all new`),
    isClassified: true,
  },
  {
    name: 'its lease, before it is routed',
    gate: 'lease',
    path: CHAT,
    body: (round) => chatBody(VIRTUAL_MODEL, `a turn to be paid for, number ${round}, all new`),
    key: (round) => `key-lease-of-a-turn-${round}`,
  },
  {
    name: 'its lease, before it is classified alone',
    gate: 'lease',
    path: CHAT,
    body: (round) => chatBody(VIRTUAL_MODEL, `hi ${round}`),
    key: (round) => `key-lease-of-a-word-${round}`,
  },
  {
    name: 'its exact count',
    gate: 'counting',
    path: CHAT,
    body: () => chatBody('sim/small', 'word '.repeat(400)),
    key: (round) => `key-near-the-edge-${round}`,
  },
];

/** Resolves within the tick that finds a socket ready. */
async function socketReady(): Promise<void> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  const connected = Promise.withResolvers<void>();
  socket.on('connect', () => connected.resolve());
  await connected.promise;
  socket.destroy();
  server.close();
}

describe('a client that leaves while something is looked up', () => {
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;
  const classifier = new Gate();
  const principals = new Map<string, Principal>([
    ['key-warm', principalOf('warm')],
    ['key-cold-0', principalOf('warm')],
    ['key-cold-1', principalOf('warm')],
    ['key-colder', principalOf('colder')],
  ]);
  for (let round = 0; round < 2 * ROUNDS; round += 1) {
    const names = ['lease', 'lease-of-a-turn', 'lease-of-a-word', 'near-the-edge'].map((name) => `${name}-${round}`);
    for (const name of names) principals.set(`key-${name}`, principalOf(name));
  }

  before(async () => {
    upstream = await startFakeUpstream(async ({ path }) => {
      if (path !== '/v1/systemone') return { body: '{"id":"r","usage":{"prompt_tokens":3,"completion_tokens":2}}' };
      await classifier.pass();
      return { body: classifierAnswer('light') };
    });
    // Enough for the text's tokens, not for a token for each of its bytes.
    const amounts = new Map(
      Array.from({ length: 2 * ROUNDS }, (_, round) => [`wallet-of-near-the-edge-${round}`, 1_000_000n]),
    );
    plane = await PlaneInProcess.start({ providerUrl: upstream.url, principals, amounts });
    plane.savedResponse = { provider: 'upstream', ownKeyId: null, model: 'sim/small', inputTokens: 1, outputTokens: 1 };
    // Known from here on, without a lease: nothing is leased for a saved response.
    for (const key of [...principals.keys()].filter((name) => !name.includes('cold'))) {
      assert.equal((await callRoute(`${plane.url}${RESPONSES}/not%20an%20id`, { method: 'GET', key })).status, 404);
    }
  });

  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  const nothing = { inflight: 0, relays: 0, buffers: 0, held: 0 };
  const untilNothingIsUnderWay = (): Promise<unknown> =>
    waitFor(
      'nothing to be under way',
      () => plane.underWay,
      (underWay) => JSON.stringify(underWay) === JSON.stringify(nothing),
    );
  const callsSince = (count: number): string[] => upstream.requests.slice(count).map(({ path }) => path);

  /** The next request of somebody who stays is the first that a provider sees. */
  async function assertUnserved(
    callsBefore: number,
    recordsBefore: number,
    expected: readonly string[] = [],
  ): Promise<void> {
    await untilNothingIsUnderWay();
    const answer = await callRoute(plane.url + CHAT, { key: 'key-warm', body: chatBody('sim/small') });
    assert.equal(answer.status, 200);
    assert.deepEqual(callsSince(callsBefore), [...expected, CHAT]);
    await untilNothingIsUnderWay();
    assert.equal(plane.records - recordsBefore, 2, 'the start and the end of the one that stayed');
  }

  /** Clients whose requests all wait at the gate of their case. */
  async function waitAtGate(one: Case, firstRound: number): Promise<ReturnType<typeof sendAndHold>[]> {
    const { gate: gateName, path, body, key = () => 'key-warm', lookUps = ROUNDS } = one;
    const gate = plane.gates[gateName];
    const { arrived } = gate;
    gate.shut();
    const rounds = Array.from({ length: ROUNDS }, (_, index) => firstRound + index);
    const clients = rounds.map((round) => sendAndHold(plane.port, path, key(round), body(round)));
    await waitFor(
      'all to wait for it',
      () => [gate.arrived - arrived, plane.openExchanges],
      ([waiting = 0, open]) => waiting >= lookUps && open === ROUNDS,
    );
    return clients;
  }

  for (const one of CASES) {
    test(`${one.name}: nothing is sent, recorded or held, in ${ROUNDS} of ${ROUNDS}`, async () => {
      await callRoute(plane.url + CHAT, { key: 'key-warm', body: chatBody('sim/small') });
      await untilNothingIsUnderWay();
      const [calls, records] = [upstream.requests.length, plane.records];
      const clients = await waitAtGate(one, 0);
      for (const client of clients) client.leave();
      await waitFor(
        'the gateway to see that they left',
        () => plane.openExchanges,
        (open) => open === 0,
      );
      plane.gates[one.gate].open();
      await assertUnserved(calls, records, one.isClassified ? CLASSIFIED : []);
    });

    test(`${one.name}: nor where their ends lie unread when it comes, and a provider’s connection is free`, async () => {
      await callRoute(plane.url + CHAT, { key: 'key-warm', body: chatBody('sim/small') });
      await untilNothingIsUnderWay();
      const [calls, records] = [upstream.requests.length, plane.records];
      const clients = await waitAtGate(one, ROUNDS);
      // Here the sockets that are ready were gathered: what comes now is read in the tick behind this one.
      await socketReady();
      for (const [index, client] of clients.entries()) {
        if (index % 2 === 0) client.leave();
        else client.end();
      }
      plane.gates[one.gate].open();
      await assertUnserved(calls, records, one.isClassified ? CLASSIFIED : []);
    });
  }

  test('the classifier’s answer: it is asked, and nobody else is', async () => {
    const [calls, records, arrived] = [upstream.requests.length, plane.records, classifier.arrived];
    classifier.shut();
    const clients = Array.from({ length: ROUNDS }, (_, round) =>
      sendAndHold(plane.port, CHAT, 'key-warm', chatBody(VIRTUAL_MODEL, `classify me, ${round}, please do`)),
    );
    await waitFor(
      'the classifier to be asked',
      () => classifier.arrived - arrived,
      (count) => count === ROUNDS,
    );
    for (const client of clients) client.leave();
    await waitFor(
      'the gateway to see that they left',
      () => plane.openExchanges,
      (open) => open === 0,
    );
    classifier.open();
    await assertUnserved(calls, records, CLASSIFIED);
  });

  test('a saved response: its provider is not asked for it', async () => {
    const calls = upstream.requests.length;
    for (const [gateName, key] of [
      ['credential', 'key-colder'],
      ['continuation', 'key-warm'],
    ] as const) {
      const gate = plane.gates[gateName];
      const { arrived } = gate;
      const lookedUp = plane.gates.continuation.arrived;
      gate.shut();
      const client = sendAndHold(plane.port, `${RESPONSES}/resp_saved`, key, null);
      await waitFor(
        'it to wait',
        () => gate.arrived - arrived,
        (count) => count === 1,
      );
      client.leave();
      await waitFor(
        'the gateway to see that it left',
        () => plane.openExchanges,
        (open) => open === 0,
      );
      gate.open();
      await pause(20);
      if (gateName === 'credential')
        assert.equal(plane.gates.continuation.arrived, lookedUp, 'nothing is looked up for somebody who has left');
    }
    await untilNothingIsUnderWay();
    assert.deepEqual(callsSince(calls), []);
  });
});
