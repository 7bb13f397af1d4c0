// The simulated provider's Messages API and its token counting, as both majors of the official client read them.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import AnthropicBefore1 from 'anthropic-sdk-0';
import { httpCall } from '../support/http-call.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { waitFor } from '../support/waiting.ts';

const TOOL = {
  name: 'get_weather',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
};

describe('the simulated Messages API', () => {
  let provider: SimulatedProvider;
  let client: Anthropic;
  let clientBefore1: AnthropicBefore1;

  before(async () => {
    provider = await startSimulatedProvider();
    client = new Anthropic({ baseURL: provider.url, apiKey: 'any', maxRetries: 0 });
    clientBefore1 = new AnthropicBefore1({ baseURL: provider.url, apiKey: 'any', maxRetries: 0 });
  });

  after(() => provider?.stop());

  const bodyOf = (
    content: string,
    fields: Partial<Anthropic.MessageCreateParamsNonStreaming> = {},
  ): Anthropic.MessageCreateParamsNonStreaming => ({
    model: 'sim-small',
    max_tokens: 100,
    messages: [{ role: 'user', content }],
    ...fields,
  });
  const textOf = (message: Anthropic.Message | AnthropicBefore1.Message): string =>
    message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');

  test('answers both majors, whole and streamed alike', async () => {
    const body = bodyOf('Hello. [[sim: tokens=7 cached=3 cache_write=2]]', { system: 'Be brief.' });
    const input = Math.ceil('Be brief.Hello. [[sim: tokens=7 cached=3 cache_write=2]]'.length / 4);
    for (const [create, stream] of [
      [() => client.messages.create(body), () => client.messages.stream(body).finalMessage()],
      [() => clientBefore1.messages.create(body), () => clientBefore1.messages.stream(body).finalMessage()],
    ] as const) {
      const [whole, streamed] = [await create(), await stream()];
      for (const message of [whole, streamed]) {
        const { usage } = message;
        assert.deepEqual(
          [
            usage.input_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
            usage.output_tokens,
            message.stop_reason,
          ],
          [input - 5, 3, 2, 7, 'end_turn'],
        );
        assert.ok(textOf(message).length > 0);
      }
    }
  });

  test('streams its events in their order, padded as recorded', async () => {
    const call = await httpCall(`${provider.url}/v1/messages`, {
      headers: { 'x-api-key': 'any', 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
      body: JSON.stringify({ ...bodyOf('Stream. [[sim: tokens=2]]'), stream: true }),
    });
    const text = call.body.toString('utf8');
    assert.deepEqual(
      [...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name),
      [
        'message_start',
        'content_block_start',
        'ping',
        'content_block_delta',
        'content_block_delta',
        'content_block_stop',
        'message_delta',
        'message_stop',
      ],
    );
    for (const [, data = ''] of text.matchAll(/^data: (.*)$/gm)) JSON.parse(data);
    assert.match(text, /"type":"message_stop" +\}/);
    assert.ok(call.headers['request-id']);
  });

  test('thinks with a signature, and knows it again', async () => {
    const thinking = { type: 'enabled', budget_tokens: 1024 } as const;
    const body = bodyOf('Think.', { thinking, max_tokens: 2000 });
    const message = await client.messages.stream(body).finalMessage();
    const [thought] = message.content;
    assert.ok(thought?.type === 'thinking' && thought.thinking.length > 0 && thought.signature.length > 80);
    const whole = await client.messages.create(body);
    assert.deepEqual(
      whole.content.map(({ type }) => type),
      ['thinking', 'text'],
    );
    assert.equal(whole.usage.output_tokens, 8 + 24);
    const again = (signature: string) =>
      client.messages.create(
        bodyOf('', {
          messages: [
            ...body.messages,
            { role: 'assistant', content: [{ ...thought, signature }] },
            { role: 'user', content: 'Go on.' },
          ],
        }),
      );
    assert.equal((await again(thought.signature)).stop_reason, 'end_turn');
    await assert.rejects(again(`${thought.signature.slice(0, -8)}AAAAAAA=`), /Invalid `signature`/);
    const omitted = await client.messages.create(
      bodyOf('Think. [[sim: reasoning=5]]', { thinking: { type: 'adaptive', display: 'omitted' } }),
    );
    assert.ok(
      omitted.content[0]?.type === 'thinking' &&
        omitted.content[0].thinking === '' &&
        omitted.content[0].signature !== '',
    );
  });

  test('calls tools until it has their results', async () => {
    const body = bodyOf('Look. [[sim: tool_call tool_calls=2]]', { tools: [TOOL] });
    for (const message of [await client.messages.create(body), await client.messages.stream(body).finalMessage()]) {
      assert.equal(message.stop_reason, 'tool_use');
      assert.deepEqual(
        message.content.map((block) => (block.type === 'tool_use' ? [block.name, block.input] : block.type)),
        [
          ['get_weather', { city: 'north' }],
          ['get_weather', { city: 'north' }],
        ],
      );
      const results = message.content.flatMap((block) =>
        block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'sunny' }] : [],
      );
      const messages = [
        ...body.messages,
        { role: 'assistant' as const, content: message.content },
        { role: 'user' as const, content: results },
      ];
      assert.equal((await client.messages.create({ ...body, messages })).stop_reason, 'end_turn');
    }
    const named = await client.messages.create(bodyOf('Anything.', { tools: [TOOL], tool_choice: { type: 'any' } }));
    assert.equal(named.stop_reason, 'tool_use');
    const stray = bodyOf('', {
      messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_none' }] }],
    });
    await assert.rejects(client.messages.create(stray), { status: 400 });
  });

  test('counts tokens by the same rule', async () => {
    const { max_tokens: _none, ...counted } = bodyOf('12345', { system: [{ type: 'text', text: '678' }] });
    assert.equal((await client.messages.countTokens(counted)).input_tokens, 2);
    assert.equal((await clientBefore1.messages.countTokens(counted)).input_tokens, 2);
  });

  test('refuses what Anthropic refuses, in its form', async () => {
    const call = async (path: string, headers: Record<string, string>, body: object) => {
      const answer = await httpCall(`${provider.url}${path}`, {
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
      const {
        type,
        error,
        request_id: requestId,
      } = JSON.parse(answer.body.toString('utf8')) as {
        type: string;
        error: { type: string; message: string };
        request_id: string;
      };
      assert.deepEqual([type, requestId], ['error', answer.headers['request-id']]);
      return [answer.status, error.type, error.message];
    };
    const key = { 'x-api-key': 'any' };
    const version = { authorization: 'Bearer any', 'anthropic-version': '2026-10-21' };
    const { max_tokens: _none, ...unbounded } = bodyOf('x');
    assert.deepEqual(await call('/v1/messages', {}, bodyOf('x')), [
      401,
      'authentication_error',
      'x-api-key header is required',
    ]);
    assert.deepEqual(await call('/v1/messages', key, bodyOf('x')), [
      400,
      'invalid_request_error',
      'anthropic-version: header is required',
    ]);
    assert.deepEqual(await call('/v1/messages/count_tokens', key, unbounded), [
      400,
      'invalid_request_error',
      'anthropic-version: header is required',
    ]);
    assert.deepEqual(await call('/v1/messages', version, unbounded), [
      400,
      'invalid_request_error',
      'max_tokens: Field required',
    ]);
    assert.deepEqual(await call('/v1/messages', version, bodyOf('x', { model: 'unknown-1' })), [
      404,
      'not_found_error',
      'model: unknown-1',
    ]);
    assert.deepEqual((await call('/v1/messages', version, bodyOf('[[sim: status=529]]'))).slice(0, 2), [
      529,
      'overloaded_error',
    ]);
    assert.deepEqual((await call('/v1/messages', version, bodyOf('[[sim: status=429]]'))).slice(0, 2), [
      429,
      'rate_limit_error',
    ]);
  });

  test('fails as it is asked', async () => {
    const stream = (content: string) => client.messages.stream(bodyOf(content)).finalMessage();
    await assert.rejects(stream('[[sim: error_event]]'), /Overloaded/);
    await assert.rejects(stream('[[sim: cut_mid_event=2]]'));
    await assert.rejects(stream('[[sim: end_after=2]]'));
    await assert.rejects(stream('[[sim: reset_after=2]]'));
    assert.equal((await stream('[[sim: usage=negative]]')).usage.output_tokens, -1000);
    assert.equal((await client.messages.create(bodyOf('x [[sim: no_usage]]'))).usage, undefined);
    const short = await client.messages.create(bodyOf('Talk.', { max_tokens: 3 }));
    assert.deepEqual([short.stop_reason, short.usage.output_tokens], ['max_tokens', 3]);
  });

  test('logs calls and counts', async () => {
    await provider.lastEnd();
    const before = provider.ends().length;
    const message = await client.messages.create(bodyOf('Log. [[sim: tokens=4 cache_write=2]]'));
    await client.messages.countTokens({ model: 'sim-small', messages: [{ role: 'user', content: '12345678' }] });
    const ends = await waitFor(
      'both ends to be logged',
      () => provider.ends().slice(before),
      (found) => found.length === 2,
    );
    assert.deepEqual(
      ends.map(({ api, id, promptTokens, cacheWriteTokens, completionTokens, usageSent }) => [
        api,
        id === message.id,
        promptTokens,
        cacheWriteTokens,
        completionTokens,
        usageSent,
      ]),
      [
        ['messages', true, 9, 2, 4, true],
        ['count_tokens', false, 2, 0, 0, false],
      ],
    );
  });
});
