// Token counting of Responses and Messages replies: which of their texts count, each once, streamed and cut anywhere.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Api, BASE64, countReply, countText, type Event, events, TOOLS } from '../support/token-counting.ts';

const message = (...texts: string[]): object => ({
  type: 'message',
  role: 'assistant',
  content: texts.map((text) => ({ type: 'output_text', text, annotations: [] })),
});

const REPLIES: readonly (readonly [string, Api, unknown, number | null])[] = [
  [
    'texts',
    'responses',
    { output: [message('hello', 'hello'), message('hello')], instructions: 'hello', tools: TOOLS },
    3,
  ],
  ['a refusal', 'responses', { output: [{ type: 'message', content: [{ type: 'refusal', refusal: 'hello' }] }] }, 1],
  [
    'calls',
    'responses',
    {
      output: [
        { type: 'function_call', call_id: 'c', name: 'hello', arguments: 'hello' },
        { type: 'custom_tool_call', name: 'hello', input: 'hello' },
      ],
    },
    4,
  ],
  [
    'a summary',
    'responses',
    { output: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'hello' }], encrypted_content: BASE64 }] },
    1,
  ],
  [
    'reasoning and its summary',
    'responses',
    {
      output: [
        {
          type: 'reasoning',
          content: [{ type: 'reasoning_text', text: 'hello world' }],
          summary: [{ type: 'summary_text', text: 'hello' }],
        },
      ],
    },
    2,
  ],
  [
    'what a server tool found',
    'responses',
    { output: [{ type: 'mcp_call', name: 'hello', arguments: 'hello', output: 'hello' }] },
    2,
  ],
  ['an image', 'responses', { output: [{ type: 'image_generation_call', result: BASE64 }] }, 0],
  [
    'a program and commands',
    'responses',
    {
      output: [
        { type: 'code_interpreter_call', code: 'hello', outputs: [{ type: 'logs', logs: 'hello' }] },
        { type: 'shell_call', action: { commands: ['hello', 'hello'] } },
      ],
    },
    3,
  ],
  ['nothing', 'responses', { output: [] }, 0],
  ['an error', 'responses', { error: { message: 'no' } }, null],
  [
    'blocks',
    'messages',
    {
      content: [
        { type: 'thinking', thinking: 'hello', signature: BASE64 },
        { type: 'text', text: 'hello', citations: [{ cited_text: 'hello' }] },
      ],
    },
    2,
  ],
  [
    'a call',
    'messages',
    { content: [{ type: 'tool_use', id: 'toolu_1', name: 'hello', input: { a: 1 } }] },
    1 + countText('{"a":1}'),
  ],
  ['a call without arguments', 'messages', { content: [{ type: 'tool_use', name: 'hello', input: {} }] }, 1],
  [
    'what a server tool found',
    'messages',
    {
      content: [
        {
          type: 'web_search_tool_result',
          content: [{ type: 'web_search_result', title: 'hello', encrypted_content: BASE64 }],
        },
      ],
    },
    0,
  ],
  ['nothing', 'messages', { content: [] }, 0],
  ['an error', 'messages', { type: 'error', error: { message: 'no' } }, null],
];

describe('a JSON reply', () => {
  for (const [name, api, reply, tokens] of REPLIES)
    test(`${api}: ${name}`, async () => assert.equal(await countReply(api, reply), tokens));

  test('that was cut counts as far as it came', async () => {
    const responses = JSON.stringify({
      id: 'resp_1',
      output: [{ type: 'message', content: [{ type: 'output_text', text: 'hello world, said she' }] }],
      tools: TOOLS,
    });
    const messages = JSON.stringify({
      id: 'msg_1',
      content: [{ type: 'text', text: 'hello world, said she' }],
      usage: { input_tokens: 1 },
    });
    for (const [api, body] of [
      ['responses', responses],
      ['messages', messages],
    ] as const) {
      assert.equal(await countReply(api, body.slice(0, body.indexOf(', said'))), 2);
      assert.equal(await countReply(api, body.slice(0, body.indexOf('hello'))), null);
      assert.equal(await countReply(api, body.slice(0, -1)), countText('hello world, said she'));
      assert.equal(await countReply(api, body.slice(0, 10)), null);
      const kept = body.slice(0, body.indexOf(', said'));
      assert.equal(await countReply(api, kept, { bytesTotal: 3 * kept.length }), 6);
    }
  });
});

