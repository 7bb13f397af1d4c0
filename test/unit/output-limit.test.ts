// Whether a reply ended at its output limit, as each dialect says it: in bodies and streams, split anywhere, and not
// where callers write the same words.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { type SplitPlan, splitBytes } from '../support/byte-splits.ts';
import { keptPieces } from '../support/kept-replies.ts';
import { loadRecordedExchanges } from '../support/recorded-exchanges.ts';
import { parseDocument } from '../support/recorded-usage.ts';
import { sharedAssets } from '../support/shared-assets.ts';

const SEED = Number(process.env.TEST_SEED ?? 20_261_120);
const SKIP = sharedAssets() === null ? 'no recordings beside the repository' : false;
const LONG = 'x'.repeat(400_000);

const CHAT_USAGE = '{"prompt_tokens":7,"completion_tokens":2}';
const chunk = (reason: string, content = 'a') =>
  `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":${reason}}],"usage":null}\n\n`;
const CHAT_END = `data: {"id":"c","choices":[],"usage":${CHAT_USAGE}}\n\ndata: [DONE]\n\n`;
const START =
  'event: message_start\ndata: {"type":"message_start","message":{"content":[],"stop_reason":null,' +
  '"usage":{"input_tokens":7,"output_tokens":1}}}\n\n';
const delta = (reason: string) =>
  `event: message_delta\ndata: ` +
  `{"type":"message_delta","delta":{"stop_reason":${reason},"stop_sequence":null},"usage":{"output_tokens":2}}\n\n`;
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
const INCOMPLETE =
  '"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"},"max_output_tokens":16';
const FILTERED = '"status":"incomplete","incomplete_details":{"reason":"content_filter"},"max_output_tokens":16';
const terminal = (name: string, fields: string) =>
  `event: response.${name}\ndata: {"type":"response.${name}","response":{"id":"r",${fields},"usage":{}}}\n\n`;
const CREATED = terminal('created', '"status":"in_progress","incomplete_details":null,"max_output_tokens":16');

const CASES: readonly (readonly [name: string, dialect: Dialect, reply: string, truncated: boolean])[] = [
  [
    'chat: length',
    chatCompletions,
    `{"choices":[{"message":{"content":"a"},"finish_reason":"length"}],"usage":${CHAT_USAGE}}`,
    true,
  ],
  [
    'chat: spaces',
    chatCompletions,
    '{\n  "choices": [\n    {\n      "finish_reason" : \r\n "length"\n    }\n  ]\n}\n',
    true,
  ],
  [
    'chat: stop',
    chatCompletions,
    `{"choices":[{"message":{"content":"length"},"finish_reason":"stop"}],"usage":${CHAT_USAGE}}`,
    false,
  ],
  [
    'chat: the second of three',
    chatCompletions,
    '{"choices":[{"finish_reason":"stop"},{"finish_reason":"length"},{"finish_reason":"stop"}]}',
    true,
  ],
  [
    'chat: quoted',
    chatCompletions,
    '{"choices":[{"message":{"content":"\\"finish_reason\\":\\"length\\""},"finish_reason":"stop"}]}',
    false,
  ],
  [
    'chat: another key of that ending',
    chatCompletions,
    '{"choices":[{"a\\"finish_reason":"length","native_finish_reason":"length","finish_reason":"stop"}]}',
    false,
  ],
  [
    'chat: deeper and higher',
    chatCompletions,
    '{"finish_reason":"length","choices":[{"x":{"finish_reason":"length"},"finish_reason":"stop"}]}',
    false,
  ],
  [
    'chat: before a body too long to keep',
    chatCompletions,
    `{"choices":[{"finish_reason":"length","message":{"content":"${LONG}"}}]}`,
    true,
  ],
  [
    'chat: behind a body too long to keep',
    chatCompletions,
    `{"choices":[{"message":{"content":"${LONG}"},"finish_reason":"length"}]}`,
    true,
  ],
  ['chat stream: length', chatCompletions, `${chunk('null')}${chunk('"length"')}${CHAT_END}`, true],
  [
    'chat stream: stop',
    chatCompletions,
    `${chunk('null', '\\"finish_reason\\":\\"length\\"')}${chunk('"stop"', 'length')}${CHAT_END}`,
    false,
  ],
  ['chat stream: CRLF and spaces', chatCompletions, `${chunk(' "length" ')}${CHAT_END}`.replaceAll('\n', '\r\n'), true],
  ['chat stream: behind much', chatCompletions, `${chunk('null', LONG)}${chunk('"length"')}${CHAT_END}`, true],
  [
    'messages: max_tokens',
    messages,
    '{"content":[{"type":"text","text":"a"}],"stop_reason":"max_tokens","usage":{"output_tokens":2}}',
    true,
  ],
  ['messages: end_turn', messages, '{"content":[],"stop_reason":"end_turn"}', false],
  [
    'messages: a tool’s input',
    messages,
    '{"content":[{"type":"tool_use","input":{"stop_reason":"max_tokens"}}],"stop_reason":"tool_use"}',
    false,
  ],
  ['messages stream: max_tokens', messages, `${START}${delta('"max_tokens"')}${STOP}`, true],
  ['messages stream: a space', messages, `${START}${delta(' "max_tokens"')}${STOP}`, true],
  ['messages stream: end_turn', messages, `${START}${delta('"end_turn"')}${STOP}`, false],
  [
    'messages stream: a tool’s input',
    messages,
    `${START}data: {"type":"content_block_start","content_block":{"input":{"stop_reason":"max_tokens"}}}\n\n${delta('"tool_use"')}${STOP}`,
    false,
  ],
  ['responses: incomplete', responses, `{"id":"r",${INCOMPLETE},"output":[]}`, true],
  ['responses: a long one', responses, `{"id":"r",${INCOMPLETE},"output":[{"text":"${LONG}"}]}`, true],
  ['responses: filtered', responses, `{"id":"r",${FILTERED},"output":[]}`, false],
  [
    'responses: metadata',
    responses,
    '{"status":"completed","incomplete_details":null,"metadata":{"reason":"max_output_tokens"}}',
    false,
  ],
  ['responses stream: incomplete', responses, `${CREATED}${terminal('incomplete', INCOMPLETE)}`, true],
  [
    'responses stream: a space',
    responses,
    `${CREATED}${terminal('incomplete', INCOMPLETE.replaceAll(':', ' : '))}`,
    true,
  ],
  ['responses stream: filtered', responses, `${CREATED}${terminal('incomplete', FILTERED)}`, false],
  [
    'responses stream: completed',
    responses,
    `${CREATED}${terminal('completed', '"incomplete_details":null,"metadata":{"reason":"max_output_tokens"}')}`,
    false,
  ],
  [
    'responses stream: its end too long to keep',
    responses,
    `${CREATED}${terminal('incomplete', `${INCOMPLETE},"output":"${LONG}"`)}`,
    true,
  ],
  [
    'responses stream: filtered after much',
    responses,
    `${CREATED}data: {"a":"${LONG}"}\n\n${terminal('incomplete', FILTERED)}`,
    false,
  ],
  ['nothing', chatCompletions, '', false],
];

