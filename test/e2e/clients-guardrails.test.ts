// The official clients in a loop of tools over three turns, with values that are cloaked: each gets its values back in
// text and in the arguments of tools, the provider sees placeholders alone and the same beginning in every turn, and
// signed thinking returns as it was.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { type LanguageModel, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { chatReply, type LoopReply, messagesReply, SIGNATURE } from '../support/tool-loop-replies.ts';

type Json = Readonly<Record<string, unknown>>;

const MAIL = 'ada.lovelace@analytical.example';
const SECRET = 'opensesame';
const PROMPT = `Ask for the address of ${MAIL} until you know it.`;
const PLACEHOLDER = /TGE\d{12}/;
const TURNS = 3;
const GUARDRAILS = `guardrails:
  - name: main
    rules:
      - { id: people, detect: [email], stage: input, action: cloak }
      - { id: doors, words: [${SECRET}], stage: output, action: block }
`;
const MODELS = [
  { id: 'sim/small', providerModel: 'small', outputCap: 4_096, apis: ['chat_completions', 'responses', 'messages'] },
] as const;

/** What the provider says in each turn but the last, and then. */
function replyOf(placeholder: string, isLast: boolean, callId: string): LoopReply {
  return {
    thinking: `Who is ${placeholder}?`,
    says: isLast
      ? { text: `It is ${placeholder}, "really".` }
      : { tool: 'lookup', callId, arguments: JSON.stringify({ who: placeholder }) },
  };
}

let upstream: FakeUpstream;
let tollgate: Front;
/** Bodies of the present loop, as the provider got them. */
let bodies: Json[] = [];

before(async () => {
  upstream = await startFakeUpstream(({ body, path }) => {
    const text = body.toString();
    const parsed = JSON.parse(text) as Json;
    if (text.includes('say the word')) {
      const said: LoopReply = { thinking: null, says: { text: `It is ${SECRET}.` } };
      return path.includes('messages') ? messagesReply(said) : chatReply(said);
    }
    bodies.push(parsed);
    assert.ok(!text.includes(MAIL), 'the provider has seen the value');
    const placeholder = PLACEHOLDER.exec(text)?.[0] ?? 'no placeholder';
    const isLast = bodies.length >= TURNS;
    return path.includes('messages')
      ? messagesReply(replyOf(placeholder, isLast, 'toolu_1'))
      : chatReply({ ...replyOf(placeholder, isLast, 'call_1'), thinking: null });
  });
  const yaml = testConfiguration({ upstreamUrl: upstream.url, models: MODELS });
  tollgate = await startFront({
    configurationYaml: `${GUARDRAILS}${yaml.replace('  - slug: acme\n', '  - slug: acme\n    guardrails: { policy: main }\n')}`,
  });
});
after(async () => {
  await tollgate?.stop();
  await upstream?.close();
});

/** Each turn begins as the one before it did, placeholders included: what a provider has cached is found again. */
function expectSamePrefix(): void {
  assert.equal(bodies.length, TURNS);
  for (let turn = 1; turn < TURNS; turn++) {
    const [earlier, later] = [bodies[turn - 1]?.['messages'], bodies[turn]?.['messages']] as [unknown[], unknown[]];
    assert.deepEqual(later.slice(0, earlier.length), earlier);
  }
}

const EXPECTED = `It is ${MAIL}, "really".`;

