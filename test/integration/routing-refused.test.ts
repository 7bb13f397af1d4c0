// A request for the virtual model that is refused when its model is chosen already: the answer and the record say
// which one it was, and why (spec 2.4, 4.11). What is refused for every model asks no classifier, and a paused model is
// passed over while another can serve. Real sockets; wallets and the classifier's answers are the test's.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Principal } from '../../src/domain/identity/principal.ts';
import type { RouteDecision } from '../../src/domain/routing/decide-route.ts';
import type { TurnStore } from '../../src/generation/routing/turn-store.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import {
  classifierAnswer,
  modelServedBy,
  PlaneInProcess,
  providerAt,
  VIRTUAL_MODEL,
} from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { waitFor } from '../support/waiting.ts';

/** What a request of the cheap model costs at most is less than this, and of the dear one more. */
const ONE_CHEAP_REQUEST = 20_000_000n;

let count = 0;
/** Of a turn of its own. */
const saying = (fields: object = {}): string => {
  count += 1;
  const messages = [{ role: 'user', content: `a question of its own, number ${count}, to be judged` }];
  return JSON.stringify({ model: VIRTUAL_MODEL, max_tokens: 1_000, messages, ...fields });
};

describe('a request that is refused behind its route', () => {
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;
  const principals = new Map<string, Principal>([
    ['one-cheap', principalOf('one-cheap')],
    ['rich', principalOf('rich')],
    ['no-access', principalOf('no-access', { allowedModels: new Set(['sim/other']) })],
  ]);

  before(async () => {
    upstream = await startFakeUpstream(async ({ path }) => ({
      body: path === '/v1/systemone' ? classifierAnswer('strong') : '{"id":"r","usage":{"prompt_tokens":3}}',
    }));
    const provider = providerAt(upstream.url);
    const large = modelServedBy('sim/large', provider, { maxOutputTokens: 100_000 });
    const dear = large.servedBy.map((served) => ({
      ...served,
      apis: ['chat_completions'] as const,
      price: served.price === null ? null : { ...served.price, output: (served.price.output ?? 0n) * 100n },
    }));
    plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals,
      models: [modelServedBy('sim/small', provider), { ...large, servedBy: dear } as typeof large],
      amounts: new Map([['wallet-of-one-cheap', ONE_CHEAP_REQUEST]]),
    });
  });

  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  const recordOf = (id: unknown): Promise<TerminalRecord | undefined> =>
    waitFor(
      'the record',
      () => plane.refused.find((record) => record.id === id),
      (record) => record !== undefined,
    );

  for (const [title, key, path, status] of [
    ['for credit', 'one-cheap', '/v1/chat/completions', 402],
    ['since the model does not serve the API', 'rich', '/v1/messages', 400],
  ] as const) {
    test(`${title}: the header and the record name the model, and the record why`, async () => {
      const answer = await callRoute(plane.url + path, { key, body: saying() });
      assert.deepEqual([answer.status, answer.headers['x-service-routed-model']], [status, 'sim/large'], answer.body);
      const record = await recordOf(answer.headers['x-service-execution-id']);
      assert.deepEqual([record?.model, record?.requestedModel, record?.provider], ['sim/large', VIRTUAL_MODEL, '']);
      const { requested, tier, reason, cached, classifier } = record?.route ?? assert.fail('the route is missing');
      assert.deepEqual([requested, tier, reason, cached], [VIRTUAL_MODEL, 'strong', 'classified', false]);
      assert.deepEqual([classifier?.model, classifier?.input_tokens], ['sim/judge', 10]);
    });
  }

  for (const [title, status, fields] of [
    ['names an object stored at a provider', 400, { prompt: { id: 'pmpt_1' } }],
    [
      'refers to an item that is not known',
      400,
      {
        input: [
          { role: 'user', content: 'go on from there' },
          { type: 'item_reference', id: 'msg_1' },
        ],
      },
    ],
    ['continues a response that is not known', 404, { previous_response_id: 'resp_1' }],
  ] as const) {
    test(`what ${title} is refused for every model, so no classifier is asked`, async () => {
      const { length } = upstream.requests;
      const own = { messages: undefined, max_tokens: undefined, max_output_tokens: 1_000, input: `number ${count}` };
      const body = saying({ ...own, ...fields });
      const answer = await callRoute(`${plane.url}/v1/responses`, { key: 'rich', body });
      assert.deepEqual([answer.status, answer.headers['x-service-routed-model']], [status, undefined], answer.body);
      assert.equal(upstream.requests.length, length);
      assert.equal((await recordOf(answer.headers['x-service-execution-id']))?.route ?? null, null);
    });
  }

  test('one that is refused before has neither', async () => {
    const answer = await callRoute(`${plane.url}/v1/chat/completions`, { key: 'no-access', body: saying() });
    assert.equal(answer.status, 403, answer.body);
    const route = (await recordOf(answer.headers['x-service-execution-id']))?.route ?? null;
    assert.deepEqual([answer.headers['x-service-routed-model'], route], [undefined, null]);
  });
});