const DELTAS = [
  { type: 'response.created', response: { instructions: 'hello', tools: TOOLS, output: [] } },
  { type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning', id: 'rs_1', summary: [] } },
  { type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, delta: 'hel' },
  { type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, delta: 'lo' },
  { type: 'response.output_item.added', output_index: 1, item: { type: 'message', id: 'msg_1', content: [] } },
  { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: 'hello wor', obfuscation: 'hello' },
  { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: 'ld' },
  { type: 'response.refusal.delta', output_index: 1, content_index: 1, delta: 'hello' },
  {
    type: 'response.output_item.added',
    output_index: 2,
    item: { type: 'function_call', id: 'fc_1', name: 'hello', arguments: '' },
  },
  { type: 'response.function_call_arguments.delta', output_index: 2, delta: 'hello' },
  {
    type: 'response.output_item.added',
    output_index: 3,
    item: { type: 'custom_tool_call', id: 'ctc_1', name: 'hello', input: '' },
  },
  { type: 'response.custom_tool_call_input.delta', output_index: 3, delta: 'hello' },
];
const OUTPUT = [
  { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hello' }] },
  {
    type: 'message',
    id: 'msg_1',
    content: [
      { type: 'output_text', text: 'hello world' },
      { type: 'refusal', refusal: 'hello' },
    ],
  },
  { type: 'function_call', id: 'fc_1', name: 'hello', arguments: 'hello' },
  { type: 'custom_tool_call', id: 'ctc_1', name: 'hello', input: 'hello' },
];
const TEXTS_DONE = [
  { type: 'response.reasoning_summary_text.done', output_index: 0, summary_index: 0, text: 'hello' },
  { type: 'response.output_text.done', output_index: 1, content_index: 0, text: 'hello world' },
  { type: 'response.refusal.done', output_index: 1, content_index: 1, refusal: 'hello' },
  { type: 'response.function_call_arguments.done', output_index: 2, arguments: 'hello' },
  { type: 'response.custom_tool_call_input.done', output_index: 3, input: 'hello' },
];
const ITEMS_DONE = OUTPUT.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item }));
const COMPLETED = [{ type: 'response.completed', response: { output: OUTPUT, instructions: 'hello', usage: null } }];
const OUTPUT_TOKENS = 1 + 2 + 1 + 2 + 2;

describe('a Responses stream', () => {
  const count = (payloads: readonly Event[]): Promise<number | null> =>
    countReply('responses', events(payloads), { stream: true });

  test('counts each text once, whichever of its four tellings are there', async () => {
    assert.equal(await count([...DELTAS, ...TEXTS_DONE, ...ITEMS_DONE, ...COMPLETED]), OUTPUT_TOKENS);
    assert.equal(await count(DELTAS), OUTPUT_TOKENS);
    assert.equal(await count([...DELTAS, ...COMPLETED]), OUTPUT_TOKENS);
    assert.equal(await count([...TEXTS_DONE, ...ITEMS_DONE]), OUTPUT_TOKENS);
    assert.equal(await count([...ITEMS_DONE, ...COMPLETED]), OUTPUT_TOKENS);
    assert.equal(await count(COMPLETED), OUTPUT_TOKENS);
    assert.equal(await count(TEXTS_DONE), OUTPUT_TOKENS - 2);
  });
  test('tells items apart by id where they have no index', async () => {
    const delta = (item_id: string, text: string): Event => ({
      type: 'response.output_text.delta',
      item_id,
      delta: text,
    });
    const done = { type: 'response.output_item.done', item: { id: 'b', ...message('hello') } };
    assert.equal(
      await count([delta('a', 'hello '), delta('b', 'hel'), delta('b', 'lo'), done]),
      countText('hello ') + 1,
    );
  });
  test('counts other texts that a model writes, and no results and images', async () => {
    assert.equal(
      await count([
        { type: 'response.code_interpreter_call_code.delta', output_index: 0, delta: 'hello' },
        { type: 'response.mcp_call_arguments.delta', output_index: 1, delta: 'hello' },
        { type: 'response.shell_call_command.delta', output_index: 2, command_index: 1, delta: 'hello' },
        { type: 'response.apply_patch_call_operation_diff.delta', output_index: 3, delta: 'hello' },
        { type: 'response.shell_call_output_content.delta', output_index: 4, delta: { stdout: 'hello' } },
        { type: 'response.image_generation_call.partial_image', output_index: 5, partial_image_b64: BASE64 },
        { type: 'response.later.delta', output_index: 6, delta: 'hello' },
      ]),
      4,
    );
  });
  test('without events is not countable, and without text counts 0', async () => {
    for (const body of [
      '',
      'data: [DONE]\n\n',
      'data: {"error":{}}\n\n',
      'data: {"type":"error"}\n\n',
      '{"output":[]}',
    ]) {
      assert.equal(await countReply('responses', body, { stream: true }), null, body);
    }
    assert.equal(await count(DELTAS.slice(0, 2)), 0);
  });
  test('of which only the beginning was kept is scaled without what comes once before the text', async () => {
    const lead = { type: 'response.created', response: { instructions: 'x'.repeat(50_000) } };
    const deltas = Array.from({ length: 100 }, () => ({
      type: 'response.output_text.delta',
      output_index: 0,
      content_index: 0,
      delta: ' hello',
    }));
    const kept = events([lead, ...deltas]);
    const deltaBytes = events(deltas).length;
    const counted = await countReply('responses', kept, { stream: true, bytesTotal: kept.length + 9 * deltaBytes });
    assert.ok(counted !== null && counted > 980 && counted <= 1000, `${counted}`);
    assert.equal(await countReply('responses', events([lead]), { stream: true, bytesTotal: kept.length }), null);
  });
});