describe('a loop of tools with cloaked values', () => {
  test('openai, streamed chat completions', async () => {
    bodies = [];
    const client = new OpenAI({ baseURL: `${tollgate.url}/v1`, apiKey: KEYS.acme, maxRetries: 0 });
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: PROMPT }];
    const tools: OpenAI.ChatCompletionTool[] = [
      {
        type: 'function',
        function: { name: 'lookup', parameters: { type: 'object', properties: { who: { type: 'string' } } } },
      },
    ];
    let text = '';
    for (let turn = 0; turn < TURNS; turn++) {
      const reply = await client.chat.completions
        .stream({ model: 'sim/small', messages, tools, max_tokens: 50 })
        .finalMessage();
      text = reply.content ?? '';
      messages.push(reply);
      for (const call of reply.tool_calls ?? []) {
        assert.ok(call.type === 'function');
        assert.deepEqual(JSON.parse(call.function.arguments), { who: MAIL });
        messages.push({ role: 'tool', tool_call_id: call.id, content: `${MAIL} is not sure` });
      }
    }
    assert.equal(text, EXPECTED);
    expectSamePrefix();
  });

  test('anthropic, streamed messages with signed thinking', async () => {
    bodies = [];
    const client = new Anthropic({ baseURL: tollgate.url, apiKey: KEYS.acme, maxRetries: 0 });
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: PROMPT }];
    const tools: Anthropic.Tool[] = [
      { name: 'lookup', input_schema: { type: 'object', properties: { who: { type: 'string' } } } },
    ];
    let text = '';
    for (let turn = 0; turn < TURNS; turn++) {
      const reply = await client.messages
        .stream({ model: 'sim/small', messages, tools, max_tokens: 50 })
        .finalMessage();
      messages.push({ role: 'assistant', content: reply.content });
      const results: Anthropic.ToolResultBlockParam[] = [];
      for (const block of reply.content) {
        if (block.type === 'text') text = block.text;
        // What is signed keeps its placeholder, and so returns as it was.
        if (block.type === 'thinking') assert.match(block.thinking, PLACEHOLDER);
        if (block.type !== 'tool_use') continue;
        assert.deepEqual(block.input, { who: MAIL });
        results.push({ type: 'tool_result', tool_use_id: block.id, content: `${MAIL} is not sure` });
      }
      if (results.length > 0) messages.push({ role: 'user', content: results });
    }
    assert.equal(text, EXPECTED);
    expectSamePrefix();
    const [, assistant] = (bodies[2]?.['messages'] ?? []) as { content: Json[] }[];
    const placeholder = PLACEHOLDER.exec(JSON.stringify(bodies[0]))?.[0] ?? '';
    assert.deepEqual(assistant?.content[0], {
      type: 'thinking',
      thinking: `Who is ${placeholder}?`,
      signature: SIGNATURE,
    });
  });

  for (const [name, model] of [
    ['openai', () => createOpenAI({ baseURL: `${tollgate.url}/v1`, apiKey: KEYS.acme }).chat('sim/small')],
    ['anthropic', () => createAnthropic({ baseURL: `${tollgate.url}/v1`, apiKey: KEYS.acme })('sim/small')],
  ] as const satisfies readonly (readonly [string, () => LanguageModel])[]) {
    test(`the AI SDK with its ${name} provider`, async () => {
      bodies = [];
      const asked: unknown[] = [];
      const lookup = tool({
        inputSchema: z.object({ who: z.string() }),
        execute: ({ who }) => {
          asked.push(who);
          return `${who} is not sure`;
        },
      });
      const run = streamText({
        model: model(),
        prompt: PROMPT,
        tools: { lookup },
        stopWhen: stepCountIs(TURNS),
        maxOutputTokens: 50,
        maxRetries: 0,
      });
      assert.equal(await run.text, EXPECTED);
      assert.deepEqual(
        asked,
        Array.from({ length: TURNS - 1 }, () => MAIL),
      );
      expectSamePrefix();
    });
  }
});

describe('a block within a stream', () => {
  test('openai shows it, and does not ask again', async () => {
    const client = new OpenAI({ baseURL: `${tollgate.url}/v1`, apiKey: KEYS.acme, maxRetries: 2 });
    const before = upstream.requests.length;
    const asking = client.chat.completions
      .stream({ model: 'sim/small', messages: [{ role: 'user', content: 'say the word' }], max_tokens: 50 })
      .finalMessage();
    await assert.rejects(asking, /blocked the reply/);
    assert.equal(upstream.requests.length, before + 1);
  });

  test('anthropic shows it, and does not ask again', async () => {
    const client = new Anthropic({ baseURL: tollgate.url, apiKey: KEYS.acme, maxRetries: 2 });
    const before = upstream.requests.length;
    const asking = client.messages
      .stream({ model: 'sim/small', messages: [{ role: 'user', content: 'say the word' }], max_tokens: 50 })
      .finalMessage();
    await assert.rejects(asking, /invalid_request_error.*blocked the reply/);
    assert.equal(upstream.requests.length, before + 1);
  });

  test('the AI SDK shows it, and does not ask again', async () => {
    const before = upstream.requests.length;
    const errors: unknown[] = [];
    const run = streamText({
      model: createOpenAI({ baseURL: `${tollgate.url}/v1`, apiKey: KEYS.acme }).chat('sim/small'),
      prompt: 'say the word',
      maxOutputTokens: 50,
      onError: ({ error }) => void errors.push(error),
    });
    await run.consumeStream();
    assert.match(JSON.stringify(errors), /guardrail_blocked/);
    assert.equal(upstream.requests.length, before + 1);
  });
});
