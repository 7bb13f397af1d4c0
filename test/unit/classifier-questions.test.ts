// What the classifier is asked and how its answer is read; above all, that nothing but human texts and the policy's
// words can reach it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { buildClassifierRequest, readClassifierAnswer } from '../../src/domain/routing/classifier-questions.ts';
import type { RoutingPolicy } from '../../src/domain/routing/routing-policy.ts';
import { CONVERSATION_APIS, prepare, recordedRequest, renderConversation } from '../support/conversations.ts';

const POLICY: RoutingPolicy = {
  name: 'default',
  version: 3,
  classifier: { model: 'sim/judge-latest', timeoutMs: 800, confidenceFloor: 0.6 },
  tiers: [
    { name: 'light', description: 'Small talk', models: [{ id: 'a', strengths: ['code'] }] },
    { name: 'strong', description: '', models: [{ id: 'b', strengths: [] }] },
  ],
  fallbackTier: 'strong',
  kinds: [{ name: 'code', description: 'Writing or repairing code' }],
  followUp: { corrections: true, threshold: 0.7 },
  sticky: null,
  preferNativeApi: false,
};
const NO_KINDS: RoutingPolicy = { ...POLICY, kinds: [] };

describe('what is asked', () => {
  const ask = (humanTexts: readonly string[], askCorrection = false, policy = POLICY) =>
    buildClassifierRequest(policy, { humanTexts }, { askCorrection });

  test('the latest text last, under names that say which is which', () => {
    assert.deepEqual(Object.entries(ask(['a']).state), [['latest_message', 'a']]);
    const three = [
      ['message_before_previous', 'a'],
      ['previous_message', 'b'],
      ['latest_message', 'c'],
    ];
    assert.deepEqual(Object.entries(ask(['a', 'b', 'c']).state), three);
  });

  test('a tier, cheapest first, with the descriptions there are', () => {
    const { tier } = ask(['a']).questions;
    assert.equal(tier?.type, 'choice');
    assert.deepEqual(Object.entries(tier?.criteria ?? {}), [
      ['light', 'Small talk'],
      ['strong', null],
    ]);
  });

  test('a kind when the policy names some, a correction when it is asked for', () => {
    assert.deepEqual(Object.keys(ask(['a']).questions), ['tier', 'kind']);
    assert.deepEqual(Object.keys(ask(['a'], true).questions), ['tier', 'kind', 'correction']);
    assert.deepEqual(Object.keys(ask(['a'], true, NO_KINDS).questions), ['tier', 'correction']);
    assert.deepEqual(Object.keys(ask(['a'], false, NO_KINDS).questions), ['tier']);
    assert.deepEqual(ask(['a']).questions['kind']?.criteria, { code: 'Writing or repairing code' });
    assert.equal(ask(['a'], true).questions['correction']?.type, 'noul');
  });

  test('a tier may have the name of anything', () => {
    const tiers = ['__proto__', 'constructor', 'toString'].map((name) => ({ name, description: name, models: [] }));
    const written = JSON.stringify(ask(['a'], false, { ...POLICY, tiers }).questions['tier']?.criteria);
    assert.equal(written, '{"__proto__":"__proto__","constructor":"constructor","toString":"toString"}');
  });
});

