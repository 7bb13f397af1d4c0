// The AI SDK keeps responses at the provider by default and refers to their items in each step of a tool loop: served
// by the provider that keeps them, by every process, for their owner alone (spec 4.2).

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { APICallError, generateText, type LanguageModel, type ModelMessage, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { expectFailure } from '../support/client-installation.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const STEPS = 3;
const PROCESSES = 2;
/** More than is kept of a reply's end: the last event of a stream repeats it behind the items. */
const LONG_DESCRIPTION = 'd'.repeat(60_000);

interface Call {
  readonly stream?: boolean;
  readonly tools?: readonly object[];
  readonly input: readonly { readonly type?: string; readonly id?: string; readonly role?: string }[];
}

let upstream: FakeUpstream;
let tollgate: Tollgate;
let replies = 0;
const given = new Set<string>();
const referred: string[] = [];

before(async () => {
  upstream = await startFakeUpstream(({ body }) => answer(JSON.parse(body.toString()) as Call));
  const models = [{ id: 'sim/gpt-5', providerModel: 'gpt-5', outputCap: 4_096, apis: ['responses'] as const }];
  tollgate = await startTollgate({
    clickhouse: 'away',
    configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models }),
    gatewayProcesses: PROCESSES,
  });
});

after(async () => {
  await tollgate?.stop();
  await upstream?.close();
});

/** A reasoning model that asks for a tool until the last step, and that knows the items it has given. */
function answer({ stream = false, tools = [], input }: Call): {
  status?: number;
  headers?: [string, string][];
  body: string;
} {
  const references = input.filter(({ type }) => type === 'item_reference').map(({ id = '' }) => id);
  referred.push(...references);
  const missing = references.find((id) => !given.has(id));
  if (missing !== undefined)
    return { status: 404, body: JSON.stringify({ error: { message: `Item with id '${missing}' not found.` } }) };
  replies += 1;
  const asked = input.filter(({ type }) => type === 'function_call_output').length;
  const reasoning = { id: `rs_${replies}`, type: 'reasoning', summary: [] };
  const called = {
    id: `fc_${replies}`,
    type: 'function_call',
    call_id: `call_${replies}`,
    name: 'weather',
    arguments: '{"city":"Bonn"}',
    status: 'completed',
  };
  const content = [{ type: 'output_text', text: 'Sunny.', annotations: [] }];
  const said = { id: `msg_${replies}`, type: 'message', role: 'assistant', status: 'completed', content };
  const output = asked % STEPS < STEPS - 1 ? [reasoning, called] : [reasoning, said];
  for (const { id } of output) given.add(id);
  const usage = { input_tokens: 9, output_tokens: 5, total_tokens: 14 };
  const response = {
    id: `resp_${replies}`,
    object: 'response',
    created_at: 1,
    model: 'gpt-5',
    status: 'completed',
    output,
    usage,
    tools,
  };
  if (!stream) return { headers: [['content-type', 'application/json']], body: JSON.stringify(response) };
  const events = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [], usage: null } },
    ...output.flatMap((item, index) => [
      { type: 'response.output_item.added', output_index: index, item: { ...item, content: [] } },
      ...(item === said
        ? [
            {
              type: 'response.output_text.delta',
              item_id: said.id,
              output_index: index,
              content_index: 0,
              delta: 'Sunny.',
            },
          ]
        : []),
      { type: 'response.output_item.done', output_index: index, item },
    ]),
    { type: 'response.completed', response },
  ];
  // What is between the events is longer than what is kept of a reply.
  const comments = `: ${'-'.repeat(500)}\n\n`.repeat(100);
  const body = events
    .map(
      (event, index) =>
        `${comments}event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: index })}\n\n`,
    )
    .join('');
  return { headers: [['content-type', 'text/event-stream']], body };
}

function modelOf(apiKey: string): LanguageModel {
  // Each request has a connection of its own, so that the processes take turns.
  return createOpenAI({ baseURL: `${tollgate.url}/v1`, apiKey, headers: { connection: 'close' } })('sim/gpt-5');
}

const tools = {
  weather: tool({ description: LONG_DESCRIPTION, inputSchema: z.object({ city: z.string() }), execute: () => 'sunny' }),
};
// The SDK tells a reasoning model by its name, which ours is not.
const providerOptions = { openai: { forceReasoning: true } };

for (const [form, run] of [
  [
    'whole',
    async (messages: ModelMessage[], model: LanguageModel) =>
      (await generateText({ ...question(messages, model) })).response.messages,
  ],
  [
    'streamed',
    async (messages: ModelMessage[], model: LanguageModel) =>
      (await streamText({ ...question(messages, model) }).response).messages,
  ],
] as const) {
  describe(`the AI SDK on responses, ${form}`, () => {
    test('runs a tool loop and goes on with the conversation, by references to what the provider keeps', async () => {
      const before = referred.length;
      const messages: ModelMessage[] = [];
      for (let turn = 0; turn < 4; turn++) {
        messages.push({ role: 'user', content: 'What now?' });
        const made = await run(messages, modelOf(KEYS.acme));
        assert.equal(made.at(-1)?.role, 'assistant');
        messages.push(...made);
      }
      const now = referred.slice(before);
      assert.ok(
        now.some((id) => id.startsWith('rs_')) && now.some((id) => id.startsWith('msg_')),
        `referred to ${now.length} items`,
      );
      // Nobody else may go on with it.
      const error = await expectFailure(
        generateText(question([...messages, { role: 'user', content: 'And?' }], modelOf(KEYS.other))),
      );
      assert.ok(APICallError.isInstance(error), String(error));
      assert.equal(error.statusCode, 400);
      assert.match(error.responseBody ?? '', /it refers to an item that this service does not know to be yours/);
    });
  });
}

/** Asked again as the SDK does by itself: on a busy machine the first worker may take too long to start (503). */
function question(messages: ModelMessage[], model: LanguageModel) {
  return { model, messages, tools, stopWhen: stepCountIs(STEPS), maxOutputTokens: 100, providerOptions };
}
