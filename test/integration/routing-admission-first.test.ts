// Admission before classification: a request for the virtual model that wallet, limits, access or a provider's pause
// would refuse for every candidate asks no classifier, calls no provider and leaves nothing held. Real sockets; wallets
// and limits are the test's.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Principal, PrincipalLimit } from '../../src/domain/identity/principal.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import {
  classifierAnswer,
  Gate,
  modelServedBy,
  PlaneInProcess,
  providerAt,
  VIRTUAL_MODEL,
} from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { priceOf } from '../support/real-bills.ts';
import { waitFor } from '../support/waiting.ts';

const CHAT = '/v1/chat/completions';
const REQUESTS = 60;
/** What a request of the cheapest candidate costs at most is less than this, and of the other one more. */
const ONE_CHEAP_REQUEST = 20_000_000n;

let count = 0;
/** Of a turn of its own. */
const body = (fields: object = {}): string => {
  count += 1;
  return JSON.stringify({
    model: VIRTUAL_MODEL,
    max_tokens: 1_000,
    ...fields,
    messages: [{ role: 'user', content: `a question of its own, number ${count}, to be judged` }],
  });
};

/** Of the dear model alone: a price for a service tier. */
const { terms = assert.fail() } = priceOf({ input: '1', output: '1', service_tiers: { flex: '0.5' } });
const TERMS = { terms };

function limit(id: string, kind: PrincipalLimit['kind'], amount: bigint): PrincipalLimit {
  return {
    id,
    scope: 'organization',
    kind,
    window: kind === 'budget' ? 'day' : null,
    amount,
    model: null,
    setBy: 'organization',
  };
}

