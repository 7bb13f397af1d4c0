// Spec 7.7: what is screened, place by place: every text of a request of every API, and the texts of replies, under
// each action. A row is a place; of each it is shown what the provider gets, what the client gets, and what both are
// told about it.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { MODELS_OF_KINDS } from '../support/generation-routes.ts';
import { emptyReply, TEXT_PLACES, TEXT_REPLIES } from '../support/guardrail-places.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const GUARDRAILS = `guardrails:
  - name: main
    rules:
      - { id: doors, words: [plantedsesame], stage: both, action: block }
      - { id: internal, words: [plantedfalcon], stage: both, action: mask, label: "[internal]" }
      - { id: people, detect: [email], stage: input, action: cloak }
      - { id: cards, detect: [card], stage: both, action: flag }
`;
const VALUES = {
  block: 'plantedsesame',
  mask: 'plantedfalcon',
  cloak: 'ada@acme.example',
  flag: '4111 1111 1111 1111',
} as const;
const PLACEHOLDER = /TGE\d{12}/;

let upstream: FakeUpstream;
let front: Front;
let reply: (body: string) => ScriptedReply;
before(async () => {
  upstream = await startFakeUpstream(({ body }) => reply(body.toString()));
  const yaml = testConfiguration({ upstreamUrl: upstream.url, models: MODELS_OF_KINDS });
  const guarded = yaml.replace('  - slug: acme\n', '  - slug: acme\n    guardrails: { policy: main }\n');
  front = await startFront({ configurationYaml: `${GUARDRAILS}${guarded}` });
});
after(async () => {
  await front?.stop();
  await upstream?.close();
});

/** What the client gets, what was told of it, and what the provider was sent; null: it was not asked. */
async function ask(path: string, body: object) {
  const asked = upstream.requests.length;
  const headers = { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' };
  const answer: HttpAnswer = await httpCall(`${front.url}${path}`, {
    headers: { ...headers, 'anthropic-version': '2023-06-01' },
    body: JSON.stringify(body),
    isOffFormat: true,
  });
  return {
    status: answer.status,
    text: answer.body.toString(),
    told: [answer.headers['x-service-guardrail'], answer.headers['x-service-guardrail-count']].join(' '),
    sent: upstream.requests.length === asked ? null : (upstream.requests.at(-1)?.body.toString() ?? null),
  };
}

describe('a request', () => {
  for (const { path, name, body } of TEXT_PLACES)
    test(`${path}, ${name}: blocked, masked, cloaked, flagged`, async () => {
      reply = () => emptyReply(path);
      const say = (value: string) => ask(path, body(`about ${value} now`));

      const blocked = await say(VALUES.block);
      assert.deepEqual([blocked.status, blocked.sent, blocked.told], [400, null, 'blocked 1'], blocked.text);
      assert.match(blocked.text, /"guardrail":\{"policy":"main","rule":"doors","entity":"words","stage":"input"\}/);
      assert.ok(!blocked.text.includes(VALUES.block));

      const masked = await say(VALUES.mask);
      assert.deepEqual([masked.status, masked.told], [200, 'masked 1'], masked.text);
      assert.ok(masked.sent?.includes('about [internal] now') === true, masked.sent ?? '');

      const cloaked = await say(VALUES.cloak);
      assert.deepEqual([cloaked.status, cloaked.told], [200, 'cloaked 1'], cloaked.text);
      assert.match(cloaked.sent ?? '', /about TGE\d{12} now/);

      const flagged = await say(VALUES.flag);
      assert.deepEqual([flagged.status, flagged.told], [200, 'flagged 1'], flagged.text);
      assert.ok(flagged.sent?.includes(VALUES.flag) === true);
    });
});

describe('a reply', () => {
  for (const { path, name, request, reply: replyOf } of TEXT_REPLIES) {
    const isStream = name === 'streamed';
    test(`${path}, ${name}: blocked, masked, restored, flagged`, async () => {
      const say = (value: string) => {
        reply = () => replyOf(`about ${value} now`);
        return ask(path, request('hi'));
      };
      const blocked = await say(VALUES.block);
      assert.deepEqual([blocked.status, blocked.told], isStream ? [200, 'none 0'] : [400, 'blocked 1'], blocked.text);
      assert.match(blocked.text, /"guardrail":\{"policy":"main","rule":"doors","entity":"words","stage":"output"\}/);
      assert.ok(!blocked.text.includes('sesame'));

      const masked = await say(VALUES.mask);
      assert.deepEqual([masked.status, masked.told], [200, isStream ? 'none 0' : 'masked 1'], masked.text);
      assert.ok(!masked.text.includes('falcon') && masked.text.includes('[internal]'), masked.text);

      const flagged = await say(VALUES.flag);
      assert.deepEqual([flagged.status, flagged.told], [200, isStream ? 'none 0' : 'flagged 1'], flagged.text);
      assert.equal(flagged.text, replyOf(`about ${VALUES.flag} now`).body);

      reply = (sent) => replyOf(`about ${PLACEHOLDER.exec(sent)?.[0] ?? 'nobody'} now`);
      const restored = await ask(path, request(`to ${VALUES.cloak}`));
      assert.deepEqual([restored.status, restored.told], [200, 'cloaked 1'], restored.text);
      assert.ok(restored.text.includes(VALUES.cloak) && !PLACEHOLDER.test(restored.text), restored.text);
    });
  }

  test('of an API without texts in its replies is what it was', async () => {
    for (const path of ['/v1/messages/count_tokens', '/v1/embeddings']) {
      const place = TEXT_PLACES.find((one) => one.path === path);
      assert.ok(place !== undefined);
      reply = () => emptyReply(path);
      const got = await ask(path, place.body('hi'));
      assert.deepEqual([got.status, got.told, got.text], [200, 'none 0', emptyReply(path).body]);
    }
  });
});
