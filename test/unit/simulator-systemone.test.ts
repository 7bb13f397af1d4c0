// The simulated provider's typed-question API, as TypeSafe's client reads it, and the ways in which a test can steer
// its answers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { TypeSafeClient } from '@typesafe-ai/sdk';
import { httpCall } from '../support/http-call.ts';
import { sharedAssets } from '../support/shared-assets.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';

interface ChoiceAnswer {
  readonly choice: string;
  readonly confidence: number;
  readonly probabilities: Readonly<Record<string, number>>;
}

interface Body {
  readonly answers: Readonly<Record<string, ChoiceAnswer & Readonly<Record<string, unknown>>>>;
  readonly detail: unknown;
}

const TIERS = { light: 'Small talk', medium: null, strong: 'Hard work' };

describe('the simulated systemone API', () => {
  let provider: SimulatedProvider;

  before(async () => {
    provider = await startSimulatedProvider();
  });

  after(() => provider?.stop());

  async function ask(
    state: unknown,
    questions: unknown,
    fields: object = {},
  ): Promise<{ status: number; text: string; body: Body }> {
    const answer = await httpCall(`${provider.url}/v1/systemone`, {
      headers: { authorization: 'Bearer any', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'judge-latest', state, questions, ...fields }),
    });
    const text = answer.body.toString('utf8');
    return { status: answer.status, text, body: JSON.parse(text) as Body };
  }

  const tier = async (state: unknown): Promise<ChoiceAnswer> =>
    (await ask(state, { tier: { type: 'choice', criteria: TIERS } })).body.answers['tier'] ?? assert.fail();

  test('answers the official client, every type of question', async () => {
    const client = new TypeSafeClient({ apiKey: 'any', baseURL: provider.url, logLevel: 'off' });
    const { data, requestId } = await client
      .systemOne({
        model: 'typesafe/jev-latest',
        state: { message: 'My integration fails.', history: ['Hello.'] },
        questions: {
          department: {
            type: 'choice',
            instructions: 'Which team?',
            criteria: { billing: 'Payments', technical: 'Bugs', sales: null },
          },
          frustration: { type: 'score', instructions: null, criteria: ['calm', 'angry', 'furious'] },
          urgent: { type: 'noul' },
        },
      })
      .withResponse();
    assert.equal(data.model, 'jev-1.13.0');
    assert.deepEqual(Object.keys(data.answers).sort(), ['department', 'frustration', 'urgent']);
    assert.ok(['billing', 'technical', 'sales'].includes(data.answers.department.choice));
    assert.deepEqual(data.answers.frustration.legend, { 0: 'calm', 1: 'angry', 2: 'furious' });
    assert.ok(data.answers.urgent.noul >= 0 && data.answers.urgent.noul <= 1);
    assert.ok(data.usage.input_tokens > 270 && data.usage.output_tokens > 0);
    assert.ok(requestId?.startsWith('req_sim-'));
    const { api, promptTokens, completionTokens } = await provider.lastEnd();
    assert.deepEqual(
      [api, promptTokens, completionTokens],
      ['systemone', data.usage.input_tokens, data.usage.output_tokens],
    );
  });

  test(
    'looks like the real one: two decimals, sums of 0.99 or 1, maps in another order, the same for the ' + 'same bytes',
    async () => {
      const sums = new Set<number>();
      const orders = new Set<string>();
      for (let index = 0; index < 40; index += 1) {
        const { text, body } = await ask(`State ${index}`, { tier: { type: 'choice', criteria: TIERS } });
        const { probabilities } = body.answers['tier'] ?? assert.fail();
        sums.add(Math.round(Object.values(probabilities).reduce((sum, value) => sum + value, 0) * 100));
        orders.add(Object.keys(probabilities).join());
        for (const [, number] of text.matchAll(/"(?:light|medium|strong|confidence)":([^,}]*)/g))
          assert.match(number ?? '', /^[01]\.\d{1,2}$/);
      }
      assert.deepEqual(sums, new Set([99, 100]));
      assert.ok(orders.size > 1);
      assert.equal(
        (await ask('Same.', { q: { type: 'noul' } })).text,
        (await ask('Same.', { q: { type: 'noul' } })).text,
      );
    },
  );

  test('can be steered, question by question', async () => {
    assert.deepEqual(
      await tier('Hello [[sim: tier=light:0.9]]').then(({ choice, probabilities }) => [choice, probabilities.light]),
      ['light', 0.9],
    );
    assert.deepEqual(
      await tier('Hello [[sim: tier=strong:0.5:0.31]]').then(({ choice, confidence }) => [choice, confidence]),
      ['strong', 0.31],
    );
    assert.deepEqual(
      await tier('Hello [[sim: choose=medium confidence=0.62]]').then(({ choice, confidence }) => [choice, confidence]),
      ['medium', 0.62],
    );
    assert.equal((await tier({ nested: ['[[sim/systemone: answer.tier=medium]]'] })).choice, 'medium');
    assert.equal((await tier('[[sim: tier=nonsense]]')).choice, 'nonsense', 'an answer that is no option');
    assert.equal((await tier('[[sim: tier=strong tier=light]]')).choice, 'light', 'the last one counts');
    const several = await ask('[[sim: tier=light:0.9 kind=a%20b correction=0.8 mood=1.5 omit=left,out]]', {
      tier: { type: 'choice', criteria: TIERS },
      kind: { type: 'choice', criteria: { 'a b': null, c: null } },
      correction: { type: 'noul', criteria: { true: 'It corrects.' } },
      mood: { type: 'score', criteria: ['bad', 'fair', 'good'] },
      left: { type: 'noul' },
      out: { type: 'noul' },
    });
    const { answers } = several.body;
    assert.deepEqual(
      [
        answers.tier?.choice,
        answers.kind?.choice,
        answers.correction?.noul,
        answers.mood?.score,
        answers.mood?.probabilities,
        answers.left,
        answers.out,
      ],
      ['light', 'a b', 0.8, 1.5, { 0: 0, 1: 0.5, 2: 0.5 }, undefined, undefined],
    );
    assert.equal(
      (await tier('[[sim/text: status=500]] [[sim: tier=light]]')).choice,
      'light',
      'faults meant for the answering model do not concern the judge',
    );
  });

  test("judges a router's questions by the latest text", async () => {
    const judged = async (latest: string): Promise<unknown[]> => {
      const questions = {
        tier: { type: 'choice', criteria: TIERS },
        kind: {
          type: 'choice',
          criteria: { prose: 'letters and essays', code: 'writing or repairing code', other: null },
        },
        correction: { type: 'noul' },
      };
      const { answers } = (
        await ask({ previous_message: 'Prove the theorem and refactor the code.', latest_message: latest }, questions)
      ).body;
      return [answers.tier?.choice, answers.kind?.choice, Number(answers.correction?.noul) > 0.7];
    };
    assert.deepEqual(await judged('Hello, thank you for the letters!'), ['light', 'prose', false]);
    assert.deepEqual(await judged('Find the root cause of the deadlock and refactor the code.'), [
      'strong',
      'code',
      false,
    ]);
    assert.deepEqual((await judged('That is wrong, look again')).slice(2), [true]);
    assert.deepEqual(await judged('Hello [[sim: tier=strong kind=other correction=0.9]]'), ['strong', 'other', true]);
  });

  test('is right as often as it is told to be', async (t) => {
    const file = sharedAssets('routing', 'llmrouter-dcrouter', 'scores.jsonl');
    if (file === null) return t.skip('no recorded outcomes here');
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, 400);
    let right = 0;
    for (const line of lines) {
      const { question, scores } = JSON.parse(line) as { question: string; scores: Readonly<Record<string, number>> };
      const truth = (scores['qwen2.5-7b-instruct'] ?? 0) > 0.5 ? 'light' : 'strong';
      const { choice } = await tier({
        latest_message: `${question.slice(0, 2000)} [[sim/systemone: tier.truth=${truth} accuracy=0.8]]`,
      });
      assert.ok(choice in TIERS);
      if (choice === truth) right++;
    }
    // The texts are fixed, so this is a figure and no estimate: 80% up to the luck of 400 draws.
    assert.ok(right / lines.length > 0.75 && right / lines.length < 0.85, `${right} of ${lines.length}`);
    const { choice: exact } = await tier('[[sim: tier.truth=medium]]');
    const { choice: never } = await tier('[[sim: tier.truth=medium accuracy=0]]');
    assert.deepEqual([exact, never === 'medium'], ['medium', false]);
  });

  test('refuses what the real one refuses, in its three forms', async () => {
    const missing = await ask('x', { q: { type: 'choice', instructions: 'Pick one.' } });
    assert.deepEqual(missing.body, {
      detail: [
        {
          type: 'missing',
          loc: ['body', 'questions', 'q', 'choice', 'criteria'],
          msg: 'Field required',
          input: { type: 'choice', instructions: 'Pick one.' },
        },
      ],
    });
    assert.equal(missing.status, 422);
    const options = Object.fromEntries(Array.from({ length: 256 }, (_, index) => [`option${index}`, null]));
    const tooMany = await ask('x', { q: { type: 'choice', criteria: options } });
    assert.deepEqual(
      [tooMany.status, tooMany.body],
      [400, { detail: 'Too many choices. Must have at most 255 choices.' }],
    );
    const unknown = await ask('x', {}, { model: 'unknown-1' });
    assert.deepEqual(
      [unknown.status, unknown.body],
      [400, { detail: { error_type: 'api_usage_error', message: 'Unknown model: unknown-1' } }],
    );
    for (const criteria of [['one'], Array.from({ length: 11 }, () => 'level')])
      assert.equal((await ask('x', { q: { type: 'score', criteria } })).status, 422);
    assert.equal((await ask('x'.repeat(70_000), { q: { type: 'noul' } })).text.includes('"max_tokens_exceeded"'), true);
    const anonymous = await httpCall(`${provider.url}/v1/systemone`, { body: '{}' });
    assert.equal(anonymous.status, 403);
    assert.deepEqual((await ask('[[sim: status=503]]', {})).body, {
      detail: { error_type: 'model_unavailable', message: 'The simulated provider was asked to answer 503.' },
    });
    assert.equal(typeof (await ask('[[sim: status=500 detail=string]]', {})).body.detail, 'string');
    assert.ok(Array.isArray((await ask('[[sim: status=422 detail=array]]', {})).body.detail));
  });
});