describe('nothing else is asked', () => {
  const asked = (body: unknown, api: Parameters<typeof prepare>[0]): string =>
    JSON.stringify(buildClassifierRequest(POLICY, prepare(api, body), { askCorrection: true }));

  test('no system prompt, tool result, attachment, key, session or identity, in any dialect', () => {
    const secret = fc.nat().map((number) => `secret-${number}`);
    fc.assert(
      fc.property(fc.constantFrom(...CONVERSATION_APIS), secret, (api, text) => {
        const fields = {
          metadata: { user_id: text, key: text },
          user: text,
          safety_identifier: text,
          prompt_cache_key: text,
          previous_response_id: text,
          api_key: text,
          system: text,
          instructions: text,
          tools: [{ type: 'function', name: text, description: text, parameters: { description: text } }],
        };
        const attachment = [
          { type: 'image_url', image_url: { url: text } },
          { type: 'input_file', filename: text, file_data: text },
          { type: 'document', title: text, source: { type: 'text', data: text } },
          { type: 'tool_result', content: [{ type: 'text', text }] },
          { type: 'text', text: `<system-reminder>${text}</system-reminder>` },
          { type: 'text', text: 'human', citations: [text], id: text },
        ];
        const steps = [
          { by: 'user', texts: ['human'] },
          { by: 'tool', result: text },
          { by: 'assistant', text },
          { by: 'user', texts: [`<environment_context>${text}</environment_context>`] },
        ] as const;
        const body = renderConversation(api, steps, fields);
        const list = (api === 'responses' ? body['input'] : body['messages']) as unknown[];
        list.push(
          { role: 'user', content: attachment, name: text },
          { role: 'system', content: text },
          { role: 'developer', content: text },
        );
        const request = asked(body, api);
        assert.ok(request.includes('"latest_message":"human"'));
        assert.ok(!request.includes(text), request);
      }),
    );
  });

  test("the models, their order and the floor are the policy's own business", () => {
    const request = asked(renderConversation('messages', [{ by: 'user', texts: ['human'] }]), 'messages');
    for (const word of ['default', 'sim/judge-latest', '"a"', '"b"', '800', '0.6', '0.7'])
      assert.ok(!request.includes(word), word);
  });

  test('of a recorded agent, what its user typed and no more', (t) => {
    for (const name of ['claude-code-2.1-turn2-correction', 'codex-0.169-turn2-correction']) {
      const recorded = recordedRequest(name);
      if (recorded === null) return t.skip('no recordings here');
      const { state } = buildClassifierRequest(POLICY, prepare(recorded.api, recorded.body), { askCorrection: true });
      assert.deepEqual(state, {
        previous_message: 'What is in the README of this project?',
        latest_message: 'That is wrong, look again',
      });
    }
  });
});

describe('the answer', () => {
  const read = (value: unknown, policy = POLICY) =>
    readClassifierAnswer(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), policy);
  const tier = { type: 'choice', choice: 'light', confidence: 0.78, probabilities: { strong: 0.1, light: 0.89 } };
  const whole = {
    model: 'jev-1.13.0',
    answers: { correction: { noul: 0.8 }, kind: { choice: 'code' }, tier },
    usage: { input_tokens: 392, output_tokens: 65 },
  };

  test('whole', () => {
    const distribution = { light: 0.89, strong: 0.1 };
    assert.deepEqual(read(whole), {
      tier: 'light',
      confidence: 0.78,
      distribution,
      task: 'code',
      correctionProbability: 0.8,
    });
  });

  test('that is no tier of the policy is none', () => {
    const choices = ['medium', '', 'Light', null, 5, ['light'], 'constructor', undefined];
    for (const choice of choices) assert.equal(read({ answers: { tier: { ...tier, choice } } }), null);
    for (const value of [
      '',
      '{',
      'null',
      '[]',
      '5',
      '{"answers":null}',
      '{"answers":{"tier":"light"}}',
      '{"answers":{"tier":{}}}',
    ])
      assert.equal(read(value), null);
    assert.equal(readClassifierAnswer(Uint8Array.of(0xff, 0x00), POLICY), null);
    assert.equal(read({ ...whole, padding: 'x'.repeat(65_536) }), null, 'too big to be an answer');
  });

  test('with the rest missing or wrong still names a tier', () => {
    const least = {
      tier: 'light',
      confidence: 0,
      distribution: {},
      task: null,
      correctionProbability: null,
    };
    assert.deepEqual(read({ answers: { tier: { choice: 'light' } } }), least);
    const wrong = {
      kind: { choice: 'poetry' },
      correction: { noul: 1.5 },
      tier: { choice: 'light', confidence: 'high', probabilities: { light: 2, other: 0.5 } },
    };
    assert.deepEqual(read({ answers: wrong, usage: { input_tokens: -1 } }), least);
    assert.deepEqual(read({ answers: { tier: { choice: 'light', probabilities: { light: 0.7 } } } }), {
      ...least,
      confidence: 0.7,
      distribution: { light: 0.7 },
    });
    assert.equal(read(whole, NO_KINDS)?.task, null, 'a kind that was not asked for');
  });
});