const BLOCKS = [
  { type: 'message_start', message: { content: [], usage: { input_tokens: 9, output_tokens: 1 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hel' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'lo' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: BASE64 } },
  { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
  { type: 'ping' },
  { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'hello wor' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'ld' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'citations_delta', citation: { cited_text: 'hello' } } },
  {
    type: 'content_block_start',
    index: 2,
    content_block: { type: 'tool_use', id: 'toolu_1', name: 'hello', input: {} },
  },
  { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '' } },
  { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: 'hel' } },
  { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: 'lo' } },
  { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
  { type: 'message_stop' },
];

describe('a Messages stream', () => {
  const count = (payloads: readonly Event[]): Promise<number | null> =>
    countReply('messages', events(payloads), { stream: true });
  const start = (index: number, content_block: object): Event => ({
    type: 'content_block_start',
    index,
    content_block,
  });

  test('is its deltas joined', async () => assert.equal(await count(BLOCKS), 1 + 2 + 2));
  test('counts what came with the beginning of a block, but no results of server tools', async () => {
    assert.equal(
      await count([
        start(0, { type: 'text', text: 'hello' }),
        start(1, { type: 'tool_use', name: 'hello', input: { a: 1 } }),
      ]),
      2 + countText('{"a":1}'),
    );
    assert.equal(await count([start(0, { type: 'web_search_tool_result', content: [{ title: 'hello' }] })]), 0);
    assert.equal(
      await count([start(0, { type: 'text', text: 'hello' }), start(0, { type: 'text', text: 'hello' })]),
      2,
    );
    assert.equal(await count([{ type: 'message_start', message: { content: [{ type: 'text', text: 'hello' }] } }]), 1);
  });
  test('counts a delta whose block did not begin', async () => {
    assert.equal(
      await count([{ type: 'content_block_delta', index: 4, delta: { type: 'text_delta', text: 'hello' } }]),
      1,
    );
  });
  test('of which only the beginning was kept is scaled to its bytes', async () => {
    const body = events(BLOCKS.slice(5, 9));
    assert.equal(await countReply('messages', body, { stream: true, bytesTotal: 3 * body.length }), 6);
    assert.equal(await countReply('messages', events(BLOCKS.slice(0, 2)), { stream: true, bytesTotal: 10_000 }), null);
  });
  test('without events is not countable', async () => {
    for (const body of [
      '',
      'data: {"type":"error","error":{}}\n\n',
      'event: ping\ndata: {"type":"ping"}\n\n',
      '{"content":[]}',
    ]) {
      assert.equal(await countReply('messages', body, { stream: true }), null, body);
    }
  });
});

test('a stream that was cut within its first event has written nothing', async () => {
  const cut = { stream: true, cut: true };
  for (const api of ['chat_completions', 'responses', 'messages'] as const)
    for (const body of [
      'data: {"choices":[{"delta":{"content":"hel',
      'event: message_start\ndata: {"ty',
      ': here\n\ndata:',
      ': here\n\n',
    ]) {
      assert.equal(await countReply(api, body, cut), 0, `${api}: ${body}`);
      // What ended by itself may have been shown.
      assert.equal(await countReply(api, body, { stream: true }), null, `${api}, whole: ${body}`);
    }
  // Of more than was kept nothing is known, and what is no stream may have written anything.
  assert.equal(await countReply('messages', 'data: {"ty', { ...cut, bytesTotal: 100_000 }), null);
  assert.equal(await countReply('messages', '{"content":[{"text":"hel', cut), null);
});

test('a stream cut at any byte counts no more than the whole, and never throws', async () => {
  for (const [api, whole] of [
    ['responses', events([...DELTAS.slice(1), ...TEXTS_DONE])],
    ['messages', events(BLOCKS.filter((event) => !JSON.stringify(event).includes('signature')))],
  ] as const) {
    const tokens = (await countReply(api, whole, { stream: true })) as number;
    for (let end = 0; end <= whole.length; end++) {
      const counted = await countReply(api, whole.slice(0, end), { stream: true });
      // A word that was cut can be more tokens than the word.
      assert.ok(counted === null || counted <= tokens + 1, `${api} at ${end}: ${counted}`);
    }
  }
});
