// An external detector that refuses without an answer refuses wherever the scan gives up before it could be asked, also
// where the policy lets pass what could not be screened.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CompiledPolicy, compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import type { External } from '../../src/domain/guardrails/policy.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { embeddings } from '../../src/generation/dialects/embeddings.ts';
import { refusalOfUnread, screenAndAsk } from '../../src/generation/guardrails/screen-and-ask.ts';
import { policyOf, ruleOf } from '../support/guardrail-policies.ts';
import { LATE_WORKERS, type RepliedWith, screenedReply } from '../support/screened-reply.ts';

const NER: External = {
  name: 'ner',
  shape: 'webhook',
  url: 'https://ner.test/',
  secret: null,
  deadlineMs: 800,
  onFailure: 'refuse',
  output: 'whole',
  model: null,
  language: 'en',
};

function lenientWith(external: Partial<External>): CompiledPolicy {
  const asking = { name: 'ner', entities: null, minScore: 0.5 };
  const rules = [ruleOf({ words: ['falcon'] }), ruleOf({ id: 'asked', action: 'flag', external: asking })];
  const externals = [{ ...NER, ...external }];
  const compiled = compilePolicy([policyOf(rules, { onFailure: 'pass', externals })], 'chat_completions');
  assert.ok(compiled !== null);
  return compiled;
}

const mustAnswer = lenientWith({});
const mayFail = lenientWith({ onFailure: 'pass' });
const LONG = 'a word, '.repeat(8_192);
/** No detector is asked about more than a thousand texts of one body. */
const MANY_TEXTS = JSON.stringify({
  messages: Array.from({ length: 1_001 }, (_, index) => ({ content: `a${index}` })),
});
const eventOf = (content: string): Buffer =>
  Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`);
const wholeOf = (content: string): Buffer => Buffer.from(`{"choices":[{"message":{"content":"${content}"}}]}`);
const stream = (...reads: readonly Buffer[]) => ({ isStream: true, reads });
const many = (bytes: number): Buffer[] => Array.from({ length: bytes / LONG.length + 1 }, () => Buffer.from(LONG));
/** Events that are small enough for the event loop, and none of them text. */
const beside = Buffer.from(`data: {"choices":[],"id":"${'A'.repeat(30_000)}"}\n\n`);

const REPLIES: readonly (readonly [string, RepliedWith])[] = [
  ['a stream that takes too long', { ...stream(eventOf('one '), eventOf('two'), eventOf(' three')), stepMs: 200 }],
  ['a stream whose event is late', stream(eventOf(LONG))],
  ['a stream with an event that is no JSON', stream(Buffer.from('data: {"choices":[{\n\n'))],
  ['a stream of which too much waits', { ...stream(Buffer.concat([beside, beside]), ...many(8_388_608)), stepMs: 5 }],
  ['a stream of which too much is held', stream(...Array.from({ length: 300 }, () => beside))],
  ['a stream that is encoded', { ...stream(), headers: ['content-encoding', 'br'] }],
  ['a whole reply of more than 8 MB', { isStream: false, reads: [Buffer.from('{"a":"'), ...many(8_388_608)] }],
  ['a whole reply that is late', { isStream: false, reads: [wholeOf(LONG)] }],
  ['a whole reply that is no JSON', { isStream: false, reads: [Buffer.from('{"choices":[{')] }],
  ['a whole reply that is encoded', { isStream: false, reads: [], headers: ['content-encoding', 'br'] }],
];

describe('what nobody could look at', () => {
  for (const [name, reply] of REPLIES)
    test(`${name}: is refused, or passes, as its detector says`, async () => {
      const whole = Buffer.concat([...reply.reads]).toString();
      const refused = await screenedReply(mustAnswer, reply);
      assert.equal(refused.refused, 'guardrail_unread');
      assert.ok((refused.report?.not_scanned?.length ?? 0) > 0);
      assert.ok(!refused.out.includes('word') && !refused.out.includes('AAAA'), 'something of it went out');
      const behind = reply.isStream ? [lenientWith({ output: 'after' })] : [];
      for (const compiled of [mayFail, ...behind]) {
        const passed = await screenedReply(compiled, reply);
        assert.equal(passed.refused, null);
        assert.ok(passed.out === whole, 'other bytes');
      }
    });

  test('a whole reply without a byte, as a 204, has nothing to look at and passes', async () => {
    const { refused, ended, report } = await screenedReply(mustAnswer, { isStream: false, reads: [] });
    assert.deepEqual([refused, ended, report?.not_scanned], [null, true, undefined]);
  });

  test('an event without an end is kept up to its maximum; then it is refused, or passes as it comes', async () => {
    const endless = stream(Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"'), ...many(20_000_000));
    assert.equal((await screenedReply(mustAnswer, endless)).refused, 'guardrail_unread');
    const passed = await screenedReply(mayFail, endless);
    assert.ok(passed.out === Buffer.concat([...endless.reads]).toString(), 'other bytes');
    assert.ok(passed.earlyBytes >= 19_000_000, `${passed.earlyBytes} bytes`);
    assert.deepEqual(passed.report?.not_scanned, ['too_large']);
  });

  for (const [name, places, body, kind] of [
    ['a request that is late', chatCompletions.texts, `{"messages":[{"content":"${LONG}"}]}`, 'guardrail_unavailable'],
    ['a request of tokens', embeddings.texts, '{"input":[1,2,3]}', 'guardrail_unread'],
    ['a request of too many texts', chatCompletions.texts, MANY_TEXTS, 'guardrail_unread'],
  ] as const)
    test(`${name}: is refused, or passes, as its detector says`, async () => {
      const whole = { stage: 'input' as const, body: Buffer.from(body), places, parts: null };
      const ask = async () => ({ verdicts: new Map(), silent: [] });
      const refusalBy = async (compiled: CompiledPolicy) =>
        refusalOfUnread(
          await screenAndAsk({ workers: LATE_WORKERS, ask }, compiled, whole, { scopes: null, values: null }),
          compiled,
        );
      assert.equal((await refusalBy(mustAnswer))?.kind, kind);
      assert.equal(await refusalBy(mayFail), null);
    });
});
