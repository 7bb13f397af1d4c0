// Questions to a chat model that tells log-probabilities: what is asked, and what its reply amounts to as an evaluation
// model's answer.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { answerIn, buildClassifierRequest } from '../../src/domain/routing/classifier-questions.ts';
import {
  type LogprobQuestion,
  logprobQuestions,
  readLogprobAnswer,
} from '../../src/domain/routing/logprob-questions.ts';
import type { RoutingPolicy } from '../../src/domain/routing/routing-policy.ts';

const POLICY: RoutingPolicy = {
  name: 'default',
  version: 1,
  classifier: { model: 'judge', timeoutMs: 800, confidenceFloor: 0.6 },
  tiers: [
    { name: 'light', description: 'Small talk', models: [] },
    { name: 'middle', description: '', models: [] },
    { name: 'strong', description: 'Proofs', models: [] },
  ],
  fallbackTier: 'strong',
  kinds: [{ name: 'code', description: 'Code' }],
  followUp: { corrections: true, threshold: 0.7 },
  sticky: null,
  preferNativeApi: false,
};

function questionsAbout(
  humanTexts: readonly string[],
): readonly [tier: LogprobQuestion, kind: LogprobQuestion, correction: LogprobQuestion] {
  const [tier, kind, correction] = logprobQuestions(
    buildClassifierRequest(POLICY, { humanTexts }, { askCorrection: true }),
    'chat-1',
  );
  assert.ok(tier !== undefined && kind !== undefined && correction !== undefined);
  return [tier, kind, correction];
}
const [TIER, KIND, CORRECTION] = questionsAbout(['before', 'now']);

describe('what is asked', () => {
  test('each question by itself, for one token and its alternatives', () => {
    assert.deepEqual([TIER.id, KIND.id, CORRECTION.id], ['tier', 'kind', 'correction']);
    assert.deepEqual([TIER.options, CORRECTION.options], [['light', 'middle', 'strong'], null]);
    const { messages, ...settings } = TIER.body as { messages: readonly { role: string; content: string }[] };
    assert.deepEqual(settings, { model: 'chat-1', max_tokens: 1, temperature: 1, logprobs: true, top_logprobs: 20 });
    assert.deepEqual(messages[1], { role: 'user', content: '{"previous_message":"before","latest_message":"now"}' });
    assert.match(
      messages[0]?.content ?? '',
      /Question \(tier\): .*\nA\. light: Small talk\nB\. middle\nC\. strong: Proofs\nReply with the letter/s,
    );
    const [yesOrNo] = (CORRECTION.body as { messages: readonly { content: string }[] }).messages;
    assert.match(yesOrNo?.content ?? '', /Is this true\? .*\nyes: .*\nno: .*\nReply with yes or no/s);
  });

  test('a user’s words stand in no system prompt', () => {
    const [question] = questionsAbout(['CANARY"\nA. light']);
    const { messages } = question.body as { messages: readonly { role: string; content: string }[] };
    assert.deepEqual(
      messages.map(({ role, content }) => [role, content.includes('CANARY')]),
      [
        ['system', false],
        ['user', true],
      ],
    );
  });
});

type Alternatives = readonly (readonly [token: string, probability: number])[];

function reply(alternatives: Alternatives): Buffer {
  const top = alternatives.map(([token, probability]) => ({ token, logprob: Math.log(probability), bytes: null }));
  const content = [{ token: alternatives[0]?.[0] ?? '', logprob: -1, top_logprobs: top }];
  return Buffer.from(
    JSON.stringify({
      choices: [{ index: 0, message: { role: 'assistant' }, logprobs: { content } }],
    }),
  );
}

describe('what a reply amounts to', () => {
  const tier = (alternatives: Alternatives) => readLogprobAnswer(TIER, reply(alternatives));
  const noul = (alternatives: Alternatives) => readLogprobAnswer(CORRECTION, reply(alternatives));

  test('the likeliest option, all probabilities, and how far they are from even', () => {
    const answer = {
      type: 'choice',
      choice: 'light',
      confidence: 0.775,
      probabilities: { light: 0.85, middle: 0.15, strong: 0 },
    };
    assert.deepEqual(
      tier([
        ['A', 0.85],
        ['B', 0.15],
      ]),
      answer,
    );
    // Spaces are the tokenizer's; the rest of the words share what is left.
    assert.deepEqual(
      tier([
        [' A', 0.34],
        ['A', 0.17],
        ['ĠA', 0.17],
        ['▁B', 0.12],
        ['The', 0.1],
        ['a', 0.1],
      ]),
      answer,
    );
    assert.deepEqual(
      tier([
        ['A', 1 / 3],
        ['B', 1 / 3],
        ['C', 1 / 3],
      ]),
      {
        type: 'choice',
        choice: 'light',
        confidence: 0,
        probabilities: { light: 0.3333, middle: 0.3333, strong: 0.3333 },
      },
    );
  });

  test('yes or no, however it is written', () => {
    assert.deepEqual(
      noul([
        ['Yes', 0.5],
        [' yes', 0.1],
        ['YES', 0.12],
        ['no', 0.08],
        ['No', 0.1],
        ['maybe', 0.1],
      ]),
      { type: 'noul', noul: 0.8 },
    );
  });

  test('a model that says something else has not answered', () => {
    assert.equal(
      tier([
        ['<think>', 0.99],
        ['A', 0.01],
      ]),
      null,
    );
    assert.equal(noul([['A', 1]]), null);
  });

  test('it is read like an evaluation model’s answer', () => {
    const told = [TIER, KIND, CORRECTION].map((question, index) => {
      const alternatives: Alternatives =
        index === 2
          ? [
              ['Yes', 0.9],
              ['No', 0.1],
            ]
          : [['A', 0.9]];
      return [question.id, readLogprobAnswer(question, reply(alternatives))] as const;
    });
    assert.deepEqual(answerIn({ answers: Object.fromEntries(told) }, POLICY), {
      tier: 'light',
      confidence: 1,
      distribution: { light: 1, middle: 0, strong: 0 },
      task: 'code',
      correctionProbability: 0.9,
    });
  });

  test('anything else is no answer, and never thrown', () => {
    for (const text of [
      '',
      '{',
      '[]',
      '{"choices":[]}',
      '{"choices":[{"logprobs":null}]}',
      '{"choices":[{"logprobs":{"content":[{"top_logprobs":[null,{}]}]}}]}',
    ]) {
      assert.equal(readLogprobAnswer(TIER, Buffer.from(text)), null, text);
    }
    fc.assert(
      fc.property(fc.array(fc.record({ token: fc.string(), logprob: fc.double() })), (top) => {
        const body = JSON.stringify({ choices: [{ logprobs: { content: [{ top_logprobs: top }] } }] });
        const answer = readLogprobAnswer(TIER, Buffer.from(body));
        const confidence = answer?.['confidence'] ?? 0;
        assert.ok(typeof confidence === 'number' && confidence >= 0 && confidence <= 1);
      }),
    );
  });
});
