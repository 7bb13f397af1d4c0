// OpenAI's own client on every API that it has: what it gets, what it leaves behind, and what its user reads when the
// answer is no. Admission refusals are in the dialect on chat completions, and flat, as by default, elsewhere. Costs
// are in openai-client.long.test.ts.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import OpenAI, { APIUserAbortError, toFile } from 'openai';
import { makePng, wholeImageKind } from '../../src/simulator/image-files.ts';
import {
  type ClientInstallation,
  expectFailure,
  LEAVING,
  LEAVING_TOKENS,
  LISTED_MODELS,
  startClientInstallation,
  WRONG_KEY,
} from '../support/client-installation.ts';
import { KEYS } from '../support/test-configuration.ts';

const WEATHER = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

describe('the openai client', () => {
  let installation: ClientInstallation;
  const clientOf = (apiKey: string, baseUrl = `${installation.url}/v1`): OpenAI =>
    new OpenAI({ baseURL: baseUrl, apiKey, maxRetries: 0 });
  const acme = (): OpenAI => clientOf(KEYS.acme);

  before(async () => {
    installation = await startClientInstallation({ DIALECT_REFUSALS: 'chat_completions' });
  });

  after(() => installation?.stop());

  describe('on chat completions', () => {
    const user = (content: string) => [{ role: 'user' as const, content }];

    test('streams through its helper to the final completion', async () => {
      const stream = acme().chat.completions.stream({
        model: 'sim/small',
        messages: user('Hello [[sim: tokens=12]]'),
        stream_options: { include_usage: true },
      });
      const completion = await stream.finalChatCompletion();
      assert.equal(completion.choices[0]?.finish_reason, 'stop');
      assert.equal(completion.usage?.completion_tokens, 12);
    });

    for (const stream of [false, true]) {
      test(`runs tools to their end, ${stream ? 'streamed' : 'whole'}`, async () => {
        const cities: string[] = [];
        const weather = {
          type: 'function' as const,
          function: {
            name: 'weather',
            description: 'The weather',
            parameters: WEATHER,
            parse: (text: string) => JSON.parse(text) as { city: string },
            function: ({ city }: { city: string }) => {
              cities.push(city);
              return 'sunny';
            },
          },
        };
        const params = {
          model: 'sim/small',
          messages: user('What now? [[sim: tool_call=weather tool_arguments=%7B%22city%22%3A%22Bonn%22%7D]]'),
          tools: [weather],
        };
        const completions = acme().chat.completions;
        const runner = stream ? completions.runTools({ ...params, stream: true }) : completions.runTools(params);
        assert.ok(((await runner.finalContent()) ?? '').length > 0);
        assert.deepEqual(cities, ['Bonn']);
      });
    }

    test('leaves the provider within a second, also by a signal', async () => {
      await installation.leaveStream(async () => {
        const controller = new AbortController();
        const body = { model: 'sim/small', messages: user(LEAVING), max_tokens: LEAVING_TOKENS, stream: true as const };
        const stream = await acme().chat.completions.create(body, { signal: controller.signal });
        let seen = 0;
        for await (const chunk of stream) {
          seen += chunk.choices.length;
          if (seen === 5) controller.abort();
        }
        return seen;
      });
      const error = await installation.abortCall((signal) =>
        acme().chat.completions.create(
          { model: 'sim/small', messages: user(LEAVING), max_tokens: LEAVING_TOKENS },
          { signal },
        ),
      );
      assert.ok(error instanceof APIUserAbortError);
    });

    test('waits out the pause that a provider asked for, and is served', async () => {
      const client = new OpenAI({ baseURL: `${installation.url}/v1`, apiKey: KEYS.acme, maxRetries: 1 });
      const messages = user('Busy. [[sim: status=429 retry_after=1 times=1]]');
      const answer = await client.chat.completions.create({ model: installation.freshModel(), messages });
      assert.equal(answer.choices[0]?.finish_reason, 'stop');
    });

    test('shows refusals', async () => {
      const ask = (key: string, model: string, text = 'Hello', fields: object = {}) =>
        refusal(clientOf(key).chat.completions.create({ model, messages: user(text), ...fields }));
      const wrongKey = await ask('tg-wrong', 'sim/small');
      assert.ok(wrongKey instanceof OpenAI.AuthenticationError);
      assert.equal(wrongKey.message, `401 ${WRONG_KEY}`);

      const credit = await ask(KEYS.broke, 'sim/small');
      assert.equal(credit.status, 402);
      assert.equal(credit.code, 'insufficient_credit');
      assert.equal(credit.type, 'billing_error');
      assert.match(
        credit.message,
        /^402 The balance does not cover what this request could cost: up to 0\.\d+ USD.* Add credit, or lower the output limit of the request\.$/,
      );

      for (const model of ['sim/none', 'sim/retired']) {
        const unknown = await ask(KEYS.acme, model);
        assert.ok(unknown instanceof OpenAI.NotFoundError);
        assert.equal(unknown.code, 'model_not_found');
        assert.equal(
          unknown.message,
          `404 The model "${model}" does not exist or is not available to you. GET /v1/models lists the ` +
            `models you can use.`,
        );
      }

      const unbounded = await ask(KEYS.acme, 'sim/uncapped');
      assert.ok(unbounded instanceof OpenAI.UnprocessableEntityError);
      assert.equal(unbounded.code, 'not_safely_billable');
      assert.match(
        unbounded.message,
        /^422 The cost of this request has no upper bound\. Set "max_tokens" to a whole number/,
      );
      const bounded = await clientOf(KEYS.acme).chat.completions.create({
        model: 'sim/uncapped',
        messages: user('Hello'),
        max_completion_tokens: 5,
      });
      assert.equal(bounded.choices[0]?.finish_reason, 'length');

      const malformed = await ask(KEYS.acme, 'sim/small', 'Hello', { max_tokens: -1 });
      assert.ok(malformed instanceof OpenAI.BadRequestError);
      assert.equal(malformed.param, 'max_tokens');
      assert.match(malformed.message, /^400 The field "max_tokens" is not valid: /);

      const elsewhere = await ask(KEYS.acme, 'sim/image');
      assert.ok(elsewhere instanceof OpenAI.BadRequestError);
      assert.match(elsewhere.message, /"sim\/image" is not served on this endpoint/);
    });

    test("shows the provider's own refusals, and the pause after one", async () => {
      const model = installation.freshModel();
      const ask = (text: string) => refusal(acme().chat.completions.create({ model, messages: user(text) }));
      const failed = await ask('Fail [[sim: status=500]]');
      assert.ok(failed instanceof OpenAI.InternalServerError);
      assert.match(failed.message, /^500 .*simulated/i);
      const limited = await ask('Busy [[sim: status=429 retry_after=7]]');
      assert.ok(limited instanceof OpenAI.RateLimitError);
      assert.equal(limited.code, 'rate_limit_exceeded');
      assert.equal(limited.headers?.get('retry-after'), '7');
      const paused = await ask('Hello');
      assert.ok(paused instanceof OpenAI.RateLimitError);
      assert.equal(paused.code, 'upstream_cooldown');
      assert.match(
        paused.message,
        /^429 Every provider of this model has asked for a pause\. Try again after the time in the Retry-After header\.$/,
      );
      assert.ok(Number(paused.headers?.get('retry-after')) >= 1);
    });

    test('is told by an error that a stream broke', async () => {
      for (const fault of ['cut_after=6', 'reset_after=6', 'cut_mid_event=6', 'error_after=6']) {
        const error = await expectFailure(
          acme()
            .chat.completions.stream({ model: 'sim/small', messages: user(`Break [[sim: ${fault}]]`) })
            .done(),
        );
        assert.ok(error instanceof Error, fault);
      }
    });
  });

  describe('on responses', () => {
    test('creates, continues, retrieves, lists the input of and deletes one', async () => {
      const { responses } = acme();
      const first = await responses.create({ model: 'sim/small', input: 'Remember: blue. [[sim: tokens=9]]' });
      assert.equal(first.status, 'completed');
      assert.ok(first.output_text.length > 0);
      assert.equal(first.usage?.output_tokens, 9);
      const second = await responses.create({
        model: 'sim/small',
        input: 'Which colour?',
        previous_response_id: first.id,
      });
      assert.equal(second.previous_response_id, first.id);
      assert.equal((await responses.retrieve(first.id)).output_text, first.output_text);
      const items = await responses.inputItems.list(first.id, { order: 'asc' });
      assert.match(JSON.stringify(items.data), /Remember: blue/);
      await responses.delete(first.id);
      const gone = await refusal(responses.retrieve(first.id));
      assert.ok(gone instanceof OpenAI.NotFoundError);
      assert.equal((await responses.retrieve(second.id)).id, second.id);
    });

    test('cancels one in the background, which is not for billed organizations', async () => {
      const { responses } = clientOf(KEYS.free);
      const started = await responses.create({
        model: 'sim/small',
        input: 'Slowly. [[sim: tokens=1000 delay_ms=50]]',
        background: true,
        store: true,
      });
      assert.ok(started.status === 'queued' || started.status === 'in_progress');
      assert.equal((await responses.cancel(started.id)).status, 'cancelled');
      assert.equal((await responses.retrieve(started.id)).status, 'cancelled');
      const billed = await refusal(acme().responses.create({ model: 'sim/small', input: 'Slowly.', background: true }));
      assert.equal(billed.message, '422 "not_safely_billable"');
    });

    test('finds no response of another organization', async () => {
      const { id } = await acme().responses.create({ model: 'sim/small', input: 'Mine.' });
      const { responses } = clientOf(KEYS.other);
      for (const call of [
        () => responses.retrieve(id),
        () => responses.delete(id),
        () => responses.cancel(id),
        () => responses.inputItems.list(id),
      ]) {
        const error = await refusal(call());
        assert.ok(error instanceof OpenAI.NotFoundError);
        assert.equal(error.code, 'response_not_found');
        assert.match(
          error.message,
          /^404 There is no saved response under this id that this credential may use\. Check the id/,
        );
      }
      const continued = await refusal(
        responses.create({ model: 'sim/small', input: 'And now?', previous_response_id: id }),
      );
      assert.equal(continued.status, 404);
      assert.equal(continued.code, 'response_not_found');
      assert.equal((await acme().responses.retrieve(id)).id, id);
    });

    test('streams through its helper to the final response', async () => {
      const stream = acme().responses.stream({ model: 'sim/small', input: 'Hello [[sim: tokens=11]]' });
      let text = '';
      stream.on('response.output_text.delta', (event) => {
        text += event.delta;
      });
      const response = await stream.finalResponse();
      assert.equal(response.output_text, text);
      assert.equal(response.usage?.output_tokens, 11);
    });

    test('calls tools, and takes their results', async () => {
      const { responses } = acme();
      const tools: OpenAI.Responses.Tool[] = [{ type: 'function', name: 'weather', parameters: WEATHER, strict: true }];
      const asked = await responses.create({
        model: 'sim/small',
        input: 'What now? [[sim: tool_call=weather]]',
        tools,
      });
      const call = asked.output.find((item) => item.type === 'function_call');
      assert.equal(call?.name, 'weather');
      assert.equal(typeof (JSON.parse(call.arguments) as { city: unknown }).city, 'string');
      const result = { type: 'function_call_output' as const, call_id: call.call_id, output: 'sunny' };
      const answered = await responses.create({
        model: 'sim/small',
        input: [result],
        previous_response_id: asked.id,
        tools,
      });
      assert.ok(answered.output_text.length > 0);
    });

    test('leaves the provider within a second', async () => {
      await installation.leaveStream(async () => {
        const stream = await acme().responses.create({
          model: 'sim/small',
          input: LEAVING,
          max_output_tokens: LEAVING_TOKENS,
          stream: true,
        });
        let seen = 0;
        for await (const event of stream) {
          if (event.type === 'response.output_text.delta') seen += 1;
          if (seen === 5) break;
        }
        return seen;
      });
      const error = await installation.abortCall((signal) =>
        acme().responses.create({ model: 'sim/small', input: LEAVING, max_output_tokens: LEAVING_TOKENS }, { signal }),
      );
      assert.ok(error instanceof APIUserAbortError);
    });

    test('shows refusals', async () => {
      const ask = (key: string, model: string, input = 'Hello', fields: object = {}) =>
        refusal(clientOf(key).responses.create({ model, input, ...fields }));
      assert.equal((await ask('tg-wrong', 'sim/small')).message, '401 "unauthorized"');
      const credit = await ask(KEYS.broke, 'sim/small');
      assert.deepEqual([credit.status, credit.message], [402, '402 "insufficient_credit"']);
      const unknown = await ask(KEYS.acme, 'sim/none');
      assert.deepEqual([unknown.status, unknown.code, unknown.param], [404, 'model_not_found', 'model']);
      const unbounded = await ask(KEYS.acme, 'sim/uncapped');
      assert.deepEqual([unbounded.status, unbounded.message], [422, '422 "not_safely_billable"']);
      const malformed = await ask(KEYS.acme, 'sim/small', 'Hello', { max_output_tokens: 'many' });
      assert.ok(malformed instanceof OpenAI.BadRequestError);
      assert.equal(malformed.param, 'max_output_tokens');
      const limited = await ask(KEYS.acme, installation.freshModel(), 'Busy [[sim: status=429 retry_after=7]]');
      assert.ok(limited instanceof OpenAI.RateLimitError);
      assert.equal(limited.headers?.get('retry-after'), '7');
      const failed = await ask(KEYS.acme, 'sim/small', 'Fail [[sim: status=500]]');
      assert.ok(failed instanceof OpenAI.InternalServerError);
      assert.match(failed.message, /^500 ./);
    });

    test('is told by an error that a stream broke', async () => {
      for (const fault of ['cut_after=6', 'reset_after=6', 'error_after=6']) {
        const error = await expectFailure(
          acme()
            .responses.stream({ model: 'sim/small', input: `Break [[sim: ${fault}]]` })
            .finalResponse(),
        );
        assert.ok(error instanceof Error, fault);
      }
    });
  });

  describe('on images', () => {
    test('generates several, and streams', async () => {
      const { images } = acme();
      const answer = await images.generate({ model: 'sim/image', prompt: 'A cat', n: 2, quality: 'low' });
      assert.equal(answer.data?.length, 2);
      for (const { b64_json: image } of answer.data ?? [])
        assert.equal(wholeImageKind(Buffer.from(image ?? '', 'base64')), 'png');
      const types: string[] = [];
      for await (const event of await images.generate({
        model: 'sim/image',
        prompt: 'A cat',
        stream: true,
        partial_images: 1,
      }))
        types.push(event.type);
      assert.deepEqual(types, ['image_generation.partial_image', 'image_generation.completed']);
    });

    test('edits several with a mask, and each file arrives as it was sent', async () => {
      const [first, second, mask] = [makePng(1, 0), makePng(2, 300_000), makePng(3, 0)];
      const file = (bytes: Buffer, name: string) => toFile(bytes, name, { type: 'image/png' });
      const answer = await acme().images.edit({
        model: 'sim/image',
        prompt: 'Make it grün',
        image: [await file(first, 'first.png'), await file(second, 'zweites "Bild".png')],
        mask: await file(mask, 'mask.png'),
      });
      assert.equal(answer.data?.length, 1);
      const end = await installation.provider.lastEnd();
      assert.equal(end.api, 'image_edits');
      assert.equal(end.model, 'sim-image');
      const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
      const arrived =
        end.parts?.flatMap(({ name, filename, sha256: sum }) => (filename === null ? [] : [`${name} ${sum}`])) ?? [];
      assert.deepEqual(
        arrived.sort(),
        [`image[] ${sha256(first)}`, `image[] ${sha256(second)}`, `mask ${sha256(mask)}`].sort(),
      );
    });

    // The client does not know how long the form will be, and sends it in chunks.
    test('edits a file that it reads as it sends', async () => {
      const directory = mkdtempSync(join(tmpdir(), 'tollgate-images-'));
      const bytes = makePng(2, 700_000);
      const path = join(directory, 'large.png');
      writeFileSync(path, bytes);
      try {
        for (const stream of [false, true] as const) {
          const answer = await acme().images.edit({
            model: 'sim/image',
            prompt: 'Make it blue',
            image: createReadStream(path),
            stream,
          });
          if (Symbol.asyncIterator in answer) assert.ok((await consume(answer)) > 0);
          else assert.equal(answer.data?.length, 1);
          const end = await installation.provider.lastEnd();
          const part = end.parts?.find(({ name }) => name === 'image');
          assert.equal(part?.sha256, createHash('sha256').update(bytes).digest('hex'));
        }
      } finally {
        rmSync(directory, { recursive: true });
      }
    });

    test('leaves the provider', async () => {
      const error = await installation.abortCall((signal) =>
        acme().images.generate({ model: 'sim/image', prompt: 'Slowly [[sim: delay_ms=100000]]' }, { signal }),
      );
      assert.ok(error instanceof APIUserAbortError);
    });

    test('shows refusals', async () => {
      const ask = (key: string, model: string, prompt = 'A cat', fields: object = {}) =>
        refusal(clientOf(key).images.generate({ model, prompt, ...fields }));
      assert.equal((await ask('tg-wrong', 'sim/image')).status, 401);
      assert.equal((await ask(KEYS.broke, 'sim/image')).message, '402 "insufficient_credit"');
      const unknown = await ask(KEYS.acme, 'sim/none');
      assert.deepEqual([unknown.status, unknown.code], [404, 'model_not_found']);
      assert.equal((await ask(KEYS.acme, 'sim/image', 'A cat', { n: 11 })).message, '422 "not_safely_billable"');
      const malformed = await ask(KEYS.acme, 'sim/image', 'A cat', { n: 1.5 });
      assert.deepEqual([malformed.status, malformed.param], [400, 'n']);
      assert.match(malformed.message, /must be a whole number from 1 to 10/);
      assert.ok((await ask(KEYS.acme, 'sim/image', 'Fail [[sim: status=500]]')) instanceof OpenAI.InternalServerError);
      const edited = await refusal(
        clientOf(KEYS.acme).images.edit({
          model: 'sim/none',
          prompt: 'x',
          image: await toFile(makePng(1, 0), 'a.png'),
        }),
      );
      assert.deepEqual([edited.status, edited.code], [404, 'model_not_found']);
    });
  });

  test('lists models', async () => {
    const ids: string[] = [];
    for await (const model of acme().models.list()) ids.push(model.id);
    assert.deepEqual(ids.slice(0, LISTED_MODELS.length), LISTED_MODELS);
    assert.ok(!ids.includes('sim/retired'));
    const one = await acme().models.retrieve('sim/small-latest');
    assert.deepEqual([one.id, one.object, one.owned_by], ['sim/small-latest', 'model', 'upstream']);
    assert.ok(one.created > 0);
    const unknown = await refusal(acme().models.retrieve('sim/retired'));
    assert.ok(unknown instanceof OpenAI.NotFoundError);
    assert.match(unknown.message, /sim\/retired.* does not exist/);
    assert.equal((await refusal(clientOf('tg-wrong').models.list())).message, '401 "unauthorized"');
  });

  // A clean end without the dialect's last event is success to this client: the relay has to cut it.
  test('is told by an error that a stream ended too early', async () => {
    const { chat, responses } = acme();
    const messages = [{ role: 'user' as const, content: 'Break [[sim: end_after=6]]' }];
    await expectFailure(consume(await chat.completions.create({ model: 'sim/small', messages, stream: true })));
    await expectFailure(
      consume(await responses.create({ model: 'sim/small', input: 'Break [[sim: end_after=6]]', stream: true })),
    );
  });

  test('is told which base URL to use', async () => {
    const ask = (baseUrl: string) =>
      refusal(
        clientOf(KEYS.acme, baseUrl).chat.completions.create({
          model: 'sim/small',
          messages: [{ role: 'user', content: 'Hello' }],
        }),
      );
    const lacking = await ask(installation.url);
    assert.ok(lacking instanceof OpenAI.NotFoundError);
    assert.equal(
      lacking.message,
      `404 There is no endpoint at "/chat/completions". The path lacks "/v1": set the base URL of your ` +
        `client to ${installation.url}/v1.`,
    );
    const twice = await ask(`${installation.url}/v1/v1`);
    assert.match(
      twice.message,
      /^404 There is no endpoint at "\/v1\/v1\/chat\/completions"\. The path has "\/v1" twice: set the base URL of your client to http:/,
    );
    const models = await refusal(clientOf(KEYS.acme, installation.url).models.list());
    assert.match(models.message, /The path lacks .*\/v1\./);
  });
});

async function refusal(call: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error = await expectFailure(call);
  assert.ok(error instanceof OpenAI.APIError, String(error));
  return error;
}

async function consume(stream: AsyncIterable<unknown>): Promise<number> {
  let seen = 0;
  for await (const part of stream) if (part !== null) seen += 1;
  return seen;
}
