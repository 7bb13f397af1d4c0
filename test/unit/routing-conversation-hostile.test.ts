// Conversations made to be slow or to break the reader: each is read, in time that grows with its size (a quadratic
// reader would not come back), without an exception, in the calling thread and in the worker pool alike; and what
// becomes of them when the pool fails.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import type { RoutedApi } from '../../src/domain/models/apis.ts';
import { prepareConversation } from '../../src/domain/routing/conversation/prepare-conversation.ts';
import type {
  PrepareConversationInput,
  PreparedConversation,
} from '../../src/domain/routing/conversation/prepared-conversation.ts';
import { type ConversationWorkers, prepareBody } from '../../src/generation/routing/prepare-body.ts';
import { createLog } from '../../src/platform/log.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { WorkerPool, type WorkerResult } from '../../src/platform/worker-pool.ts';
import { howMany } from '../support/at-length.ts';

const APIS: readonly RoutedApi[] = ['chat_completions', 'responses', 'messages', 'count_tokens'];
const MEGABYTE = 1_000_000;
/** A quarter of what hurts is enough for a reader that is not linear never to come back from. */
const PARTS = howMany({ short: 4, long: 1 });
const many = (count: number): number => count / PARTS;

const userBody = (content: unknown): string =>
  JSON.stringify({ messages: [{ role: 'user', content }], input: [{ role: 'user', content }] });
const bodyOf = (messages: readonly unknown[]): string => JSON.stringify({ messages, input: messages });
const parts = (count: number, text: string): unknown => Array.from({ length: count }, () => ({ type: 'text', text }));
/** Written by hand: JSON.stringify does not go as deep as a client can. */
const nested = (depth: number): string => {
  const block = `${'{"type":"tool_result","text":"deep","content":['.repeat(depth)}${']}'.repeat(depth)}`;
  return userBody([{ type: 'text', text: 'top' }]).replaceAll('"content":[', `"content":[${block},`);
};

/** Name, body, and the number of human messages in it. */
const HOSTILE: readonly (readonly [string, string, number])[] = [
  ['much one character', userBody('a'.repeat(many(MEGABYTE))), 1],
  ['much one unusual character', userBody('\u{1f642}'.repeat(many(MEGABYTE / 4))), 1],
  ['much space', userBody(' '.repeat(many(MEGABYTE))), 0],
  [
    'much space before and after a word',
    userBody(`${' '.repeat(many(MEGABYTE / 2))}a${'\n'.repeat(many(MEGABYTE / 2))}`),
    1,
  ],
  ['much <', userBody('<'.repeat(many(MEGABYTE))), 1],
  ['much lines that begin with <', userBody('\n<'.repeat(many(MEGABYTE / 2))), 1],
  ['space and < in turns', userBody('   <'.repeat(many(MEGABYTE / 4))), 1],
  ['reminders that never end', userBody('<system-reminder>\n'.repeat(many(60_000))), 1],
  [
    'reminders in one another',
    userBody(`${'<system-reminder>\n'.repeat(many(30_000))}${'</system-reminder>'.repeat(many(30_000))}`),
    0,
  ],
  ['reminders in one another, one end', userBody(`${'<system-reminder>\n'.repeat(many(60_000))}</system-reminder>`), 0],
  [
    'reminders in a line, one behind the other',
    userBody('<system-reminder></system-reminder>x'.repeat(many(30_000))),
    1,
  ],
  ['environments in a line that never end', userBody('x<env>'.repeat(many(150_000))), 1],
  ['environments and reminders begun in turns', userBody('x<env>y<system-reminder>'.repeat(many(40_000))), 1],
  [
    'environments in one another in a line',
    userBody(`${'x<env>'.repeat(many(60_000))}${'y</env>'.repeat(many(60_000))}`),
    1,
  ],
  [
    'environments in one another, half of them ended',
    userBody(`${'<env>x'.repeat(many(60_000))}${'</env>'.repeat(many(30_000))}`),
    0,
  ],
  ['reminders side by side', userBody('<system-reminder></system-reminder>\n'.repeat(many(30_000))), 0],
  ['ends without beginnings', userBody('</system-reminder>\n'.repeat(many(60_000))), 1],
  ['a beginning of a tag, over and over', userBody(`<skill>\n${'<skills\n'.repeat(many(100_000))}</skill>`), 0],
  [
    'every known element begun',
    userBody('<skill>\n<hook_prompt>\n<bash-input>\n<task>\n<user_query>\n'.repeat(many(20_000))),
    1,
  ],
  ['wrappers that end and never began', userBody(`${'x</user_query>\n'.repeat(many(60_000))}</user_query>`), 1],
  [
    'thousands of messages',
    bodyOf(Array.from({ length: many(10_000) }, (_, index) => ({ role: 'user', content: `message ${index}` }))),
    many(10_000),
  ],
  ['many tiny blocks', userBody(parts(many(100_000), 'x')), 1],
  ['many empty blocks', userBody(parts(many(100_000), '')), 0],
  ['blocks 250 deep', nested(250), 1],
  ['blocks tens of thousands deep', nested(many(50_000)), 1],
  ['half characters', userBody('\ud83d'.repeat(many(10_000)) + '\ude42'.repeat(many(10_000))), 1],
  [
    'a session id that is as long',
    JSON.stringify({
      metadata: { user_id: `{"session_id":"${'a'.repeat(many(MEGABYTE))}"}` },
      prompt_cache_key: 'k'.repeat(many(MEGABYTE)),
    }),
    0,
  ],
];

