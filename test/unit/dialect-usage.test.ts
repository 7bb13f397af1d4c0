// Usage as providers report it, and what is not it: keys of the same name in tool calls, schemas and metadata, and
// reports that broke off.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { countTokens } from '../../src/generation/dialects/count-tokens.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { withDataInOneLine } from '../../src/generation/sse/joined-lines.ts';
import { readResponseId } from '../../src/generation/sse/response-id.ts';
import { cutReply, keptReply } from '../support/kept-replies.ts';

const FAKE = '{"prompt_tokens":0,"completion_tokens":0,"input_tokens":0,"output_tokens":0}';
const CHAT = '{"prompt_tokens":7,"completion_tokens":2}';
const TYPED = '{"input_tokens":7,"output_tokens":2}';
const START = `data: {"type":"message_start","message":{"id":"m","content":[],"stop_reason":null,"usage":{"input_tokens":7,"output_tokens":1}}}\n\n`;
const STOP = 'data: {"type":"message_stop"}\n\n';
const LONG = 'x'.repeat(400_000);
const PROMPT_LOGPROBS = Array.from({ length: 2_000 }, (_, at) => `{"${at}":{"logprob":-0.5,"rank":1}}`).join();
const [PARSED_FAKE, PARSED_CHAT, PARSED_TYPED] = [FAKE, CHAT, TYPED].map((text) => JSON.parse(text));

/** An event's data as an indented document, a line of data for each of its lines. */
function inLines(data: object, end = '\n'): string {
  return JSON.stringify(data, null, 1).replace(/.+\n?/g, (line) => `data: ${line.trimEnd()}${end}`);
}

type Counts = readonly [input: number | null, output: number | null] | null;

function countsOf(dialect: Dialect, reply: string): Counts {
  const usage = dialect.readUsage(withDataInOneLine(keptReply(reply)));
  return usage === null ? null : [usage.inputTokens, usage.outputTokens];
}

