// Token counting of Responses and Messages requests: which of their texts count, and hostile bodies of both dialects.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import countTokens, { type CountTokensOutput } from '../../workers/count-tokens.ts';
import { howMany } from '../support/at-length.ts';
import {
  type Api,
  BASE64,
  countReply,
  countRequest,
  countText,
  encoder,
  events,
  TOOLS,
} from '../support/token-counting.ts';

/** `hello` and every role are one token; a message is wrapped in 3 and the reply primed with 3. */
const REQUESTS: readonly (readonly [string, Api, unknown, number | null])[] = [
  ['a string', 'responses', { input: 'hello' }, 3 + 3 + 1 + 1],
  ['instructions', 'responses', { instructions: 'hello', input: 'hello' }, 3 + 2 * (3 + 1 + 1)],
  ['text parts', 'responses', { input: [{ role: 'user', content: [{ type: 'input_text', text: 'hello' }] }] }, 8],
  [
    'an earlier reply',
    'responses',
    { input: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hello' }] }] },
    8,
  ],
  [
    'a call',
    'responses',
    { input: [{ type: 'function_call', call_id: 'call_1', name: 'hello', arguments: 'hello' }] },
    3 + 3 + 1 + 1,
  ],
  ['a result', 'responses', { input: [{ type: 'function_call_output', call_id: 'call_1', output: 'hello' }] }, 7],
  [
    'a result of parts',
    'responses',
    { input: [{ type: 'function_call_output', output: [{ type: 'input_text', text: 'hello' }] }] },
    7,
  ],
  ['a custom call', 'responses', { input: [{ type: 'custom_tool_call', name: 'hello', input: 'hello' }] }, 8],
  [
    'what a shell printed',
    'responses',
    { input: [{ type: 'shell_call_output', output: [{ stdout: 'hello', stderr: 'hello' }] }] },
    8,
  ],
  [
    'reasoning',
    'responses',
    { input: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'hello' }], encrypted_content: BASE64 }] },
    7,
  ],
  ['tools', 'responses', { input: 'hello', tools: TOOLS }, 8 + countText(JSON.stringify(TOOLS))],
  [
    'attachments',
    'responses',
    {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_image', image_url: `data:image/png;base64,${BASE64}` },
            { type: 'input_file', filename: 'x.pdf', file_data: BASE64 },
          ],
        },
        { type: 'image_generation_call', result: BASE64 },
        {
          type: 'computer_call_output',
          output: { type: 'computer_screenshot', image_url: `data:image/png;base64,${BASE64}` },
        },
        {
          type: 'function_call_output',
          output: [{ type: 'input_image', image_url: `data:image/png;base64,${BASE64}` }],
        },
      ],
    },
    3 + 4 * 3 + 1,
  ],
  [
    'an attachment of a tool',
    'responses',
    {
      input: 'hello',
      tools: [{ type: 'image_generation', input_image_mask: { image_url: `data:image/png;base64,${BASE64}` } }],
    },
    8 + countText('[{"type":"image_generation","input_image_mask":{}}]'),
  ],
  [
    'unknown fields and items',
    'responses',
    { input: ['x', 1, null, { type: 'item_reference', id: 'hello' }, { content: 7, later: 'hello' }] },
    3 + 2 * 3,
  ],
  ['no input', 'responses', { instructions: 'hello' }, null],
  ['a wrong input', 'responses', { input: { text: 'hello' } }, null],
  ['a string', 'messages', { messages: [{ role: 'user', content: 'hello' }] }, 3 + 3 + 1 + 1],
  ['a system prompt', 'messages', { system: 'hello', messages: [{ role: 'user', content: 'hello' }] }, 8 + 3 + 1],
  [
    'system blocks',
    'messages',
    { system: [{ type: 'text', text: 'hello' }], messages: [{ role: 'user', content: 'hello' }] },
    8 + 3 + 1,
  ],
  [
    'blocks',
    'messages',
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'hello', cache_control: { type: 'ephemeral' } }] }] },
    8,
  ],
  [
    'thinking',
    'messages',
    { messages: [{ role: 'assistant', content: [{ type: 'thinking', thinking: 'hello', signature: BASE64 }] }] },
    8,
  ],
  [
    'redacted thinking',
    'messages',
    { messages: [{ role: 'assistant', content: [{ type: 'redacted_thinking', data: BASE64 }] }] },
    7,
  ],
  [
    'a call',
    'messages',
    {
      messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'hello', input: { a: 1 } }] }],
    },
    8 + countText('{"a":1}'),
  ],
  [
    'a result',
    'messages',
    { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'hello' }] }] },
    8,
  ],
  [
    'a result of blocks',
    'messages',
    {
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              content: [
                { type: 'text', text: 'hello' },
                { type: 'image', source: { type: 'base64', data: BASE64 } },
              ],
            },
          ],
        },
      ],
    },
    8,
  ],
  [
    'what a program printed',
    'messages',
    {
      messages: [
        { role: 'assistant', content: [{ type: 'x', content: { stdout: 'hello', stderr: 'hello', content: [] } }] },
      ],
    },
    9,
  ],
  [
    'a text document',
    'messages',
    {
      messages: [
        { role: 'user', content: [{ type: 'document', title: 'hello', source: { type: 'text', data: 'hello' } }] },
      ],
    },
    9,
  ],
  [
    'a document',
    'messages',
    { messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'base64', data: BASE64 } }] }] },
    7,
  ],
  [
    'a document of blocks',
    'messages',
    {
      messages: [
        {
          role: 'user',
          content: [{ type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'hello' }] } }],
        },
      ],
    },
    8,
  ],
  [
    'tools',
    'messages',
    { messages: [{ role: 'user', content: 'hello' }], tools: TOOLS },
    8 + countText(JSON.stringify(TOOLS)),
  ],
  [
    'unknown blocks',
    'messages',
    { messages: [null, 'x', { role: 'user', content: [{ type: 'later', body: 'hello' }, 7, null] }], later: 'hello' },
    7,
  ],
  ['no messages', 'messages', { system: 'hello' }, null],
];

