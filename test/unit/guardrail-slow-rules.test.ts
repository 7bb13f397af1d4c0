// Rules that their authors made to be slow: what they take from the event loop, which is everybody's, is bounded.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import { holdFrom } from '../../src/domain/guardrails/hold-from.ts';
import type { OnFailure } from '../../src/domain/guardrails/policy.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { inlineBytesMax, screenBody } from '../../src/generation/guardrails/screen-body.ts';
import { inTurnsOf } from '../../src/platform/worker-pool.ts';
import { compiledOf, findingsIn, foundIn, policyOf, ruleOf } from '../support/guardrail-policies.ts';
import { screenedReply } from '../support/screened-reply.ts';

const NO_CLOAKING = { scopes: null, values: null };

describe('many words', () => {
  test('that begin alike are told apart, the longest that ends where a word can', () => {
    const words = Array.from({ length: 1_000 }, (_, index) => `falcon${'x'.repeat(index % 7)}${index}`);
    const compiled = compiledOf(ruleOf({ words: [...words, 'falcon', 'falcon heavy', 'falcon heavy lift'] }));
    assert.deepEqual(
      foundIn(compiled, 'falcon5 falconxxxxx5 FALCON Heavy lifting falcon heavy, falconxx2 falc').map(
        ([, found]) => found,
      ),
      ['falconxxxxx5', 'FALCON Heavy', 'falcon heavy', 'falconxx2'],
    );
  });

  test('letters beyond ASCII are found in upper case, too, and with accents of their own', () => {
    const compiled = compiledOf(ruleOf({ words: ['München', 'żubr'] }));
    const text = `München MÜNCHEN münchen ${'München'.normalize('NFD')} Żubr ŻUBR`;
    assert.equal(foundIn(compiled, text).length, 6);
  });

  test('each rule finds its own longest word, at its own stage', () => {
    const compiled = compiledOf(
      ruleOf({ id: 'short', words: ['--', '--a'] }),
      ruleOf({ id: 'long', words: ['--', '--a b', '--a bc'] }),
      ruleOf({ id: 'other stage', words: ['--a b', '--a b c d'], stages: ['output'] }),
    );
    const found = findingsIn(compiled, '--a b!').map(({ rule, start, end }) => `${rule.id} ${start} ${end}`);
    assert.deepEqual(found, ['long 0 5', 'short 0 3']);
    const text = Buffer.from('x --a b c');
    assert.deepEqual(
      (['input', 'output'] as const).map((stage) => holdFrom(compiled, stage, text, 0, text.length, [])),
      [text.length, 2],
    );
  });

  test('that begin within themselves leave less to the event loop, and ordinary ones do not', async () => {
    const dashes = (count: number) => Array.from({ length: count }, () => ruleOf({ words: [`${'-'.repeat(127)}x`] }));
    const most = (policies: number, rules: number): number => {
      const all = Array.from({ length: policies }, () => policyOf(dashes(rules)));
      const compiled = compilePolicy(all, 'chat_completions');
      assert.ok(compiled !== null);
      return inlineBytesMax(compiled, 'input');
    };
    assert.ok(most(1, 1) <= 4_096 && most(1, 64) * 2 > most(1, 1), 'one search for all rules of a policy');
    assert.ok(most(16, 64) * 16 <= most(1, 64));
    const nested = Array.from({ length: 64 }, () => ruleOf({ words: dashesUpTo(127) }));
    assert.ok(inlineBytesMax(compiledOf(...nested), 'input') < 64);
    const names = ruleOf({ words: ['Falcon', 'Falcon Heavy', 'Project Falcon Confidential', 'Acme-Internal-Only'] });
    const rules = Array.from({ length: 20 }, (_, index) => ruleOf({ words: [`Customer ${index}`] }));
    for (const ordinary of [[names], rules]) assert.equal(inlineBytesMax(compiledOf(...ordinary), 'input'), 32_768);
  });

  const dashesUpTo = (longest: number) => Array.from({ length: longest - 1 }, (_, index) => '-'.repeat(index + 2));
});

test('values that policies let through are left to a worker where they are many, each looked up once a policy', async () => {
  const rules = Array.from({ length: 64 }, (_, index) => ruleOf({ id: `r${index}`, detect: ['email'] }));
  const lenient = ['one', 'two'].map((id) => policyOf(rules, { id, allowedValues: ['a@b.co'] }));
  const compiled = compilePolicy(lenient, 'chat_completions');
  assert.ok(compiled !== null);
  assert.equal(compiled.input?.detectors[0]?.rules.length, 2);
  let handedOver = 0;
  const run = async () => {
    handedOver += 1;
    return { ok: false as const, reason: 'timeout' as const };
  };
  const screened = async (count: number) => {
    const body = Buffer.from(`{"messages":[{"role":"user","content":"${'a@b.co '.repeat(count)}"}]}`);
    const whole = { stage: 'input' as const, body, places: chatCompletions.texts, parts: null };
    const { report } = await screenBody(compiled, whole, NO_CLOAKING, { run } as never);
    return [report.action, handedOver];
  };
  assert.deepEqual(
    [await screened(400), await screened(4_000)],
    [
      ['none', 0],
      ['none', 1],
    ],
  );
});