function isTruncated(dialect: Dialect, body: Buffer, split: SplitPlan, cut = false): boolean | undefined {
  const watch = dialect.watchStreamEnd();
  const pieces = splitBytes(body, split);
  for (const piece of pieces) watch.feed(piece);
  return dialect.isTruncated?.(keptPieces(pieces, cut), watch.endedBy);
}

function splitsOf(index: number): SplitPlan[] {
  return [
    { kind: 'whole' },
    ...[6, 90, 1400].map((bytesMax, row): SplitPlan => ({ kind: 'random', seed: SEED + index * 7 + row, bytesMax })),
  ];
}

describe(`a reply that ended at its output limit (TEST_SEED=${SEED})`, () => {
  for (const [index, [name, dialect, reply, truncated]] of CASES.entries()) {
    test(name, () => {
      for (const split of splitsOf(index))
        assert.equal(isTruncated(dialect, Buffer.from(reply), split), truncated, JSON.stringify(split));
    });
  }

  test('cut anywhere: known from the first byte on that tells it, and never without', () => {
    for (const [name, dialect, reply, truncated] of CASES.filter(([, , text]) => text.length < 2_000)) {
      const answers = Array.from({ length: reply.length }, (_, length) =>
        isTruncated(dialect, Buffer.from(reply.slice(0, length)), { kind: 'whole' }, true),
      );
      if (!truncated) assert.ok(!answers.includes(true), name);
      const known = answers.indexOf(true);
      assert.ok(known === -1 || answers.slice(known).every((answer) => answer === true), name);
    }
  });
});

interface Choice {
  readonly finish_reason?: unknown;
}

/** What parsing all of the reply says. */
function limitByParsing(body: Buffer): boolean {
  const text = body.toString();
  const documents = /^\s*\{/.test(text)
    ? [text]
    : text.split(/\r?\n/).flatMap((line) => (/^data: *\{/.test(line) ? [line.slice('data:'.length)] : []));
  return documents.some((document) => {
    const data = (parseDocument(document) ?? {}) as Record<string, Record<string, Record<string, unknown>> | undefined>;
    const choices = (data['choices'] ?? []) as unknown as readonly Choice[];
    const reasons = [
      ...choices.map(({ finish_reason }) => finish_reason),
      data['stop_reason'],
      data['delta']?.['stop_reason'],
    ];
    const details = [data['incomplete_details'], data['response']?.['incomplete_details']].map(
      (found) => found?.['reason'],
    );
    return (
      reasons.some((reason) => reason === 'length' || reason === 'max_tokens') ||
      details.includes('max_output_tokens' as never)
    );
  });
}

for (const [dialect, format] of [
  [chatCompletions, 'chat'],
  [messages, 'messages'],
  [responses, 'responses'],
] as const) {
  test(`recorded ${format} replies (TEST_SEED=${SEED})`, { skip: SKIP }, (context) => {
    let truncated = 0;
    const exchanges = loadRecordedExchanges(format).filter(({ status }) => status === 200);
    for (const [index, { name, responseBody }] of exchanges.entries()) {
      const expected = limitByParsing(responseBody);
      if (expected) truncated += 1;
      for (const split of splitsOf(index)) assert.equal(isTruncated(dialect, responseBody, split), expected, name);
    }
    context.diagnostic(`${truncated} of ${exchanges.length} ended at their limit`);
  });
}
