// The typed-question dialect: what is refused here and what is left to the provider, on and off the event loop; usage
// and price.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { checkQuestions, checkQuestionsBody } from '../../src/domain/evaluation/check-questions.ts';
import type { Model } from '../../src/domain/models/catalog.ts';
import { priceOn } from '../../src/domain/models/price.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { rateUsage } from '../../src/domain/settlement/rate-usage.ts';
import { boundInput } from '../../src/generation/admission/worst-case-cost.ts';
import type { RequestBounds } from '../../src/generation/dialects/dialect.ts';
import {
  type QuestionWorkers,
  refuseWithoutQuestions,
  SYSTEMONE_OVERHEAD_TOKENS,
  systemone,
  validateQuestions,
} from '../../src/generation/dialects/systemone.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { createLog } from '../../src/platform/log.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { WorkerPool } from '../../src/platform/worker-pool.ts';
import { sharedAssets } from '../support/shared-assets.ts';

const ask = (question: unknown, state: unknown = 'Hello'): Record<string, unknown> => ({
  model: 'jev-latest',
  state,
  questions: { q: question },
});
const choice = (criteria: unknown): Record<string, unknown> =>
  ask({ type: 'choice', instructions: 'Which?', criteria });
const score = (criteria: unknown): Record<string, unknown> => ask({ type: 'score', instructions: 'How?', criteria });
const noul = (criteria: unknown): Record<string, unknown> => ask({ type: 'noul', instructions: 'Is it?', criteria });
const options = (count: number): Record<string, null> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`o${index}`, null]));
const levels = (count: number): string[] => Array.from({ length: count }, (_, index) => `level ${index}`);

const pathOf = (refusal: Refusal | null): string | null =>
  refusal?.kind === 'invalid_field' ? refusal.field : (refusal?.kind ?? null);

describe('what passes', () => {
  const rows: readonly (readonly [string, Record<string, unknown>])[] = [
    [
      'one question of each type',
      {
        state: 'x',
        questions: {
          a: { type: 'noul' },
          b: { type: 'choice', criteria: { x: null } },
          c: { type: 'score', criteria: levels(2) },
        },
      },
    ],
    ['1 option', choice({ only: 'one' })],
    ['255 options', choice(options(255))],
    ['2 levels', score(levels(2))],
    ['10 levels', score(levels(10))],
    ['descriptions of any structure, or none', choice({ a: 'text', b: null, c: { any: ['thing', 1] }, d: [] })],
    ['levels of any structure, or none', score(['text', null, { a: 1 }, ['b']])],
    ['outcomes, both or one', noul({ true: 'yes', false: null })],
    ['outcomes, one', noul({ true: { a: 1 } })],
    ['no criteria for noul', noul(undefined)],
    ['null criteria for noul', noul(null)],
    ['instructions that are structured', ask({ type: 'noul', instructions: { goal: 'x', steps: ['y'] } })],
    ['instructions that are null', ask({ type: 'noul', instructions: null })],
    [
      'state as an object of texts and structures',
      ask({ type: 'noul' }, { ticket: { id: '5', lines: ['a'] }, note: '' }),
    ],
    ['state as an array of texts and structures', ask({ type: 'noul' }, ['a', { role: 'user', content: 'b' }, ['c']])],
    ['fields that the spec does not know', { ...ask({ type: 'noul', weight: 3 }), extra: 1 }],
    [
      'an id that is a name of Object',
      { state: 's', questions: JSON.parse('{"__proto__":{"type":"noul"},"constructor":{"type":"noul"}}') as unknown },
    ],
    // What is missing is for the provider to name, with its 422.
    ['a choice without criteria', choice(undefined)],
    ['a score with null criteria', score(null)],
    ['a question without a type', ask({ instructions: 'x' })],
    ['no state', { questions: { q: { type: 'noul' } } }],
    ['state that is null', ask({ type: 'noul' }, null)],
    ['no questions', { state: 's' }],
    ['empty questions', { state: 's', questions: {} }],
    ['null questions', { state: 's', questions: null }],
  ];
  for (const [name, body] of rows) test(name, () => assert.equal(checkQuestions(body), null));
});

