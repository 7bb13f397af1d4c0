// When the simulated model calls a tool and with what: the rule that every dialect shares, and Chat Completions as the
// official client reads it.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { readDirectives } from '../../src/simulator/directives.ts';
import { chooseToolCalls, type ToolChoice, type ToolDefinition, type Turn } from '../../src/simulator/tool-calls.ts';
import { loadOpenapiSchemas } from '../support/openapi-schema.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';

const SCHEMA = {
  type: 'object',
  required: ['path', 'lines', 'deep', 'mode', 'either'],
  properties: {
    path: { type: 'string' },
    lines: { type: 'array', items: { type: 'integer', minimum: 3 } },
    deep: { type: 'object', required: ['flag'], properties: { flag: { type: ['boolean', 'null'] } } },
    mode: { enum: ['read', 'write'] },
    either: { anyOf: [{ const: 'this' }, { type: 'null' }] },
    optional: { type: 'string' },
  },
};
const TOOLS: readonly ToolDefinition[] = [
  { name: 'read_file', kind: 'function', schema: SCHEMA },
  { name: 'patch', kind: 'custom', schema: null },
];

describe('the choice of a tool call', () => {
  const user = (text: string): Turn => ({ role: 'user', text });
  const result: Turn = { role: 'tool_result', text: 'done' };
  const choose = (turns: readonly Turn[], choice: ToolChoice = 'auto', tools = TOOLS) =>
    chooseToolCalls({
      turns,
      tools,
      choice,
      directives: readDirectives(turns.map(({ text }) => text).join('\n'), ['']),
    }).map(({ name }) => name);

  test('follows directives, words and tool_choice', () => {
    assert.deepEqual(choose([user('Hello.')]), []);
    assert.deepEqual(choose([user('[[sim: tool_call]]')]), ['read_file']);
    assert.deepEqual(choose([user('[[sim: tool_call]]')], 'auto', []), ['lookup']);
    assert.deepEqual(choose([user('[[sim: tool_call=patch tool_calls=3]]')]), ['patch', 'patch', 'patch']);
    assert.deepEqual(choose([user('[[sim: tool_call]]')], 'none'), []);
    assert.deepEqual(choose([user('Please use the `patch` tool.')]), ['patch']);
    assert.deepEqual(choose([user('Please use the hammer tool.')]), []);
    assert.deepEqual(choose([user('Hello.')], 'required'), ['read_file']);
    assert.deepEqual(choose([user('Hello.')], { name: 'patch' }), ['patch']);
  });

  test('is done with when its results are there, until it is asked for again', () => {
    const asked = user('[[sim: tool_call]]');
    assert.deepEqual(choose([asked, result]), []);
    assert.deepEqual(choose([asked, result, user('Next.')]), []);
    assert.deepEqual(choose([asked, result, asked]), ['read_file']);
    const rounds = user('[[sim: tool_call tool_calls=2 tool_rounds=2]]');
    assert.equal(choose([rounds, result, result]).length, 2);
    assert.equal(choose([rounds, result, result, result, result]).length, 0);
    assert.deepEqual(choose([user('use the patch tool'), result]), []);
  });

  test('makes arguments that fit the schema', () => {
    const [call] = chooseToolCalls({ turns: [], tools: TOOLS, choice: 'required', directives: readDirectives('', []) });
    assert.deepEqual(JSON.parse(call?.input ?? ''), {
      path: 'north',
      lines: [3],
      deep: { flag: true },
      mode: 'read',
      either: 'this',
    });
  });
});

describe('tool calls in Chat Completions', () => {
  let provider: SimulatedProvider;
  let client: OpenAI;

  before(async () => {
    provider = await startSimulatedProvider();
    client = new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'any', maxRetries: 0 });
  });

  after(() => provider?.stop());

  test('are read alike from a whole answer and from a stream, and cost what they say', async () => {
    const schemas = loadOpenapiSchemas();
    const body = {
      model: 'sim-small',
      messages: [{ role: 'user' as const, content: 'Go. [[sim: tool_call tool_calls=2]]' }],
      tools: [{ type: 'function' as const, function: { name: 'read_file', parameters: SCHEMA } }],
    };
    const whole = await client.chat.completions.create(body);
    if (schemas !== null) assert.deepEqual(schemas.problems('CreateChatCompletionResponse', whole), []);
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
    stream.on('chunk', (chunk) => chunks.push(chunk));
    const streamed = await stream.finalChatCompletion();
    if (schemas !== null)
      for (const chunk of chunks) assert.deepEqual(schemas.problems('CreateChatCompletionStreamResponse', chunk), []);
    for (const completion of [whole, streamed]) {
      const [choice] = completion.choices;
      assert.deepEqual(
        [choice?.finish_reason, choice?.message.content ?? null, choice?.message.tool_calls?.length],
        ['tool_calls', null, 2],
      );
      const ids = choice?.message.tool_calls?.map(({ id }) => id) ?? [];
      assert.equal(new Set(ids).size, 2);
      for (const call of choice?.message.tool_calls ?? []) {
        assert.ok(call.type === 'function');
        assert.equal((JSON.parse(call.function.arguments) as { path: string }).path, 'north');
      }
      assert.ok((completion.usage?.completion_tokens ?? 0) > 2);
    }
    assert.equal(streamed.usage?.completion_tokens, whole.usage?.completion_tokens);
    const [message] = whole.choices.map((choice) => choice.message);
    assert.ok(message !== undefined);
    const results = (message.tool_calls ?? []).map(({ id }) => ({
      role: 'tool' as const,
      tool_call_id: id,
      content: 'done',
    }));
    const after = await client.chat.completions.create({ ...body, messages: [...body.messages, message, ...results] });
    assert.equal(after.choices[0]?.finish_reason, 'stop');
  });

  test('come after text when both are asked for, and are cut off by the limit', async () => {
    const create = (content: string, limit: number) =>
      client.chat.completions.create({
        model: 'sim-small',
        max_completion_tokens: limit,
        messages: [{ role: 'user', content }],
      });
    const both = await create('[[sim: tool_call=look tokens=4]]', 100);
    assert.ok(both.choices[0]?.message.content !== null && both.choices[0]?.message.tool_calls?.length === 1);
    const cut = await create('[[sim: tool_call=look tokens=4]]', 4);
    assert.deepEqual(
      [cut.choices[0]?.finish_reason, cut.choices[0]?.message.tool_calls, cut.usage?.completion_tokens],
      ['length', undefined, 4],
    );
  });
});