describe('a model that its provider has paused', () => {
  const LIMITED = { status: 429, headers: [['retry-after', '600']] as const, body: '{"error":{"message":"slow"}}' };
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;
  let limited: readonly string[] = [];

  before(async () => {
    upstream = await startFakeUpstream(async ({ path, body }) => {
      if (path === '/v1/systemone') return { body: classifierAnswer('light') };
      const { model } = JSON.parse(body.toString()) as { model: string };
      return limited.includes(model) ? LIMITED : { body: '{"id":"r","usage":{"prompt_tokens":3}}' };
    });
    const principals = new Map([['rich', principalOf('rich')]]);
    plane = await PlaneInProcess.start({ providerUrl: upstream.url, principals });
  });

  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  const ask = (body: string) => callRoute(`${plane.url}/v1/chat/completions`, { key: 'rich', body });

  test('serves no new turn while another can, and keeps its own; where none can, it says how long to wait', async () => {
    const begun = saying();
    assert.equal((await ask(begun)).headers['x-service-routed-model'], 'sim/small');
    limited = ['sim/small'];
    assert.equal((await ask(saying())).status, 429, 'its provider says so');

    const served = await ask(saying());
    assert.deepEqual([served.status, served.headers['x-service-routed-model']], [200, 'sim/large']);
    const end = await waitFor(
      'the record',
      () => plane.ends.find(({ id }) => id === served.headers['x-service-execution-id']),
      (record) => record !== undefined,
    );
    assert.deepEqual(end?.route?.rejected, [{ model: 'sim/small', tier: 'light', reason: 'paused' }]);
    const again = await ask(begun);
    assert.deepEqual([again.status, again.headers['x-service-routed-model']], [429, 'sim/small']);
    assert.ok(again.body.includes('upstream_cooldown'), again.body);

    limited = ['sim/small', 'sim/large'];
    assert.equal((await ask(saying())).status, 429, 'the other one is paused, too');
    const { length } = upstream.requests;
    const none = await ask(saying());
    assert.deepEqual([none.status, none.headers['x-service-routed-model']], [429, undefined]);
    assert.ok(none.body.includes('upstream_cooldown') && Number(none.headers['retry-after']) > 0, none.body);
    assert.equal(upstream.requests.length, length, 'and nobody was asked');
  });
});

/** All turns have one decision, once there is one. */
class OneDecision implements TurnStore {
  decision: RouteDecision | null = null;

  async claim(): ReturnType<TurnStore['claim']> {
    return { ...(await this.find()), claimed: this.decision === null };
  }

  async find(): ReturnType<TurnStore['find']> {
    return { decision: this.decision, claimedAgoMs: this.decision === null ? null : 0, previous: null };
  }

  async decide(_: unknown, decision: RouteDecision): Promise<null> {
    this.decision = decision;
    return null;
  }

  async release(): Promise<void> {}
}

test('a turn keeps a model that the policy no longer names, also for what only that one may read', async () => {
  const upstream = await startFakeUpstream(async ({ path }) => ({
    body: path === '/v1/systemone' ? classifierAnswer('light') : '{"id":"r","usage":{"input_tokens":3}}',
  }));
  const provider = providerAt(upstream.url);
  const shared = { ...providerAt(upstream.url, 'old'), storedObjects: 'shared' } as const;
  const turns = new OneDecision();
  const plane = await PlaneInProcess.start({
    providerUrl: upstream.url,
    principals: new Map([['rich', principalOf('rich')]]),
    turns,
    models: [
      modelServedBy('sim/small', provider),
      modelServedBy('sim/large', provider),
      modelServedBy('sim/old', shared),
    ],
  });
  try {
    const ask = (fields: object) => {
      const input = 'a question that is long enough to be a conversation';
      const body = JSON.stringify({ model: VIRTUAL_MODEL, max_output_tokens: 100, input, ...fields });
      return callRoute(`${plane.url}/v1/responses`, { key: 'rich', body });
    };
    assert.equal((await ask({})).headers['x-service-routed-model'], 'sim/small');
    turns.decision = { ...(turns.decision ?? assert.fail('nothing was decided')), model: 'sim/old' };
    const answer = await ask({ input: 'another question that is long enough for one', prompt: { id: 'pmpt_1' } });
    assert.deepEqual([answer.status, answer.headers['x-service-routed-model']], [200, 'sim/old'], answer.body);
  } finally {
    await plane.stop();
    await upstream.close();
  }
});