describe('what is refused, by its path', () => {
  const rows: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ['state that is a number', ask({ type: 'noul' }, 5), 'state'],
    ['state that is a boolean', ask({ type: 'noul' }, false), 'state'],
    ['a number in an array of texts', ask({ type: 'noul' }, ['a', 1]), 'state[1]'],
    ['null in an array of texts', ask({ type: 'noul' }, [null]), 'state[0]'],
    ['a number in an object', ask({ type: 'noul' }, { ticket: { id: 5 } }), 'state.ticket.id'],
    ['a boolean in an object', ask({ type: 'noul' }, { open: true }), 'state.open'],
    ['null in an object', ask({ type: 'noul' }, [{ note: null }]), 'state[0].note'],
    ['a number far inside', ask({ type: 'noul' }, [[[[[[[1]]]]]]]), 'state[0][0][0][0]'],
    ['questions as an array', { state: 's', questions: [{ type: 'noul' }] }, 'questions'],
    ['questions as text', { state: 's', questions: 'is it?' }, 'questions'],
    ['a question as text', ask('is it?'), 'questions.q'],
    ['a question that is null', ask(null), 'questions.q'],
    ['a type that does not exist', ask({ type: 'boolean' }), 'questions.q.type'],
    ['a type that is no text', ask({ type: 1 }), 'questions.q.type'],
    ['instructions that are a number', ask({ type: 'noul', instructions: 1 }), 'questions.q.instructions'],
    ['options as an array', choice(['a', 'b']), 'questions.q.criteria'],
    ['no options', choice({}), 'questions.q.criteria'],
    ['256 options', choice(options(256)), 'questions.q.criteria'],
    ['an option described by a number', choice({ a: 'x', b: 1 }), 'questions.q.criteria.b'],
    ['an option of many words', choice({ 'two words': true }), 'questions.q.criteria["two words"]'],
    ['levels as an object', score({ 0: 'a', 1: 'b' }), 'questions.q.criteria'],
    ['1 level', score(levels(1)), 'questions.q.criteria'],
    ['11 levels', score(levels(11)), 'questions.q.criteria'],
    ['a level that is a number', score(['a', 'b', 3]), 'questions.q.criteria[2]'],
    ['outcomes as text', noul('yes or no'), 'questions.q.criteria'],
    ['outcomes as an array', noul(['yes', 'no']), 'questions.q.criteria'],
    ['another outcome', noul({ yes: 'x' }), 'questions.q.criteria.yes'],
    ['an outcome described by a boolean', noul({ true: true }), 'questions.q.criteria.true'],
    [
      'the second of two questions',
      { state: 's', questions: { good: { type: 'noul' }, 'bad one': { type: 'x' } } },
      'questions["bad one"].type',
    ],
    ['an id without end', { state: 's', questions: { ['x'.repeat(500)]: 1 } }, `questions["${'x'.repeat(48)}..."]`],
  ];
  for (const [name, body, path] of rows) test(name, () => assert.equal(pathOf(checkQuestions(body)), path));

  test('with the numbers that are at fault', () => {
    const refusal = checkQuestions(choice(options(300)));
    assert.deepEqual(refusal, {
      kind: 'invalid_field',
      field: 'questions.q.criteria',
      reason: 'must have 1 to 255 options, not 300',
    });
  });

  test('whatever is asked, the answer is null or a refusal', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.jsonValue(),
        fc.dictionary(fc.string(), fc.jsonValue()),
        (state, value, criteria) => {
          for (const type of ['noul', 'choice', 'score'])
            checkQuestions({ state, questions: { [type]: { type, criteria }, other: value } });
          checkQuestions({ questions: value });
        },
      ),
    );
  });
});

