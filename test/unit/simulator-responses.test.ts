// The simulated provider's Responses API, as the official client and OpenAI's own description read it.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { httpCall } from '../support/http-call.ts';
import { loadOpenapiSchemas } from '../support/openapi-schema.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { waitFor } from '../support/waiting.ts';

type Event = OpenAI.Responses.ResponseStreamEvent;

const TOOL = {
  type: 'function',
  name: 'multiply',
  strict: true,
  parameters: {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'integer' } },
    required: ['a', 'b'],
    additionalProperties: false,
  },
} as const;

describe('the simulated Responses API', () => {
  let provider: SimulatedProvider;
  let client: OpenAI;
  const schemas = loadOpenapiSchemas();

  before(async () => {
    provider = await startSimulatedProvider();
    client = new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'any', maxRetries: 0 });
  });

  after(() => provider?.stop());

  const create = (input: string, fields: Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming> = {}) =>
    client.responses.create({ model: 'sim-small', input, ...fields });

  async function stream(
    input: string,
    fields: Partial<OpenAI.Responses.ResponseCreateParamsStreaming> = {},
  ): Promise<Event[]> {
    const events: Event[] = [];
    for await (const event of await client.responses.create({ model: 'sim-small', input, ...fields, stream: true }))
      events.push(event);
    return events;
  }

  function assertDescribed(schemaName: string, value: unknown): void {
    if (schemas !== null)
      assert.deepEqual(schemas.problems(schemaName, value), [], JSON.stringify(value).slice(0, 400));
  }

  test('answers whole, with its usage', async () => {
    const response = await create('Say something. [[sim: tokens=5 cached=2 reasoning=4]]', {
      instructions: 'Be brief.',
      max_output_tokens: 100,
    });
    assert.equal(response.status, 'completed');
    assert.ok(response.output_text.length > 0);
    assert.deepEqual(
      response.output.map(({ type }) => type),
      ['reasoning', 'message'],
    );
    const {
      input_tokens: input,
      output_tokens: output,
      total_tokens: total,
      input_tokens_details: ins,
      output_tokens_details: outs,
    } = response.usage ?? {};
    const expected = Math.ceil('Be brief.Say something. [[sim: tokens=5 cached=2 reasoning=4]]'.length / 4);
    assert.deepEqual(
      [input, output, total, ins?.cached_tokens, outs?.reasoning_tokens],
      [expected, 9, expected + 9, 2, 4],
    );
    const { output_text: _ours, ...body } = response;
    assertDescribed('Response', body);
  });

  test('streams the same answer, event by event and numbered', async () => {
    const input = 'Stream. [[sim: tokens=6 split_utf8]]';
    const events = await stream(input);
    assert.deepEqual(
      events.map(({ sequence_number: number }) => number),
      events.map((_, index) => index),
    );
    assert.deepEqual(
      events.map(({ type }) => type.slice('response.'.length)).filter((type, index, all) => type !== all[index - 1]),
      [
        'created',
        'in_progress',
        'output_item.added',
        'content_part.added',
        'output_text.delta',
        'output_text.done',
        'content_part.done',
        'output_item.done',
        'completed',
      ],
    );
    for (const event of events) assertDescribed('ResponseStreamEvent', event);
    const said = events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('');
    const last = events.at(-1);
    assert.ok(last?.type === 'response.completed' && !said.includes('\ufffd'));
    assert.equal(last.response.usage?.output_tokens, 6);
    const accumulated = await client.responses.stream({ model: 'sim-small', input }).finalResponse();
    assert.equal(accumulated.output_text.length, said.length);
  });

  test('calls tools, whole and streamed, once for each wish', async () => {
    const input = 'Please [[sim: tool_call]]';
    const response = await create(input, { tools: [TOOL] });
    const [call] = response.output;
    assert.ok(call?.type === 'function_call');
    assert.deepEqual([call.name, JSON.parse(call.arguments)], ['multiply', { a: 7, b: 7 }]);
    const events = await stream(input, { tools: [TOOL] });
    for (const event of events) assertDescribed('ResponseStreamEvent', event);
    const done = events.find((event) => event.type === 'response.function_call_arguments.done');
    assert.equal(done?.arguments, call.arguments);
    const result = { type: 'function_call_output', call_id: call.call_id, output: '49' } as const;
    const after = await client.responses.create({
      model: 'sim-small',
      tools: [TOOL],
      input: [{ role: 'user', content: input }, call, result],
    });
    assert.deepEqual(
      after.output.map(({ type }) => type),
      ['message'],
    );
    const forced = await create('Anything.', { tools: [TOOL], tool_choice: 'required' });
    assert.equal(forced.output[0]?.type, 'function_call');
    const inWords = await create('Now use the multiply tool.', { tools: [TOOL] });
    assert.equal(inWords.output[0]?.type, 'function_call');
    const written = await create(
      '[[sim: tool_call=shell tool_arguments=%7B%22command%22%3A%22ls%20%5B%5D%22%7D tool_calls=2]]',
    );
    assert.deepEqual(
      written.output.map((item) => (item.type === 'function_call' ? [item.name, item.arguments] : item.type)),
      [
        ['shell', '{"command":"ls []"}'],
        ['shell', '{"command":"ls []"}'],
      ],
    );
  });

  test('seals reasoning, and knows its seal again', async () => {
    const fields = {
      include: ['reasoning.encrypted_content'],
      reasoning: { effort: 'low', summary: 'auto' },
      store: false,
    } as const;
    const response = await create('Think.', { ...fields, include: [...fields.include] });
    const [reasoning] = response.output;
    assert.ok(reasoning?.type === 'reasoning' && typeof reasoning.encrypted_content === 'string');
    assert.equal(reasoning.summary.length, 1);
    for (const event of await stream('Think.', { ...fields, include: [...fields.include] }))
      assertDescribed('ResponseStreamEvent', event);
    const again = (seal: string) =>
      client.responses.create({
        model: 'sim-small',
        store: false,
        input: [
          { ...reasoning, encrypted_content: seal },
          { role: 'user', content: 'Go on.' },
        ],
      });
    assert.equal((await again(reasoning.encrypted_content)).status, 'completed');
    await assert.rejects(
      again(`${reasoning.encrypted_content.slice(0, -8)}AAAAAAA=`),
      (error: InstanceType<typeof OpenAI.APIError>) => error.code === 'invalid_encrypted_content',
    );
  });

  test('says when the limit ended it', async () => {
    const response = await create('Talk.', { max_output_tokens: 3 });
    assert.deepEqual(
      [response.status, response.incomplete_details?.reason, response.usage?.output_tokens],
      ['incomplete', 'max_output_tokens', 3],
    );
    assert.equal((await stream('Talk.', { max_output_tokens: 3 })).at(-1)?.type, 'response.incomplete');
  });

  test('keeps responses for the credential that made them', async () => {
    const response = await create('Keep this.');
    const found = await client.responses.retrieve(response.id);
    assert.deepEqual([found.output_text, found.usage], [response.output_text, response.usage]);
    const items = await client.responses.inputItems.list(response.id);
    assert.equal(items.data[0]?.type, 'message');
    assertDescribed('ResponseItemList', {
      object: 'list',
      data: items.data,
      has_more: items.has_more,
      first_id: items.data[0]?.id,
      last_id: items.data.at(-1)?.id,
    });
    const next = await create('And now?', { previous_response_id: response.id });
    assert.equal(next.usage?.input_tokens, 2 + (response.usage?.total_tokens ?? 0));
    await assert.rejects(create('x', { previous_response_id: 'resp_none' }), {
      status: 400,
      code: 'previous_response_not_found',
    });
    await assert.rejects(client.responses.cancel(response.id), { status: 400 });
    const stranger = new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'other', maxRetries: 0 });
    await assert.rejects(stranger.responses.retrieve(response.id), { status: 404 });
    const unsaved = await create('Forget this.', { store: false });
    await assert.rejects(client.responses.retrieve(unsaved.id), { status: 404 });
    const deleted = await httpCall(`${provider.url}/v1/responses/${response.id}`, {
      method: 'DELETE',
      headers: { authorization: 'Bearer any' },
    });
    assert.deepEqual(JSON.parse(deleted.body.toString('utf8')), { id: response.id, object: 'response', deleted: true });
    await assert.rejects(client.responses.delete(response.id), { status: 404 });
    const streamed = (await stream('Keep the streamed one.')).at(-1);
    assert.ok(streamed?.type === 'response.completed');
    assert.equal((await client.responses.retrieve(streamed.response.id)).id, streamed.response.id);
  });

  test('works in the background, and stops when told', async () => {
    const slow = await create('Slowly. [[sim: delay_ms=20000]]', { background: true });
    assert.deepEqual([slow.status, slow.usage], ['queued', null]);
    assert.equal((await client.responses.retrieve(slow.id)).status, 'in_progress');
    assert.equal((await client.responses.cancel(slow.id)).status, 'cancelled');
    assert.equal((await client.responses.retrieve(slow.id)).status, 'cancelled');
    const quick = await create('At once.', { background: true });
    assert.equal((await client.responses.retrieve(quick.id)).status, 'completed');
    assert.equal((await client.responses.cancel(quick.id)).status, 'completed');
    assert.deepEqual(
      (await stream('Both.', { background: true })).slice(0, 3).map(({ type }) => type),
      ['response.created', 'response.queued', 'response.in_progress'],
    );
  });

  test('fails as it is asked, also where it is only asked about', async () => {
    await assert.rejects(stream('[[sim: error_event=2]]'), /server had an error/);
    await assert.rejects(create('[[sim: status=429 retry_after=3]]'), { status: 429 });
    await assert.rejects(stream('[[sim: cut_mid_event]]'));
    assert.equal((await stream('[[sim: no_done]]')).at(-1)?.type, 'response.output_item.done');
    const quiet = (await stream('[[sim: no_usage]]')).at(-1);
    assert.ok(quiet?.type === 'response.completed' && quiet.response.usage === null);
    const kept = await create('Keep. [[sim/saved: status=503]]');
    await assert.rejects(client.responses.retrieve(kept.id), { status: 503 });
    await assert.rejects(create('x', { model: 'unknown' }), { status: 404, code: 'model_not_found' });
    assert.equal((await create('[[sim/messages: status=500]]')).status, 'completed', 'meant for another API');
  });

  test('logs every call, operations on stored responses too', async () => {
    await provider.lastEnd();
    const before = provider.ends().length;
    const response = await create('Log. [[sim: tokens=4]]');
    await client.responses.retrieve(response.id);
    const ends = await waitFor(
      'both ends to be logged',
      () => provider.ends().slice(before),
      (found) => found.length === 2,
    );
    assert.deepEqual(
      ends.map(({ api, id, responseId, completionTokens, usageSent, completed }) => [
        api,
        id === response.id,
        responseId,
        completionTokens,
        usageSent,
        completed,
      ]),
      [
        ['responses', true, undefined, 4, true, true],
        ['response_retrieve', false, response.id, 0, false, true],
      ],
    );
  });
});
