// Anthropic's own client, both of its majors: 1.x sends a Bearer token and a version date of its own, 0.x an
// `x-api-key` and an older date. Refusals are flat, as by default, and once more in the dialect.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic, { type ClientOptions } from '@anthropic-ai/sdk';
import Anthropic0 from 'anthropic-sdk-0';
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

type ErrorOfClient = InstanceType<typeof Anthropic.APIError>;

/** What is used here has the same shape in both majors; their types differ in what is not. */
const MAJORS = [
  { name: '1.x', Client: Anthropic },
  { name: '0.x', Client: Anthropic0 as unknown as typeof Anthropic },
] as const;

const WEATHER: Anthropic.Tool = {
  name: 'weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const user = (content: string): Anthropic.MessageParam[] => [{ role: 'user', content }];

let installation: ClientInstallation;

before(async () => {
  installation = await startClientInstallation();
});

after(() => installation?.stop());

for (const { name, Client } of MAJORS) {
  describe(`the anthropic client ${name}`, () => {
    const clientOf = (apiKey: string, options: ClientOptions = {}): Anthropic =>
      new Client({ baseURL: installation.url, apiKey, maxRetries: 0, ...options });
    const ask = (key: string, model: string, text = 'Hello', fields: object = {}): Promise<Anthropic.Message> =>
      clientOf(key).messages.create({ model, max_tokens: 50, messages: user(text), ...fields });

    async function refusal(call: PromiseLike<unknown>): Promise<ErrorOfClient> {
      const error = await expectFailure(call);
      assert.ok(error instanceof Client.APIError, String(error));
      return error;
    }

    test('completes a message', async () => {
      const message = await ask(KEYS.acme, 'sim/small', 'Hello [[sim: tokens=9 cached=2]]', { system: 'Be brief.' });
      assert.equal(message.stop_reason, 'end_turn');
      assert.equal(message.content[0]?.type, 'text');
      assert.deepEqual([message.usage.output_tokens, message.usage.cache_read_input_tokens], [9, 2]);
    });

    test('authenticates by the other header too', async () => {
      const client = new Client({ baseURL: installation.url, apiKey: null, authToken: KEYS.acme, maxRetries: 0 });
      assert.equal(
        (await client.messages.create({ model: 'sim/small', max_tokens: 5, messages: user('Hello') })).stop_reason,
        'max_tokens',
      );
    });

    test('streams through its helper to the final message', async () => {
      const stream = clientOf(KEYS.acme).messages.stream({
        model: 'sim/small',
        max_tokens: 50,
        messages: user('Hello [[sim: tokens=13 split_utf8]]'),
      });
      let text = '';
      stream.on('text', (delta) => {
        text += delta;
      });
      const message = await stream.finalMessage();
      assert.equal(message.stop_reason, 'end_turn');
      assert.equal(message.usage.output_tokens, 13);
      assert.deepEqual(
        message.content.map((block) => (block.type === 'text' ? block.text : block.type)),
        [text],
      );
    });

    for (const stream of [false, true]) {
      test(`calls tools, and takes their results, ${stream ? 'streamed' : 'whole'}`, async () => {
        const { messages } = clientOf(KEYS.acme);
        const question = user('What now? [[sim: tool_call tool_calls=2]]');
        const fields = { model: 'sim/small', max_tokens: 100, tools: [WEATHER] };
        const complete = (turns: Anthropic.MessageParam[]) => {
          const body = { ...fields, messages: turns };
          return stream ? messages.stream(body).finalMessage() : messages.create(body);
        };
        const asked = await complete(question);
        assert.equal(asked.stop_reason, 'tool_use');
        const calls = asked.content.filter((block) => block.type === 'tool_use');
        assert.equal(calls.length, 2);
        for (const call of calls) assert.equal(typeof (call.input as { city: unknown }).city, 'string');
        const results = calls.map((call) => ({ type: 'tool_result' as const, tool_use_id: call.id, content: 'sunny' }));
        const answered = await complete([
          ...question,
          { role: 'assistant', content: asked.content },
          { role: 'user', content: results },
        ]);
        assert.equal(answered.stop_reason, 'end_turn');
      });
    }

    test('reaches the beta path, which is the same with a query', async () => {
      const { messages } = clientOf(KEYS.acme).beta;
      const message = await messages.create({
        model: 'sim/small',
        max_tokens: 5,
        messages: [{ role: 'user', content: 'Hello' }],
        betas: ['some-beta-2026-01-01'],
      });
      assert.equal(message.stop_reason, 'max_tokens');
    });

    test('leaves the provider within a second', async () => {
      const body = { model: 'sim/small', max_tokens: LEAVING_TOKENS, messages: user(LEAVING) };
      await installation.leaveStream(async () => {
        const stream = clientOf(KEYS.acme).messages.stream(body);
        let seen = 0;
        stream.on('text', () => {
          seen += 1;
          if (seen === 5) stream.abort();
        });
        assert.ok((await expectFailure(stream.done())) instanceof Client.APIUserAbortError);
        return seen;
      });
      assert.ok(
        (await installation.abortCall((signal) => clientOf(KEYS.acme).messages.create(body, { signal }))) instanceof
          Client.APIUserAbortError,
      );
    });

    test('counts tokens', async () => {
      const { messages } = clientOf(KEYS.acme);
      assert.ok((await messages.countTokens({ model: 'sim/small', messages: user('Hello there') })).input_tokens > 0);
      const unknown = await refusal(messages.countTokens({ model: 'sim/none', messages: user('Hello') }));
      assert.equal(unknown.type, 'not_found_error');
      // Nothing is charged for a count, so nothing has to be paid for.
      assert.ok(
        (await clientOf(KEYS.broke).messages.countTokens({ model: 'sim/small', messages: user('Hello') }))
          .input_tokens > 0,
      );
    });

    test('lists models', async () => {
      const page = await clientOf(KEYS.acme).models.list({ limit: 1000 });
      const ids = page.data.map(({ id }) => id);
      assert.deepEqual(ids.slice(0, LISTED_MODELS.length), LISTED_MODELS);
      assert.ok(!page.hasNextPage());
      const { type, display_name: displayName, created_at: createdAt } = page.data[0] ?? assert.fail();
      assert.deepEqual([type, displayName], ['model', 'Test sim/small']);
      assert.ok(!Number.isNaN(Date.parse(createdAt)));
      const all: string[] = [];
      for await (const { id } of clientOf(KEYS.acme).models.list({ limit: 1 })) all.push(id);
      assert.deepEqual(all, ids);
    });

    test('retrieves a model', async () => {
      const { models } = clientOf(KEYS.acme);
      const model = await models.retrieve('sim/small');
      assert.deepEqual([model.type, model.id, model.display_name], ['model', 'sim/small', 'Test sim/small']);
      assert.ok(!Number.isNaN(Date.parse(model.created_at)));
      assert.equal((await clientOf(KEYS.acme).beta.models.retrieve('sim/small')).id, 'sim/small');
      assert.equal((await refusal(models.retrieve('sim/none'))).status, 404);
    });

    test('waits out the pause that a provider asked for, and is served', async () => {
      const client = clientOf(KEYS.acme, { maxRetries: 1 });
      const message = await client.messages.create({
        model: installation.freshModel(),
        max_tokens: 50,
        messages: user('Busy. [[sim: status=429 retry_after=1 times=1]]'),
      });
      assert.equal(message.stop_reason, 'end_turn');
    });

    test('shows refusals', async () => {
      const wrongKey = await refusal(ask('tg-wrong', 'sim/small'));
      assert.ok(wrongKey instanceof Client.AuthenticationError);
      assert.match(wrongKey.message, /^401 \{"error":"unauthorized","request_id":"[\da-f-]{36}"\}$/);

      const credit = await refusal(ask(KEYS.broke, 'sim/small'));
      assert.equal(credit.status, 402);
      assert.match(
        credit.message,
        /^402 The balance does not cover what this request could cost: up to 0\.\d+ USD.* Add credit, or lower the output limit of the request\.$/,
      );

      const unknown = await refusal(ask(KEYS.acme, 'sim/none'));
      assert.ok(unknown instanceof Client.NotFoundError);
      assert.equal(unknown.type, 'not_found_error');
      assert.match(
        unknown.message,
        /The model \\"sim\/none\\" does not exist or is not available to you\. GET \/v1\/models lists/,
      );

      const unbounded = await refusal(ask(KEYS.acme, 'sim/uncapped', 'Hello', { max_tokens: undefined }));
      assert.ok(unbounded instanceof Client.UnprocessableEntityError);
      assert.match(
        unbounded.message,
        /^422 The cost of this request has no upper bound\. Set "max_tokens" to a whole number/,
      );

      const malformed = await refusal(ask(KEYS.acme, 'sim/small', 'Hello', { max_tokens: -1 }));
      assert.ok(malformed instanceof Client.BadRequestError);
      assert.equal(malformed.type, 'invalid_request_error');
      assert.match(malformed.message, /The field \\"max_tokens\\" is not valid/);
    });

    test("shows the provider's own refusals, and the pause after one", async () => {
      const missing = await refusal(ask(KEYS.acme, 'sim/small', 'Hello', { max_tokens: undefined }));
      assert.match(missing.message, /^400 .*max_tokens: Field required/);
      assert.match(missing.requestID ?? '', /^req_/);
      const model = installation.freshModel();
      const failed = await refusal(ask(KEYS.acme, model, 'Fail [[sim: status=500]]'));
      assert.ok(failed instanceof Client.InternalServerError);
      assert.equal(failed.type, 'api_error');
      const limited = await refusal(ask(KEYS.acme, model, 'Busy [[sim: status=429 retry_after=7]]'));
      assert.ok(limited instanceof Client.RateLimitError);
      assert.equal(limited.type, 'rate_limit_error');
      assert.equal(limited.headers?.get('retry-after'), '7');
      const paused = await refusal(ask(KEYS.acme, model));
      assert.ok(paused instanceof Client.RateLimitError);
      assert.match(paused.message, /^429 Every provider of this model has asked for a pause\./);
      assert.ok(Number(paused.headers?.get('retry-after')) >= 1);
    });

    test('is told by an error that a stream broke', async () => {
      for (const fault of ['cut_after=6', 'reset_after=6', 'cut_mid_event=6', 'error_after=6', 'end_after=6']) {
        const { messages } = clientOf(KEYS.acme);
        const error = await expectFailure(
          messages
            .stream({ model: 'sim/small', max_tokens: 50, messages: user(`Break [[sim: ${fault}]]`) })
            .finalMessage(),
        );
        assert.ok(error instanceof Client.AnthropicError, fault);
      }
    });

    test('is told which base URL to use', async () => {
      const client = clientOf(KEYS.acme, { baseURL: `${installation.url}/v1` });
      const twice = await refusal(
        client.messages.create({ model: 'sim/small', max_tokens: 5, messages: user('Hello') }),
      );
      assert.ok(twice instanceof Client.NotFoundError);
      assert.ok(
        twice.message.includes(
          `has \\"/v1\\" twice: set the base URL of your client to ${installation.url}/v1, ` +
            `or ${installation.url} if it adds`,
        ),
      );
      assert.match((await refusal(client.models.list())).message, /has \\"\/v1\\" twice/);
    });
  });
}

describe('refusals in the dialect', () => {
  let switched: ClientInstallation;

  before(async () => {
    switched = await startClientInstallation({ DIALECT_REFUSALS: 'messages' });
  });

  after(() => switched?.stop());

  for (const { name, Client } of MAJORS) {
    test(`are read by the anthropic client ${name}`, async () => {
      const ask = async (key: string, model: string, fields: object = {}): Promise<ErrorOfClient> => {
        const { messages } = new Client({ baseURL: switched.url, apiKey: key, maxRetries: 0 });
        const error = await expectFailure(
          messages.create({ model, max_tokens: 50, messages: user('Hello'), ...fields }),
        );
        assert.ok(error instanceof Client.APIError);
        return error;
      };
      const wrongKey = await ask('tg-wrong', 'sim/small');
      assert.deepEqual([wrongKey.status, wrongKey.type], [401, 'authentication_error']);
      assert.ok(wrongKey.message.includes(WRONG_KEY), wrongKey.message);
      const credit = await ask(KEYS.broke, 'sim/small');
      assert.deepEqual([credit.status, credit.type], [402, 'billing_error']);
      assert.match(
        credit.message,
        /"message":"The balance does not cover .* Add credit, or lower .*"code":"insufficient_credit"/,
      );
      const unbounded = await ask(KEYS.acme, 'sim/uncapped', { max_tokens: undefined });
      assert.deepEqual([unbounded.status, unbounded.type], [422, 'billing_error']);
      assert.match(unbounded.message, /Set \\"max_tokens\\" to a whole number/);
    });
  }
});