describe('where it is checked', () => {
  /** Fails the test when anything is handed over. */
  const noWorkers: QuestionWorkers = { run: () => assert.fail('handed over to a worker') };
  const bytes = (body: unknown): Buffer => Buffer.from(JSON.stringify(body));
  const LONG = { contextLength: null, tokenizer: 'o200k_base' };

  function startWorkers(context: TestContext): QuestionWorkers {
    const log = createLog({ level: 'silent', process: 'test' });
    const pool = new WorkerPool<'validate-questions'>({
      threads: 1,
      queueBytesMax: 8 << 20,
      log,
      metrics: new MetricsRegistry(),
    });
    context.after(() => pool.close());
    return pool;
  }

  test('a small body here and now', () => {
    assert.equal(validateQuestions(bytes(ask({ type: 'noul' })), noWorkers, LONG), null);
    assert.equal(pathOf(validateQuestions(bytes(ask(1)), noWorkers, LONG) as Refusal), 'questions.q');
    assert.deepEqual(checkQuestionsBody(Buffer.from('[]')), { kind: 'body_not_an_object' });
    assert.deepEqual(checkQuestionsBody(Buffer.from('{')), { kind: 'invalid_json' });
  });

  test('a big one in a thread, and its bytes stay with the caller', async (context) => {
    const workers = startWorkers(context);
    const deep = `${'['.repeat(250)}${']'.repeat(250)}`;
    const good = Buffer.from(`{"state":[${Array(2000).fill(deep).join()}],"questions":{"q":{"type":"noul"}}}`);
    assert.ok(good.length > 1e6);
    const before = Buffer.from(good);
    const checking = validateQuestions(good, workers, LONG);
    assert.ok(checking instanceof Promise);
    assert.equal(await checking, null);
    assert.deepEqual(good, before);
    const bad = Buffer.from(good.toString().replace('noul', 'none'));
    assert.equal(pathOf(await validateQuestions(bad, workers, LONG)), 'questions.q.type');
  });

  test('what has more bytes than the context has tokens is counted in a thread', async (context) => {
    const workers = startWorkers(context);
    const words = (count: number): string => 'word '.repeat(count);
    const asks = (state: unknown, ...questions: string[]): Buffer =>
      bytes({ state, questions: Object.fromEntries(questions.map((text, index) => [index, { instructions: text }])) });
    const verdict = (body: Buffer): unknown =>
      validateQuestions(body, workers, { contextLength: 1_000, tokenizer: 'o200k_base' });
    const refusal = { kind: 'context_length_exceeded', contextLength: 1_000 };
    assert.equal(await verdict(asks(words(900))), null);
    assert.deepEqual(await verdict(asks(words(1_100))), refusal);
    assert.deepEqual(await verdict(asks([words(500), { later: words(600) }])), refusal);
    assert.equal(await verdict(asks(words(500), words(400), words(400), words(400))), null);
    assert.deepEqual(await verdict(asks(words(500), words(4), words(600), words(4))), refusal);
    // Far beyond: counted only as far as it takes to know.
    assert.deepEqual(await verdict(asks(words(1_500_000))), refusal);
    // A field that is wrong is named first.
    assert.equal(pathOf((await verdict(bytes(ask(1, words(1_100))))) as Refusal), 'questions.q');
  });

  test('nowhere, when no thread can be had: the provider checks too', async () => {
    for (const reason of ['queue_full', 'deadline', 'crashed'] as const) {
      const workers: QuestionWorkers = { run: () => Promise.resolve({ ok: false, reason }) };
      assert.equal(await validateQuestions(bytes(ask(1, 'x'.repeat(20_000))), workers, LONG), null);
    }
  });
});

test('the context, which is for one question at a time, does not bound the tokens of all', () => {
  const bounds = systemone.readBounds(new RequestScanner().scan(Buffer.from('{}')), Buffer.from('{}')) as RequestBounds;
  const model = { contextLength: 1_000 } as Model;
  const tokens = boundInput(systemone, model, bounds, { bytes: 5_000, attachments: 0, carriedTokens: 0 });
  assert.equal(tokens, 5_000 + SYSTEMONE_OVERHEAD_TOKENS);
});

