// Replies made by a provider to be slow to read: each is read in time that grows with its size (a reader that looks at
// the same bytes again for each key, line or quote would not come back), and says nothing that it does not say.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { KeptReply } from '../../src/generation/dialects/dialect.ts';
import { servedTier, servedTools } from '../../src/generation/dialects/usage/reply-details.ts';
import { EventLines, eventOf } from '../../src/generation/guardrails/event-lines.ts';
import { withDataInOneLine } from '../../src/generation/sse/joined-lines.ts';
import { StoredReply } from '../../src/generation/sse/stored-reply.ts';
import { UsageChunkFilter } from '../../src/generation/sse/usage-chunk-filter.ts';
import { documentUsage, lastEventUsage } from '../../src/generation/sse/usage-window.ts';

/** More than is kept of any reply, so that minutes pass where the work is not linear. */
const BYTES = 4_000_000;

function replyOf(text: string, cut = false): KeptReply {
  const bytes = Buffer.from(text);
  return { beginning: bytes, end: bytes, cut };
}

/** As many of these as fit. */
function many(text: string, bytes = BYTES): string {
  return text.repeat(Math.floor(bytes / text.length));
}

describe('usage', () => {
  const nested = '"usage":{]';
  const count = BYTES / nested.length / 2;
  const texts: readonly (readonly [name: string, text: string])[] = [
    ['objects without an end', `{${many(nested)}}`],
    ['objects that all end together', `{${nested.repeat(count)}${'['.repeat(count - 1)}${'}'.repeat(count)}`],
    ['objects that are no JSON', `{${many('"usage":{x},')}"a":1}`],
    ['objects within objects', `{${many('"usage":{')}`],
    ['keys in strings', `{${many('"\\"usage":{},')}"a":1}`],
    ['keys without a colon', `{${many('"usage"   ')}`],
    ['an odd quote', `{"a":[[{${many('"usage":{},')}"`],
  ];
  for (const [name, text] of texts) {
    test(name, () => {
      for (const cut of [false, true]) assert.equal(documentUsage(replyOf(text, cut)), null);
      for (const deepest of [1, 2])
        assert.equal(
          lastEventUsage(replyOf(`data: ${text}\n\n`), (event) => event.usageAt(deepest)),
          null,
        );
    });
  }
});

const NO_USAGE = (): null => null;

describe('the tier and the tools of a reply', () => {
  const texts: readonly (readonly [name: string, text: string])[] = [
    ['an odd quote', `{"a":[[{${many('"service_tier":"x",')}"${'a'.repeat(BYTES)}`],
    ['keys in strings', `{${many('"\\"service_tier":"x",')}"a":1}`],
    ['values that have no end', `{"a":[[{${many('"service_tier":"')}}`],
    ['tools without an end', `{"response":{${many('"tool_usage":{"n":1]')}}}`],
    ['names of items of a search', `{"a":[${many('"web_search_call"      ,')}1]}`],
    ['tools in strings', `{"response":{${many('"\\"tool_usage":{"n":1},')}"a":1}}`],
  ];
  for (const [name, text] of texts) {
    test(name, () => {
      for (const reply of [replyOf(text), replyOf(text, true), replyOf(`data: ${text}\n\n`)]) {
        assert.equal(servedTier(reply, 2), null);
        assert.deepEqual(servedTools(reply, true, NO_USAGE), []);
      }
    });
  }
});

describe('an event that is screened', () => {
  const texts: readonly (readonly [name: string, text: string, data: string | null])[] = [
    ['short lines that end in carriage returns', `data: {}\r${many('a\r')}\n\n`, ' {}'],
    ['long lines that end in carriage returns', `${many(`${'a'.repeat(400)}\r`)}data: {}\n\n`, ' {}'],
    ['lines that end in either', `${many('a\rb\n')}data:1\r\n\n`, '1'],
    ['a line', `${many('a')}\n\n`, null],
    [
      'data in many lines',
      `${many('data: \r')}\n\n`,
      many('data: \r').replaceAll('data:', '').replaceAll('\r', ' ').slice(0, -1),
    ],
  ];
  for (const [name, text, data] of texts) {
    test(name, () => {
      const bytes = Buffer.from(text);
      const lines = new EventLines();
      const events: ReturnType<typeof eventOf>[] = [];
      for (let at = 0; at < bytes.length; at += 64) events.push(...lines.take(bytes.subarray(at, at + 64)));
      assert.equal(events.length, 1);
      for (const event of [...events, eventOf(bytes)]) {
        assert.ok(event.original.equals(bytes));
        assert.ok(event.bytes.toString('utf8', event.dataStart, event.dataEnd) === data || event.dataStart === -1);
        assert.equal(event.dataStart === -1, data === null);
      }
    });
  }
});

describe('the items of a stored reply', () => {
  const begun = 'data: {"type":"response.output_item.","a":[\n';
  const named = 'event: response.output_item.\ndata: {"a":[\n';
  const whole = 'data: {"type":"response.output_item.added","item":{"id":"msg_1"}}\n';
  for (const [name, text] of [
    ['events whose brackets have no end', `${many(begun)}${whole}`],
    ['named events whose brackets have no end', `${many(named)}${whole}`],
    ['events whose strings have no end', `${many('data: {"type":"response.output_item.","a":"\n')}"\n${whole}`],
  ] as const)
    test(name, () => {
      const items = new StoredReply();
      const bytes = Buffer.from(text);
      items.feed(bytes);
      assert.deepEqual(items.read({ beginning: bytes, end: Buffer.alloc(0), cut: false }).itemIds, ['msg_1']);
    });
});

test('of what is no JSON little is parsed, since each try costs microseconds', (context) => {
  const parse = context.mock.method(JSON, 'parse');
  const line = 'data: {"usage":{\n';
  const lines = many(line, 250_000);
  assert.equal(chatCompletions.readUsage(replyOf(lines)), null);
  assert.equal(chatCompletions.readUsage(withDataInOneLine(replyOf(lines))), null);
  assert.deepEqual(servedTools(replyOf(`{${many('"tool_usage":{1},', 250_000)}"a":1}`), true, NO_USAGE), []);
  const filter = new UsageChunkFilter();
  assert.equal(filter.feed(Buffer.from(lines)).toString() + filter.end().toString(), lines);
  assert.ok(parse.mock.callCount() < 1_000, `${parse.mock.callCount()} texts parsed`);
});

test('blank lines are one event, with the event before them', () => {
  const lines = new EventLines();
  const blank = many('\n', 100_000);
  const whole = `data: 1\n\n${blank}data: 2\r\n\r\n\r\n${blank}`;
  const events = [...lines.take(Buffer.from(whole)), ...lines.take(Buffer.from(`\n${blank}`))];
  assert.equal(
    events.map(({ bytes }) => bytes.toString()).join('') + lines.takeRest().toString(),
    `${whole}\n${blank}`,
  );
  assert.deepEqual(
    events.map(({ bytes, dataStart, dataEnd }) => bytes.toString('utf8', dataStart, dataEnd).trim()).slice(0, 2),
    ['1', '2'],
  );
  assert.ok(events.length <= 3, `${events.length} events`);
});