describe('usage is known by its place', () => {
  const cases: readonly (readonly [name: string, dialect: Dialect, reply: string, expected: Counts])[] = [
    ['chat: first key', chatCompletions, `{"usage":${CHAT},"choices":[]}`, [7, 2]],
    [
      'chat: first key of a body too long to keep',
      chatCompletions,
      `{"usage":${CHAT},"choices":[{"message":{"content":"${LONG}"}}]}`,
      [7, 2],
    ],
    [
      'chat: last key of a body too long to keep',
      chatCompletions,
      `{"choices":[{"message":{"content":"${LONG}"}}],"usage":${CHAT}}`,
      [7, 2],
    ],
    [
      'chat: between a long answer and what vLLM tells of the prompt',
      chatCompletions,
      `{"choices":[{"message":{"content":"${LONG}"}}],"usage":${CHAT},"prompt_logprobs":[${PROMPT_LOGPROBS}]}`,
      [7, 2],
    ],
    [
      'chat: in the middle of a body too long to keep, with line ends and nested ones around it',
      chatCompletions,
      `{\n "x": [{"usage": ${FAKE}, "y": "${LONG}"}],\n "usage": ${CHAT},\n "z": {"usage": ${FAKE}, "y": [${PROMPT_LOGPROBS}]}\n}\n`,
      [7, 2],
    ],
    [
      'chat: in the middle, and again near the end of a body too long to keep',
      chatCompletions,
      `{"x":"${LONG}","usage":${FAKE},"y":[${PROMPT_LOGPROBS}],"usage":${CHAT}}`,
      [7, 2],
    ],
    [
      'chat: twice in the middle of a body too long to keep',
      chatCompletions,
      `{"x":"${LONG}","usage":${FAKE},"usage":${CHAT},"y":[${PROMPT_LOGPROBS}]}`,
      [7, 2],
    ],
    [
      'chat: twice before a body too long to keep, and to condense',
      chatCompletions,
      `{"usage":${FAKE},"usage":${CHAT},${'"a":1,'.repeat(60_000)}"b":{"usage":${FAKE}}}`,
      [7, 2],
    ],
    [
      'messages: in the middle of a body too long to keep',
      messages,
      `{"content":[{"type":"text","text":"${LONG}"}],"usage":${TYPED},"container":{"files":[${PROMPT_LOGPROBS}]}}`,
      [7, 2],
    ],
    [
      'responses: between a long answer and many tools',
      responses,
      `{"output":[{"text":"${LONG}"}],"usage":${TYPED},"tools":[${PROMPT_LOGPROBS},{"parameters":{"usage":${FAKE}}}]}`,
      [7, 2],
    ],
    [
      'responses: nested ones alone, in the middle of a body too long to keep',
      responses,
      `{"output":[{"text":"${LONG}"},{"usage":${FAKE}}],"tools":[{"usage":${FAKE}},${PROMPT_LOGPROBS}]}`,
      null,
    ],
    [
      'chat: behind blanks sent to keep the connection',
      chatCompletions,
      `\n\n   \n{"choices":[],"usage":${CHAT}}`,
      [7, 2],
    ],
    [
      'chat: nested ones around it',
      chatCompletions,
      `{"a":{"usage":${FAKE}},"usage":${CHAT},"x":{"usage":${FAKE}},"y":[{"usage":${FAKE}}]}`,
      [7, 2],
    ],
    ['chat: nested ones alone', chatCompletions, `{"choices":[{"message":{"audio":{"usage":${FAKE}}}}]}`, null],
    ['chat: null', chatCompletions, '{"choices":[],"usage":null}', null],
    ['chat: input and total', chatCompletions, '{"usage":{"prompt_tokens":7,"total_tokens":9}}', [7, 2]],
    ['chat: output and total', chatCompletions, '{"usage":{"completion_tokens":2,"total_tokens":9}}', [7, 2]],
    ['chat: a total of the input alone', chatCompletions, '{"usage":{"prompt_tokens":7,"total_tokens":7}}', [7, null]],
    ['chat: a total that is less', chatCompletions, '{"usage":{"prompt_tokens":7,"total_tokens":5}}', [7, null]],
    ['chat: a total that is none', chatCompletions, '{"usage":{"prompt_tokens":7,"total_tokens":"9"}}', [7, null]],
    ['chat: a total alone', chatCompletions, '{"usage":{"total_tokens":9}}', [null, null]],
    ['responses: input and total', responses, '{"usage":{"input_tokens":7,"total_tokens":9}}', [7, 2]],
    [
      'chat: braces and quotes in strings',
      chatCompletions,
      `{"a":"}]\\"\\\\","usage":${CHAT},"b":"{[\\\\\\"","c":"\\\\"}`,
      [7, 2],
    ],
    [
      'chat stream',
      chatCompletions,
      `data: {"choices":[],"usage":null}\n\ndata: {"choices":[],"usage":${CHAT}}\n\ndata: [DONE]\n\n`,
      [7, 2],
    ],
    [
      'chat stream: nested after it',
      chatCompletions,
      `data: {"usage":${CHAT}}\n\ndata: {"x":{"usage":${FAKE}}}\n\ndata: [DONE]\n\n`,
      [7, 2],
    ],
    [
      'chat stream: an empty one after it',
      chatCompletions,
      `data: {"usage":${CHAT}}\n\ndata: {"usage":{}}\n\ndata: [DONE]\n\n`,
      [7, 2],
    ],
    [
      'chat stream: Groq',
      chatCompletions,
      `data: {"choices":[],"x_groq":{"id":"r","usage":${CHAT}}}\r\n\r\ndata: [DONE]\r\n\r\n`,
      [7, 2],
    ],
    [
      'chat stream: Moonshot',
      chatCompletions,
      `data: {"choices":[{"index":0,"delta":{},"usage":${CHAT}}]}\n\ndata: [DONE]\n\n`,
      [7, 2],
    ],
    [
      'responses',
      responses,
      `{"id":"r","tools":[{"parameters":{"usage":${FAKE}}}],"usage":${TYPED},"metadata":{"usage":"none"}}`,
      [7, 2],
    ],
    [
      'responses: schemas after it',
      responses,
      `{"usage":${TYPED},"tools":[{"parameters":{"properties":{"usage":${FAKE}}}}]}`,
      [7, 2],
    ],
    [
      "responses stream: a caller's name that ends in the same way",
      responses,
      `data: {"type":"response.completed","response":{"usage":${TYPED},"tools":[{"parameters":{"\\"usage":${FAKE}}}]}}\n\n`,
      [7, 2],
    ],
    [
      "responses: a caller's name that ends in the same way, in a body too long to keep",
      responses,
      `{"tools":[{"parameters":{"\\"usage":${FAKE}}}],"usage":${TYPED},"text":"${LONG}"}`,
      [7, 2],
    ],
    [
      'responses stream',
      responses,
      `data: {"type":"response.completed","response":{"usage":${TYPED},"tools":[{"usage":${FAKE}}]},"n":8}\n\n`,
      [7, 2],
    ],
    [
      'responses stream: a very long end',
      responses,
      `data: {"type":"response.completed","response":{"a":"${LONG}","usage":${TYPED}}}\n\n`,
      [7, 2],
    ],
    [
      'responses stream: failed',
      responses,
      `data: {"type":"response.output_item.done","item":{"usage":${FAKE}}}\n\ndata: {"type":"response.failed","response":{"usage":null}}\n\n`,
      null,
    ],
    [
      'responses stream: only an item',
      responses,
      `event: response.output_item.done\ndata: {"item":{"usage":${FAKE}}}\n\n`,
      null,
    ],
    [
      'messages',
      messages,
      `{"content":[{"type":"tool_use","input":{"usage":${FAKE}}}],"usage":{"input_tokens":7,"output_tokens":2,"iterations":[${FAKE}]}}`,
      [7, 2],
    ],
    [
      'messages stream',
      messages,
      `${START}data: {"type":"message_delta","delta":{},"usage":{"output_tokens":2}}\n\n${STOP}`,
      [7, 2],
    ],
    [
      'messages stream: behind a byte order mark',
      messages,
      `\ufeff${START}data: {"type":"message_delta","delta":{},"usage":{"output_tokens":2}}\n\n${STOP}`,
      [7, 2],
    ],
    [
      'messages stream: counts repeated',
      messages,
      `${START}data: {"type":"message_delta","usage":{"input_tokens":9,"output_tokens":2}}\n\n${STOP}`,
      [9, 2],
    ],
    [
      'messages stream: zeros filled in',
      messages,
      `${START}data: {"type":"message_delta","usage":{"input_tokens":0,"output_tokens":0}}\n\n${STOP}`,
      [7, 0],
    ],
    [
      'messages stream: a long one',
      messages,
      `${START}data: {"a":"${LONG}"}\n\ndata: {"type":"message_delta","usage":{"output_tokens":2}}\n\n${STOP}`,
      [7, 2],
    ],
    [
      'messages stream: a tool says usage',
      messages,
      `${START}data: {"type":"content_block_start","content_block":{"input":{"usage":${FAKE}}}}\n\n`,
      [7, null],
    ],
    ...[
      `{"message":{"usage":{"input_tokens":7,"output_tokens":1,"type":"x"}},"type":"message_start"}`,
      `{"n":1,"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}`,
      `{"message":{"usage":{"input_tokens":7,"output_tokens":1}},"\\u0074ype":"message_start","z":"type"}`,
    ].map((start): readonly [string, Dialect, string, Counts] => [
      `messages stream: a beginning whose type is not first: ${start}`,
      messages,
      `data: ${start}\n\ndata: {"usage":{"output_tokens":2},"type":"message_delta"}\n\n${STOP}`,
      [7, 2],
    ]),
    [
      'messages stream: a first event of another type',
      messages,
      `data: {"x":{"usage":{"input_tokens":7,"output_tokens":1},"type":"message_start"},"type":"y"}\n\n${STOP}`,
      null,
    ],
    ['messages stream: without final counts', messages, `${START}${STOP}`, [7, null]],
    [
      'messages stream: whole when it begins',
      messages,
      `${START.replace('"stop_reason":null', '"stop_reason":"tool_use"')}${STOP}`,
      [7, 1],
    ],
    ...['\n', '\r\n'].flatMap((end): (readonly [string, Dialect, string, Counts])[] => [
      [
        `chat stream: data in many lines, behind counts of the way, ${JSON.stringify(end)}`,
        chatCompletions,
        `data: {"usage":${FAKE}}${end}${end}${inLines({ choices: [{ usage: PARSED_FAKE }], usage: PARSED_CHAT }, end)}${end}data: [DONE]${end}${end}`,
        [7, 2],
      ],
      [
        `chat stream: data in many lines, the usage in a choice, ${JSON.stringify(end)}`,
        chatCompletions,
        `${inLines({ choices: [{ usage: PARSED_CHAT }] }, end)}${end}`,
        [7, 2],
      ],
      [
        `chat stream: data in many lines, too long to keep, ${JSON.stringify(end)}`,
        chatCompletions,
        `${inLines({ a: LONG.slice(200_000), b: { usage: PARSED_FAKE }, usage: PARSED_CHAT, c: { usage: PARSED_FAKE } }, end)}${end}`,
        [7, 2],
      ],
      [
        `chat stream: events without a blank line between them, ${JSON.stringify(end)}`,
        chatCompletions,
        `data: {"choices":[],"usage":null}${end}data: {"choices":[],"usage":${CHAT}}${end}data: {"x":{"usage":${FAKE}}}${end}data: [DONE]${end}`,
        [7, 2],
      ],
      [
        `responses stream: data in many lines, a tool says usage, ${JSON.stringify(end)}`,
        responses,
        `event: response.output_item.done${end}${inLines({ item: { usage: PARSED_FAKE } }, end)}${end}event: response.completed${end}${inLines({ response: { tools: [{ usage: PARSED_FAKE }], usage: PARSED_TYPED, x: { usage: PARSED_FAKE } } }, end)}${end}`,
        [7, 2],
      ],
      [
        `responses stream: data in many lines, one of which is a whole object, ${JSON.stringify(end)}`,
        responses,
        `data: {"type":"response.completed","response":{"usage":${TYPED},"tools":[${end}data: {"usage":${FAKE}}${end}data: ]}}${end}${end}`,
        [7, 2],
      ],
      [
        `responses stream: data in many lines, a whole object before the last, ${JSON.stringify(end)}`,
        responses,
        `data: {"type":"response.completed","response":{"tools":[${end}data: {"usage":${FAKE}}${end}data: ],"usage":${TYPED}}}${end}${end}data: {"x":${end}data: {}${end}data: ,"usage":null}${end}${end}`,
        [7, 2],
      ],
      [
        `messages stream: data in many lines, ${JSON.stringify(end)}`,
        messages,
        `${inLines({ message: { usage: PARSED_TYPED, stop_reason: null }, type: 'message_start' }, end)}${end}${inLines({ delta: { usage: PARSED_FAKE }, usage: { output_tokens: 3 } }, end)}${end}`,
        [7, 3],
      ],
      [
        `messages stream: the start in many lines, whole when it begins, ${JSON.stringify(end)}`,
        messages,
        `event: message_start${end}${inLines({ message: { usage: PARSED_TYPED, stop_reason: 'tool_use' } }, end)}${end}`,
        [7, 2],
      ],
    ]),
    ['an error', messages, '{"type":"error","error":{"type":"overloaded_error"}}', null],
    ['nothing', chatCompletions, '', null],
  ];
  for (const [name, dialect, reply, expected] of cases) {
    test(name, () => assert.deepEqual(countsOf(dialect, reply), expected));
  }

  test('a counting request uses nothing', () => {
    assert.equal(countTokens.charged, false);
    assert.deepEqual(countsOf(countTokens, '{"input_tokens":43}'), [0, 0]);
  });
});