test('a request without questions is refused under a limit on tokens per minute', () => {
  const scanner = new RequestScanner();
  const refusalOf = (text: string): Refusal | null =>
    refuseWithoutQuestions(scanner.scan(Buffer.from(text)), Buffer.from(text));
  const refusal = { kind: 'traffic_token_bound_required', field: 'questions' };
  for (const text of [
    '{}',
    '{"questions":null}',
    '{"questions":{}}',
    '{"questions": {  \n\t } }',
    '{"questions":[{}]}',
    '{"questions":"q"}',
    '{"state":{"questions":{"q":{}}}}',
  ])
    assert.deepEqual(refusalOf(text), refusal, text);
  for (const text of ['{"questions":{"q":{}}}', '{"questions":{ "":1}}']) assert.equal(refusalOf(text), null, text);
});

describe('usage and price', () => {
  const read = (body: string) =>
    systemone.readUsage({ beginning: Buffer.from(body), end: Buffer.from(body), cut: false });
  const price = {
    version: '1',
    input: picoUsd(42_000n),
    cachedInput: null,
    cacheWrite: null,
    output: null,
    image: null,
  };

  test('is the report at the top level, wherever it stands and whatever the questions are called', () => {
    const answers = '"answers":{"usage":{"input_tokens":1,"output_tokens":1},"q":{"type":"noul","noul":1.0}}';
    const usage = '"usage":{"input_tokens":392,"output_tokens":65}';
    for (const body of [`{"model":"m",${answers},${usage}}`, `{${usage},"model":"m",${answers}}`]) {
      const found = read(body);
      assert.deepEqual([found?.inputTokens, found?.outputTokens], [392, 65], body);
    }
    assert.equal(read(`{"model":"m",${answers}}`), null);
    assert.equal(read('{"detail":{"error_type":"api_usage_error","message":"usage"}}'), null);
  });

  test('is priced by its input alone, whatever the catalog says of output', () => {
    const usage = read('{"usage":{"input_tokens":392,"output_tokens":65}}');
    assert.ok(usage !== null);
    for (const output of [null, picoUsd(9n)])
      assert.equal(rateUsage(usage, priceOn('systemone', { ...price, output })), 392n * 42_000n);
    const unpriced = priceOn('systemone', { ...price, input: null });
    assert.equal(rateUsage(usage, unpriced), null);
  });

  test('needs no bound on output, and one on input that covers what a provider adds', () => {
    const body = Buffer.from('{"model":"m","questions":{"q":{"type":"noul"}}}');
    assert.deepEqual(systemone.readBounds(new RequestScanner().scan(body), body), {
      streamed: false,
      outputTokensMax: 0,
      answers: 1,
      isReadInParts: true,
    });
    assert.ok(SYSTEMONE_OVERHEAD_TOKENS > 300);
  });

  const examples = sharedAssets('systemone', 'examples.jsonl');
  test('of recorded exchanges, whose requests pass', { skip: examples === null && 'no recordings here' }, () => {
    const lines = readFileSync(examples ?? '', 'utf8')
      .split('\n')
      .filter((line) => line !== '');
    const exchanges = lines.map(
      (line) =>
        JSON.parse(line) as {
          kind: string;
          request: Record<string, unknown>;
          response: { usage: Record<string, number> };
        },
    );
    const recorded = exchanges.filter(({ kind }) => kind === 'exchange');
    assert.ok(recorded.length > 0);
    for (const { request, response } of recorded) {
      assert.equal(checkQuestions(request), null);
      assert.equal(read(JSON.stringify(response))?.inputTokens, response.usage['input_tokens']);
      assert.ok(JSON.stringify(request).length + SYSTEMONE_OVERHEAD_TOKENS > (response.usage['input_tokens'] ?? 0));
    }
  });
});