describe('a request', () => {
  for (const [name, api, request, tokens] of REQUESTS) {
    test(`${api}: ${name}`, { timeout: 10_000 }, async () => assert.equal(await countRequest(api, request), tokens));
  }
  for (const api of ['responses', 'messages'] as const) {
    for (const body of ['', '{', '[]', 'null', '"text"', '{}', '\u0000']) {
      test(`${api}: ${JSON.stringify(body)} is not countable`, async () =>
        assert.equal(await countRequest(api, body), null));
    }
  }
});

/** Many times what a stack has. */
const DEPTH = howMany({ short: 25_000, long: 100_000 });

describe('hostile input', () => {
  const both = (api: Api, body: string, stream: boolean): Promise<CountTokensOutput> => {
    const bytes = encoder.encode(body);
    return countTokens({
      api,
      encoding: 'o200k_base',
      request: bytes,
      response: bytes,
      responseIsStream: stream,
      responseBytesTotal: bytes.byteLength + 9,
      count: { input: true, output: true },
    });
  };
  test('never throws', { timeout: 60_000 }, async () => {
    const deep = `${'['.repeat(2 * DEPTH)}${']'.repeat(2 * DEPTH)}`;
    const nested = `${'{"content":['.repeat(DEPTH)}${']}'.repeat(DEPTH)}`;
    for (const api of ['responses', 'messages'] as const) {
      for (const part of [deep, nested, nested.slice(0, 10 * DEPTH)]) {
        for (const field of ['input', 'messages', 'output', 'content', 'tools'])
          await both(api, `{"input":[],"messages":[],"${field}":[${part}]}`, false);
        await both(
          api,
          `data: {"type":"response.output_item.done","item":${part}}\n\ndata: ` +
            `{"type":"content_block_start","content_block":${part}}\n\n`,
          true,
        );
      }
    }
    const type = fc.constantFrom(
      'response.output_text.delta',
      'response.output_item.done',
      'response.completed',
      'content_block_start',
      'content_block_delta',
      'message_start',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom<Api>('responses', 'messages'),
        type,
        fc.json(),
        fc.boolean(),
        async (api, eventType, json, stream) => {
          const fields = [
            'input',
            'messages',
            'system',
            'output',
            'content',
            'item',
            'delta',
            'output_index',
            'content_block',
            'message',
            'response',
            'index',
          ];
          const body = `{"type":"${eventType}",${fields.map((field) => `"${field}":${json}`).join(',')}}`;
          await both(api, stream ? `data: ${body}\n\n` : body, stream);
          await both(
            api,
            `{"type":"${eventType}","input":[${json}],"messages":[{"content":[${json}]}],"output":[${json}],"content":[${json}]}`,
            false,
          );
        },
      ),
      { numRuns: 300 },
    );
  });
  test('many small parts are counted in linear work', { timeout: 60_000 }, async () => {
    const many = Array.from({ length: 100_000 }, (_, index) => ({ type: 'text', text: `t${index}` }));
    assert.ok(((await countRequest('messages', { messages: [{ role: 'user', content: many }] })) ?? 0) > 100_000);
    assert.ok(((await countRequest('responses', { input: [{ role: 'user', content: many }] })) ?? 0) > 100_000);
    const deltas = many.map(({ text }, index) => ({
      type: 'response.output_text.delta',
      output_index: index,
      delta: text,
    }));
    assert.ok(((await countReply('responses', events(deltas), { stream: true })) ?? 0) > 100_000);
    const blocks = many.map(({ text }, index) => ({
      type: 'content_block_delta',
      index,
      delta: { type: 'text_delta', text },
    }));
    assert.ok(((await countReply('messages', events(blocks), { stream: true })) ?? 0) > 100_000);
  });
});