describe('of a reply that broke off', () => {
  /** Where the usage is whole enough to be believed, cut at every byte. */
  function checkEveryCut(dialect: Dialect, reply: string, believedFrom: number, expected: Counts): void {
    for (let length = 0; length <= reply.length; length++) {
      const usage = dialect.readUsage(withDataInOneLine(cutReply(reply.slice(0, length))));
      const found = usage === null || usage.outputTokens === null ? null : [usage.inputTokens, usage.outputTokens];
      assert.deepEqual(found, length >= believedFrom ? expected : null, reply.slice(0, length));
    }
  }

  test('a document is believed from the end of the object on', () => {
    const reply = `{"tools":[{"parameters":{"properties":{"usage":${FAKE}}}}],"usage":${TYPED},"metadata":{"usage":${FAKE}}}`;
    checkEveryCut(responses, reply, reply.indexOf(TYPED) + TYPED.length, [7, 2]);
  });

  test('so is one that is longer than what is kept', () => {
    const reply = `{"output":[{"text":"${LONG}"}],"usage":${TYPED},"tools":[${PROMPT_LOGPROBS}]}`;
    const end = reply.indexOf(TYPED) + TYPED.length;
    for (const [length, expected] of [
      [end - TYPED.length, null],
      [end - 1, null],
      [end, 7],
      [end + 30_000, 7],
      [reply.length - 1, 7],
    ] as const)
      assert.equal(responses.readUsage(cutReply(reply.slice(0, length)))?.inputTokens ?? null, expected, `${length}`);
  });

  test('an event is believed when its line is over', () => {
    const chat = `data: {"choices":[]}\n\ndata: {"choices":[],"usage":${CHAT},"x":{"usage":${FAKE}}}\n\ndata: [DONE]\n\n`;
    checkEveryCut(chatCompletions, chat, chat.indexOf('\n\ndata: [DONE]') + 1, [7, 2]);
    const message = `${START}data: {"type":"message_delta","delta":{"usage":${FAKE}},"usage":{"output_tokens":2}}\n\n${STOP}`;
    checkEveryCut(messages, message, message.indexOf(`\n\n${STOP}`) + 1, [7, 2]);
    const withoutBlankLines = `data: {"choices":[],"usage":${CHAT}}\ndata: {"x":{"usage":${FAKE}}}\ndata: [DONE]\n`;
    checkEveryCut(chatCompletions, withoutBlankLines, withoutBlankLines.indexOf('\n') + 1, [7, 2]);
  });

  test('one whose data is in many lines is believed when its blank line is over', () => {
    const chat = inLines({
      choices: [{ message: { usage: PARSED_FAKE } }],
      usage: PARSED_CHAT,
      x: { usage: PARSED_FAKE },
    });
    checkEveryCut(chatCompletions, `${chat}\ndata: [DONE]\n\n`, chat.length + 1, [7, 2]);
  });
});