describe('slow patterns', () => {
  const SLOW = Array.from({ length: 4 }, (_, index) => ({ regex: `[a-z]*${'abcd'[index]}[a-z]{200}`, maxLength: 256 }));

  test('a body of a kilobyte is left to a worker, in its organization’s turn', async () => {
    const body = Buffer.from(`{"messages":[{"role":"user","content":"${'a word '.repeat(150)}"}]}`);
    const whole = { stage: 'input' as const, body, places: chatCompletions.texts, parts: null };
    const asked: string[] = [];
    const workers = {
      run: async (name: string, _input: unknown, { source }: { readonly source?: string }) => {
        asked.push(`${name} of ${source}`);
        return { ok: false as const, reason: 'timeout' as const };
      },
    };
    const slow = compiledOf(ruleOf({ patterns: SLOW }));
    const screened = await screenBody(slow, whole, NO_CLOAKING, inTurnsOf(workers as never, 'acme'));
    assert.deepEqual([asked, screened.report.not_scanned], [['screen-text of acme'], ['timeout']]);
    assert.ok(inlineBytesMax(slow, 'output') < 1_024, 'nor is an event of a stream screened on the event loop');
    const plain = compiledOf(ruleOf({ patterns: [{ regex: 'ACME-[0-9]{6}', maxLength: 11 }] }));
    assert.ok(!(screenBody(plain, whole, NO_CLOAKING, workers as never) instanceof Promise));
  });

  const chunk = (content: string): Buffer =>
    Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`);
  /** A stream of reads: `stepMs` have passed whenever somebody looks at the clock. */
  async function slowStream(onFailure: OnFailure, reads: readonly Buffer[], stepMs: number) {
    const compiled = compilePolicy([policyOf([ruleOf({ words: ['falcon'] })], { onFailure })], 'chat_completions');
    assert.ok(compiled !== null);
    return screenedReply(compiled, { isStream: true, reads, stepMs });
  }
  const texts = (stream: string) => stream.match(/"content":"[^"]*"/g)?.join('');
  /** Each read takes 100 ms to screen. */
  const READS = ['a falc', 'on ', 'flies, falc', 'on', ' and falcon'].map(chunk);

  test('a stream that has taken a quarter of a second goes on unscreened, and that is said', async () => {
    const { out, ended, report } = await slowStream('pass', READS, 100);
    assert.equal(
      texts(out),
      '"content":"a [words]""content":" ""content":"flies, falc""content":"on""content":" and falcon"',
    );
    assert.deepEqual([ended, report?.action, report?.not_scanned], [true, 'masked', ['timeout']]);
  });

  test('or ends, where the policy refuses what cannot be screened', async () => {
    const { out, ended, report } = await slowStream('refuse', READS, 100);
    assert.ok(!out.includes('falcon') && out.endsWith('data: guardrail_unread\n\n'), out);
    assert.deepEqual([ended, report?.not_scanned], [true, ['timeout']]);
  });

  test('many events of one read are screened a few at a time, and what comes meanwhile behind them', async () => {
    const read = Buffer.concat(Array.from({ length: 30 }, (_, index) => chunk(`falcon ${index} `)));
    const { out, ticks, report } = await slowStream('pass', [read, chunk('and falcon')], 2);
    const expected = [...Array.from({ length: 30 }, (_, index) => `[words] ${index} `), 'and [words]'];
    assert.equal(texts(out), expected.map((text) => `"content":"${text}"`).join(''));
    assert.ok(ticks >= 10, `${ticks} ticks of the event loop`);
    assert.deepEqual([report?.findings?.[0]?.count, report?.not_scanned], [31, undefined]);
  });

  test('where they have taken too long, the rest and what has come meanwhile goes on as it is', async () => {
    const read = Buffer.concat(Array.from({ length: 300 }, () => chunk('falcon ')));
    const { out, report } = await slowStream('pass', [read, chunk('and falcon')], 2);
    const passed = texts(out) ?? '';
    assert.equal(passed.match(/falcon |\[words\] /g)?.length, 300);
    assert.ok(passed.startsWith('"content":"[words] "') && passed.endsWith('"content":"and falcon"'));
    assert.deepEqual(report?.not_scanned, ['timeout']);
  });
});