describe('auto routing', () => {
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;
  const classifier = new Gate();
  const principals = new Map<string, Principal>([
    ['no-credit', principalOf('no-credit')],
    ['out-of-budget', principalOf('out-of-budget', { limits: [limit('spent-budget', 'budget', 5n)] })],
    [
      'out-of-requests',
      principalOf('out-of-requests', { limits: [limit('spent-requests', 'requests_per_minute', 5n)] }),
    ],
    ['no-access', principalOf('no-access', { allowedModels: new Set(['sim/other']) })],
    ['one-cheap', principalOf('one-cheap')],
    ['one-place', principalOf('one-place', { limits: [limit('one-place', 'concurrent_requests', 1n)] })],
    ['rich', principalOf('rich')],
  ]);

  before(async () => {
    upstream = await startFakeUpstream(async ({ path }) => {
      if (path !== '/v1/systemone') return { body: '{"id":"r","usage":{"prompt_tokens":3,"completion_tokens":2}}' };
      await classifier.pass();
      return { body: classifierAnswer('light') };
    });
    const provider = providerAt(upstream.url);
    const large = modelServedBy('sim/large', provider, { maxOutputTokens: 100_000 });
    const dear = large.servedBy.map((served) => ({
      ...served,
      price: served.price === null ? null : { ...served.price, output: (served.price.output ?? 0n) * 100n, ...TERMS },
    }));
    plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals,
      models: [modelServedBy('sim/small', provider), { ...large, servedBy: dear } as typeof large],
      amounts: new Map([
        ['wallet-of-no-credit', 0n],
        ['spent-budget', 0n],
        ['spent-requests', 0n],
        ['wallet-of-one-cheap', ONE_CHEAP_REQUEST],
        ['one-place', 1n],
      ]),
    });
  });

  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  const call = (key: string) => callRoute(plane.url + CHAT, { key, body: body() });
  const untilNothingIsUnderWay = () =>
    waitFor(
      'nothing to be under way',
      () => plane.underWay,
      (underWay) => Object.values(underWay).every((value) => value === 0),
    );

  for (const [key, status, code] of [
    ['no-credit', 402, 'insufficient_credit'],
    ['out-of-budget', 429, 'usage_limit_exceeded'],
    ['out-of-requests', 429, 'rate_limit'],
    ['no-access', 403, 'routing_denied'],
  ] as const) {
    test(`${REQUESTS} requests that are refused with ${code} ask nobody`, async () => {
      const [calls, records, refused] = [upstream.requests.length, plane.records, plane.refused.length];
      const answers = await Promise.all(Array.from({ length: REQUESTS }, () => call(key)));
      const isDear = status === 402 || code === 'usage_limit_exceeded';
      for (const answer of answers) {
        assert.equal(/what this request could cost: up to 0\.\d+ USD/.test(answer.body.toString()), isDear);
        assert.equal(answer.status, status);
        assert.ok(answer.body.includes(code), answer.body);
      }
      assert.equal(upstream.requests.length - calls, 0);
      assert.equal(plane.records - records, 0, 'nothing was admitted');
      await waitFor(
        'each to leave a record',
        () => plane.refused.length - refused,
        (count) => count === REQUESTS,
      );
      await untilNothingIsUnderWay();
    });
  }

  test(
    'a wallet that pays for the cheapest candidate alone asks about one ' + 'request at a time, and serves it',
    async () => {
      const { arrived } = classifier;
      classifier.shut();
      const first = call('one-cheap');
      await waitFor(
        'the classifier to be asked',
        () => classifier.arrived - arrived,
        (asked) => asked === 1,
      );
      // What the first needs is held while it is judged: the others are refused, and nobody is asked about them.
      const others = await Promise.all(Array.from({ length: REQUESTS }, () => call('one-cheap')));
      assert.deepEqual(new Set(others.map(({ status }) => status)), new Set([402]));
      assert.equal(classifier.arrived - arrived, 1);
      classifier.open();
      assert.equal((await first).status, 200);
      await untilNothingIsUnderWay();
    },
  );

  test('a request that is being judged takes its place among the open ones', async () => {
    const { arrived } = classifier;
    classifier.shut();
    const first = call('one-place');
    await waitFor(
      'the classifier to be asked',
      () => classifier.arrived - arrived,
      (asked) => asked === 1,
    );
    const second = await call('one-place');
    assert.deepEqual([second.status, second.body.includes('concurrency_limit')], [429, true]);
    classifier.open();
    assert.equal((await first).status, 200);
    assert.equal(classifier.arrived - arrived, 1);
    await untilNothingIsUnderWay();
    assert.equal((await call('one-place')).status, 200);
  });

  test('who can pay is asked about once a turn and served', async () => {
    const { arrived } = classifier;
    const answer = await call('rich');
    assert.deepEqual([answer.status, answer.headers['x-service-routed-model']], [200, 'sim/small']);
    assert.equal(classifier.arrived - arrived, 1);
    await untilNothingIsUnderWay();
  });

  test('a candidate without a price for the service tier that is named is passed over', async () => {
    const flex = await callRoute(plane.url + CHAT, { key: 'rich', body: body({ service_tier: 'flex' }) });
    assert.deepEqual([flex.status, flex.headers['x-service-routed-model']], [200, 'sim/large']);
    const scale = await callRoute(plane.url + CHAT, { key: 'rich', body: body({ service_tier: 'scale' }) });
    assert.deepEqual([scale.status, scale.body.includes('service_tier')], [422, true]);
    await untilNothingIsUnderWay();
  });

  test('what a request continues is not looked up where the wallet would refuse it whatever that is', async () => {
    const { arrived } = plane.gates.continuation;
    const continued = JSON.stringify({
      model: 'sim/small',
      input: 'go on',
      max_output_tokens: 10,
      previous_response_id: 'resp_1',
    });
    for (let round = 0; round < 5; round += 1) {
      assert.equal((await callRoute(`${plane.url}/v1/responses`, { key: 'no-credit', body: continued })).status, 402);
    }
    assert.equal(plane.gates.continuation.arrived, arrived);
    await untilNothingIsUnderWay();
  });
});