describe('counts', () => {
  const usageOf = (dialect: Dialect, usage: object) => dialect.readUsage(keptReply(JSON.stringify({ usage })));

  test('no number is not taken for an absent one', () => {
    assert.ok(Number.isNaN(usageOf(responses, { input_tokens: '9', output_tokens: 1 })?.inputTokens));
    assert.ok(
      Number.isNaN(usageOf(messages, { input_tokens: 9, cache_read_input_tokens: '1', output_tokens: 1 })?.inputTokens),
    );
    assert.ok(Number.isNaN(usageOf(messages, { input_tokens: 9, output_tokens: [] })?.outputTokens));
    assert.ok(Number.isNaN(usageOf(chatCompletions, { prompt_tokens: 9, completion_tokens: true })?.outputTokens));
  });

  test('a count below zero is none, whatever it is added to', () => {
    for (const rest of [
      { total_tokens: 1_142 },
      { total_tokens: 660, completion_tokens_details: { reasoning_tokens: 5 } },
    ]) {
      const usage = { prompt_tokens: 656, completion_tokens: -1, ...rest };
      assert.equal(usageOf(chatCompletions, usage)?.outputTokens, -1, JSON.stringify(usage));
    }
    const input = { input_tokens: -1, cache_read_input_tokens: 158, output_tokens: 3 };
    assert.ok(Number.isNaN(usageOf(messages, input)?.inputTokens));
    const writes = { ephemeral_5m_input_tokens: -2, ephemeral_1h_input_tokens: 5 };
    assert.ok(
      Number.isNaN(usageOf(messages, { input_tokens: 9, cache_creation: writes, output_tokens: 3 })?.cacheWriteTokens),
    );
  });

  test('a report that contradicts itself is passed on as it stands', () => {
    const usage = usageOf(chatCompletions, {
      prompt_tokens: 5,
      completion_tokens: 1,
      total_tokens: 4,
      prompt_tokens_details: { cached_tokens: 9 },
    });
    assert.deepEqual([usage?.inputTokens, usage?.cachedInputTokens, usage?.outputTokens], [5, 9, 1]);
  });
});

