// Spec 4.11 without an evaluation provider: a chat model that tells log-probabilities classifies (`via: logprobs`), and
// so does a server that speaks /v1/systemone and wants no credential.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { ModelRoute } from '../../src/domain/routing/model-route.ts';
import type { ReceivedRequest } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import { ROUTING_KEYS, type RoutingInstallation, startRoutingInstallation } from '../support/routing-installation.ts';
import { decimalOfPico } from '../support/test-configuration.ts';

const user = (text: string): object => ({ role: 'user', content: text });
const judged = (words: string): string => `[[sim/logprobs: ${words}]]`;

let routing: RoutingInstallation;
before(async () => {
  routing = await startRoutingInstallation({ clickhouse: 'away' });
});
after(() => routing?.stop());

interface Classified {
  readonly model: string | null;
  readonly route: ModelRoute;
  /** What the classifier's provider was sent for it. */
  readonly sent: readonly ReceivedRequest[];
}

async function classify(key: string, ...messages: readonly object[]): Promise<Classified> {
  const before = routing.upstream.requests.length;
  const answer = await routing.ask({ key, headers: { 'x-session-id': randomUUID() }, body: { messages } });
  assert.equal(answer.status, 200, answer.body);
  const sent = routing.upstream.requests.slice(before).filter(({ path }) => path.startsWith('/local/'));
  return { model: answer.model, route: await routing.routeOf(answer.executionId), sent };
}

describe('a chat model that tells log-probabilities', () => {
  const lettered = (...messages: readonly object[]) => classify(ROUTING_KEYS.lettered, ...messages);

  test('judges tier and kind, each in a call of one token, without a credential', async () => {
    const { model, route, sent } = await lettered(user(`Fix the loop. ${judged('tier=light:0.9 kind=code:0.8')}`));
    assert.deepEqual(
      [model, route.reason, route.tier, route.task, route.picked_by],
      ['sim/coder', 'classified', 'light', 'code', 'strength'],
    );
    assert.deepEqual(route.distribution, { light: 0.9, strong: 0.1 });
    assert.equal(route.confidence, 0.8);
    assert.deepEqual(
      sent.map((request) => [request.path, request.header('authorization'), request.header('x-api-key')]),
      Array.from({ length: 2 }, () => ['/local/v1/chat/completions', null, null]),
    );
    for (const { body } of sent) {
      const {
        model: asked,
        messages,
        ...settings
      } = JSON.parse(body.toString('utf8')) as { model: string; messages: readonly { content: string }[] };
      assert.deepEqual(
        [asked, settings],
        ['chat-judge', { max_tokens: 1, temperature: 1, logprobs: true, top_logprobs: 20 }],
      );
      assert.deepEqual(Object.values(JSON.parse(messages.at(-1)?.content ?? '') as object), [
        `Fix the loop. ${judged('tier=light:0.9 kind=code:0.8')}`,
      ]);
    }
  });

  test('its tokens and price are those of all its calls', async () => {
    const { route, sent } = await lettered(user(`What does it cost? ${judged('tier=strong')}`));
    const tokens = sent.reduce((sum, { body }) => {
      const { messages } = JSON.parse(body.toString('utf8')) as { messages: readonly { content: string }[] };
      return sum + Math.ceil(messages.reduce((bytes, { content }) => bytes + Buffer.byteLength(content), 0) / 4);
    }, 0);
    assert.equal(route.classifier?.model, 'sim/lettered');
    assert.equal(route.classifier?.input_tokens, tokens);
    // The fee of the price is one for each call.
    const cost = BigInt(tokens) * 150_000n + BigInt(sent.length) * (600_000n + 1_000_000n);
    assert.deepEqual([sent.length, route.classifier?.cost_usd], [2, decimalOfPico(cost)]);
  });

  test('judges whether a follow-up corrects the previous answer', async () => {
    const opening = user(`What is the capital of Australia, after all? ${judged('tier=light:0.95 kind=prose')}`);
    const headers = { 'x-session-id': randomUUID() };
    const key = ROUTING_KEYS.lettered;
    const first = await routing.ask({ key, headers, body: { messages: [opening] } });
    assert.equal(first.model, 'sim/small', first.body);
    const followUp = user(`No. ${judged('tier=light:0.95 correction=0.9')}`);
    const next = await routing.ask({
      key,
      headers,
      body: { messages: [opening, { role: 'assistant', content: 'Sydney.' }, followUp] },
    });
    const route = await routing.routeOf(next.executionId);
    assert.deepEqual([route.reason, route.correction_probability, route.tier], ['correction_escalated', 0.9, 'strong']);
  });

  test('without an answer about the tier it has failed; another question costs only its own answer', async () => {
    const failures: readonly [string, string][] = [
      ['an error', 'status=503'],
      ['another word', 'tier=enormous'],
      ['a reply that breaks off', 'cut_after=10'],
    ];
    for (const [title, words] of failures) {
      const { route, model } = await lettered(user(`What is wrong, then? ${judged(words)}`));
      assert.deepEqual([route.reason, model], ['classifier_failed', 'sim/large'], title);
    }
    const { route } = await lettered(user(`What is wrong, then? ${judged('tier=light kind=juggling')}`));
    assert.deepEqual([route.reason, route.tier, route.task], ['classified', 'light', undefined]);
  });

  test('is on no endpoint, and in no list', async () => {
    const key = ROUTING_KEYS.acme;
    const question = { state: 'Hello', questions: { q: { type: 'noul' } } };
    const ask = (path: string, fields: object) =>
      callRoute(routing.tollgate.url + path, { key, body: JSON.stringify({ model: 'sim/lettered', ...fields }) });
    const evaluated = await ask('/v1/systemone', question);
    assert.equal(evaluated.status, 400, evaluated.body);
    assert.match(evaluated.body, /invalid_request_error.*\\"sim\/lettered\\" is not served on this endpoint/);
    assert.equal((await ask('/v1/chat/completions', { messages: [user('Hello')], max_tokens: 1 })).status, 400);
    for (const path of ['/v1/models', '/v1/models/providers']) {
      assert.doesNotMatch((await callRoute(routing.tollgate.url + path, { method: 'GET', key })).body, /sim\/lettered/);
    }
  });
});

test('an evaluation model whose answer is no tier of the policy has failed, and what it used is told', async () => {
  const { route } = await classify(ROUTING_KEYS.acme, user('What is wrong, then? [[sim/systemone: tier=enormous]]'));
  const { input_tokens: tokens, cost_usd: cost } = route.classifier ?? {};
  assert.equal(route.reason, 'classifier_failed');
  assert.ok(typeof tokens === 'number' && tokens > 0);
  assert.equal(cost, decimalOfPico(BigInt(tokens) * 42_000n));
});

test('a server without a credential that speaks /v1/systemone', async () => {
  const { model, route, sent } = await classify(
    ROUTING_KEYS.local,
    user('Tell me a joke. [[sim/systemone: tier=light:0.95 kind=prose]]'),
  );
  assert.deepEqual(
    [model, route.reason, route.classifier?.model, route.classifier?.cost_usd],
    ['sim/small', 'classified', 'sim/local-judge', null],
  );
  assert.deepEqual(
    sent.map((request) => [request.path, request.header('authorization')]),
    [['/local/v1/systemone', null]],
  );
});