const MALFORMED: readonly string[] = [
  '',
  'null',
  '5',
  '"text"',
  '[]',
  '{}',
  '{',
  '{"messages":',
  '{"messages":null,"input":null}',
  '{"messages":{},"input":{}}',
  '{"messages":"Hello","input":5}',
  '{"messages":[null,1,"a",[],{}],"input":[null,1,"a",[],{}]}',
  '{"messages":[{"role":"user"}],"input":[{"role":"user"}]}',
  '{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"input":[{"role":"user","content":5}]}',
  '{"messages":[{"role":"user","content":[null,"a",5,[],{"type":"text"},{"type":"text","text":5},{"text":"a"}]}]}',
  '{"messages":[{"role":"assistant","content":[null,{"type":"thinking","signature":5}],' +
    '"tool_calls":[null,{"extra_content":5}],"reasoning_details":"x"}]}',
  '{"__proto__":{"messages":[]},"constructor":5,"metadata":[],"prompt_cache_key":{}}',
  `${'['.repeat(8000)}`,
  `{"messages":${'['.repeat(8000)}${']'.repeat(8000)}}`,
];

describe('a hostile conversation is read', () => {
  const pool = new WorkerPool({
    threads: 1,
    queueBytesMax: 64 * MEGABYTE,
    log: createLog({ level: 'silent', process: 'test' }),
    metrics: new MetricsRegistry(),
  });
  after(() => pool.close());
  // A busy machine may take its time to start a thread.
  const patient: ConversationWorkers = {
    run: (task, input, options) => pool.run(task, input, { ...options, deadlineMs: 60_000 }),
  };

  for (const [name, text, humanMessages] of HOSTILE) {
    test(name, async () => {
      const body = Buffer.from(text);
      for (const api of APIS) {
        const prepared = prepareConversation({ api, body });
        assert.equal(prepared.humanTexts.length, Math.min(3, humanMessages), api);
        assert.ok(prepared.humanTexts.join('').length <= 4000);
        assert.ok(prepared.humanTexts.every((human) => human.isWellFormed() && !human.includes('deep')));
        assert.equal(prepared.bodySession, null);
      }
      assert.deepEqual(await prepareBody('messages', body, patient), prepareConversation({ api: 'messages', body }));
    });
  }

  test('what is no conversation has no human text', () => {
    for (const text of MALFORMED) {
      for (const api of APIS) {
        const { humanTexts, reasoning, isFollowUp, opener } = prepareConversation({ api, body: Buffer.from(text) });
        assert.deepEqual([humanTexts, reasoning, isFollowUp, opener], [[], 'none', false, null], text.slice(0, 100));
      }
    }
    for (const api of APIS)
      assert.deepEqual(prepareConversation({ api, body: Uint8Array.of(0xff, 0xfe, 0x7b, 0x80) }).humanTexts, []);
  });

  test('any JSON', () => {
    const content = fc.oneof(
      fc.jsonValue(),
      fc.array(
        fc.record({
          type: fc.constantFrom('text', 'input_text', 'thinking', 5),
          text: fc.jsonValue(),
          signature: fc.jsonValue(),
        }),
      ),
    );
    const message = fc.record({
      role: fc.constantFrom('user', 'assistant', null),
      type: fc.constantFrom('message', 'reasoning', 5),
      content,
      tool_calls: fc.jsonValue(),
      encrypted_content: fc.jsonValue(),
    });
    const body = fc.record({
      messages: fc.array(fc.oneof(message, fc.jsonValue())),
      input: fc.array(message),
      metadata: fc.jsonValue(),
      previous_response_id: fc.jsonValue(),
    });
    fc.assert(
      fc.property(
        fc.constantFrom(...APIS),
        fc.oneof(body, fc.jsonValue()),
        (api, value) => void prepareConversation({ api, body: Buffer.from(JSON.stringify(value)) }),
      ),
    );
  });
});

describe('where a body is read', () => {
  const answer: PreparedConversation = prepareConversation({ api: 'messages', body: Buffer.from('{}') });
  const small = Buffer.from(userBody('a'.repeat(7000)));
  const big = Buffer.from(userBody('a'.repeat(9000)));

  test('a small one here and at once, a big one as a copy in the pool', async () => {
    const calls: Parameters<ConversationWorkers['run']>[] = [];
    const workers: ConversationWorkers = {
      run: <T>(...call: Parameters<ConversationWorkers['run']>): Promise<WorkerResult<T>> => {
        calls.push(call);
        return Promise.resolve({ ok: true, value: answer as T });
      },
    };
    assert.equal((prepareBody('messages', small, workers) as PreparedConversation).humanTexts.length, 1);
    assert.deepEqual(calls, []);
    assert.equal(await prepareBody('responses', big, workers), answer);
    const [task, input, options]: Parameters<ConversationWorkers['run']> = calls.at(0) ?? assert.fail();
    const { api, body } = input as PrepareConversationInput;
    assert.deepEqual(
      [task, api, options.bytes, options.transfer?.[0] === body.buffer],
      ['prepare-conversation', 'responses', big.length, true],
    );
    assert.notEqual(body.buffer, big.buffer);
    assert.ok(big.equals(body));
  });

  test('nothing when the pool fails', async () => {
    for (const reason of ['queue_full', 'deadline', 'crashed'] as const) {
      assert.equal(await prepareBody('messages', big, { run: () => Promise.resolve({ ok: false, reason }) }), null);
    }
  });
});