describe('the id of a response', () => {
  const cases: readonly (readonly [reply: string, expected: string | null])[] = [
    ['{"id":"resp_1","output":[]}', 'resp_1'],
    ['{"background":true,"metadata":{"id":"x"},"id" : "resp_2"}', 'resp_2'],
    [
      'event: response.created\ndata: {"type":"response.created","response":{"metadata":{"id":"x"},"id":"resp_3"}}\n\n',
      'resp_3',
    ],
    [
      'data: {"response":{"id":"resp_4"},"type":"response.created"}\n\ndata: {"response":{"id":"resp_5"}}\n\n',
      'resp_4',
    ],
    ['{"error":{"id":"no"}}', null],
    ['{"output":[{"id":"msg_1"}]}', null],
    ['{"id":7}', null],
    ['{"id":"resp_', null],
    ['{"id":"\\q"}', null],
    ['{"id":"a\nb"}', null],
    ['{"id":"r\\u0065sp_6"}', null],
    [`{"id":"${'r'.repeat(256)}"}`, 'r'.repeat(256)],
    [`{"id":"${'r'.repeat(257)}"}`, null],
    ['{"id":"resp_a-b.c~d=="}', 'resp_a-b.c~d=='],
    ['{"id":"resp 1"}', null],
    ['{"id":"resp/1"}', null],
    ['{"id":""}', null],
    ['', null],
  ];
  for (const [reply, expected] of cases)
    test(reply.slice(0, 60), () => assert.equal(readResponseId(Buffer.from(reply)), expected));
});
