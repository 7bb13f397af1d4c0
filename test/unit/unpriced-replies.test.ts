// What has no price in a reply, in replies that were written to be hard to read: however deep a report is, and however
// often a caller wrote the names that are looked for.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { unpricedDetail } from '../../src/domain/settlement/rate-usage.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { Dialect, KeptReply } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { DepthFromEnd, DepthFromStart } from '../../src/platform/bytes/json-depth.ts';
import { cutReply, keptReply } from '../support/kept-replies.ts';

const BOUNDS = { streamed: false, outputTokensMax: null, answers: 1 };

function unpricedOf(dialect: Dialect, reply: KeptReply): string | null {
  const details = { ...dialect.readUsage(reply)?.details, ...dialect.readDetails?.(reply, BOUNDS) };
  return unpricedDetail(details, null);
}

describe('a report deeper than calls can be', () => {
  const deep = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`;
  const COUNTS = '"prompt_tokens":1,"completion_tokens":1,"input_tokens":1,"output_tokens":1';
  for (const [dialect, body, found] of [
    [chatCompletions, `{"choices":[],"usage":{${COUNTS},"server_tool_use":${deep}}}`, /^server_tool_use a\.a\.a/],
    [messages, `{"usage":{${COUNTS},"server_tool_use":${deep}}}`, /^server_tool_use a\.a\.a/],
    [responses, `{"tool_usage":${deep},"usage":{${COUNTS}}}`, /^tool_usage a\.a\.a/],
  ] as const)
    test(dialect.api, () => assert.match(unpricedOf(dialect, keptReply(body)) ?? '', found));
});

describe('names that a caller wrote, thousands of times', () => {
  const ITEM = '{"service_tier":"x","tool_usage":{"web_search":{"num_requests":1}}}';
  const list = (items: number): string => `[${Array.from({ length: items }, () => ITEM).join()}]`;
  const own = '"service_tier":"flex"';
  /** A caller's own name, which ends as the name of the tier does. */
  const LIKE_IT = '"\\"service_tier":"x"';
  const event = (type: string, rest: string): string => `data: {"type":"${type}","response":{"id":"r"${rest}}}\n\n`;
  const stream = (rest: string): string =>
    event('response.created', `,"tools":${list(1_500)}`) +
    event('response.completed', `,"tools":${list(1_500)}${rest}`);
  const CASES: Readonly<Record<string, readonly [dialect: Dialect, reply: KeptReply, found: string | null]>> = {
    'a document': [responses, keptReply(`{"tools":${list(3_000)}}`), null],
    'a document with its own tier': [responses, keptReply(`{"tools":${list(3_000)},${own}}`), 'service_tier flex'],
    'a document that broke off': [responses, cutReply(`{${own},"tools":${list(3_000)}`), 'service_tier flex'],
    'a long document': [responses, keptReply(`{"tools":${list(5_000)},${own}}`), 'service_tier flex'],
    'a stream': [responses, keptReply(stream('')), null],
    'a stream with its own tier': [responses, keptReply(stream(`,${own}`)), 'service_tier flex'],
    'a long stream': [responses, keptReply(stream('') + stream(`,${own}`)), 'service_tier flex'],
    chat: [chatCompletions, keptReply(`{"choices":${list(3_000)},${own}}`), 'service_tier flex'],
    'a stream with the end of a name': [
      responses,
      keptReply(stream(`,${own},"metadata":{${LIKE_IT}}`)),
      'service_tier flex',
    ],
    'a stream with many ends of names': [
      responses,
      keptReply(`data: {"response":{${own},"metadata":{${Array.from({ length: 5_000 }, () => LIKE_IT).join()}}}}\n\n`),
      'service_tier flex',
    ],
  };

  for (const [name, [dialect, reply, found]] of Object.entries(CASES)) {
    test(`${name}: they cost one look at the reply`, (context) => {
      let passedBytes = 0;
      const last = new WeakMap<object, number>();
      for (const kind of [DepthFromStart, DepthFromEnd]) {
        const at = Reflect.get(kind.prototype, 'at') as (key: number) => number;
        context.mock.method(kind.prototype, 'at', function (this: DepthFromStart & DepthFromEnd, key: number): number {
          passedBytes += Math.abs(key - (last.get(this) ?? 0));
          last.set(this, key);
          return at.call(this, key);
        });
      }
      assert.equal(unpricedOf(dialect, reply), found);
      const bytes = reply.beginning.length + reply.end.length;
      assert.ok(passedBytes <= 6 * bytes, `${passedBytes} of ${bytes} bytes`);
    });
  }
});
