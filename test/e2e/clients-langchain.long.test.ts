// LangChain's OpenAI model, on chat completions and on responses: it wraps the openai client, and adds to what its
// errors say. Refusals are in the dialect on chat completions, and flat, as by default, on responses.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ChatOpenAI, type ChatOpenAIFields } from '@langchain/openai';
import OpenAI from 'openai';
import { z } from 'zod';
import {
  type ClientInstallation,
  expectFailure,
  LEAVING,
  LEAVING_TOKENS,
  startClientInstallation,
  WRONG_KEY,
} from '../support/client-installation.ts';
import { KEYS } from '../support/test-configuration.ts';

/** As LangChain writes it; its own type is of a package that is not ours to name. */
interface UsageMetadata {
  readonly output_tokens: number;
  readonly input_token_details?: { readonly cache_read?: number };
}

const WEATHER = { name: 'weather', description: 'The weather', schema: z.object({ city: z.string() }) };

const APIS = [
  {
    name: 'chat completions',
    useResponsesApi: false,
    limitField: 'max_tokens',
    path: '/chat/completions',
    wrongKey: WRONG_KEY,
    credit:
      /^402 The balance does not cover what this request could cost: up to 0\.\d+ USD.* Add credit, or lower the output limit of the request\./,
    unbounded: /^422 The cost of this request has no upper bound\. Set "max_tokens" to a whole number/,
    paused: /^429 Every provider of this model has asked for a pause\./,
  },
  {
    name: 'responses',
    useResponsesApi: true,
    limitField: 'max_output_tokens',
    path: '/responses',
    wrongKey: '"unauthorized"',
    credit: /^402 "insufficient_credit"/,
    unbounded: /^422 "not_safely_billable"/,
    paused: /^429 "upstream_cooldown"/,
  },
] as const;

let installation: ClientInstallation;

before(async () => {
  installation = await startClientInstallation({ DIALECT_REFUSALS: 'chat_completions' });
});

after(() => installation?.stop());

for (const api of APIS) {
  describe(`the langchain openai model on ${api.name}`, () => {
    const modelOf = (key: string, model: string, fields: ChatOpenAIFields = {}): ChatOpenAI =>
      new ChatOpenAI({
        model,
        apiKey: key,
        configuration: { baseURL: `${installation.url}/v1` },
        useResponsesApi: api.useResponsesApi,
        maxRetries: 0,
        ...fields,
      });
    const small = (fields?: ChatOpenAIFields): ChatOpenAI => modelOf(KEYS.acme, 'sim/small', fields);

    test('invokes', async () => {
      const message = await small().invoke('Hello [[sim: tokens=7 cached=2]]');
      assert.ok(message.text.length > 7);
      const usage = message.usage_metadata as UsageMetadata | undefined;
      assert.equal(usage?.output_tokens, 7);
      assert.equal(usage.input_token_details?.cache_read, 2);
    });

    test('streams', async () => {
      let text = '';
      let outputTokens = 0;
      for await (const chunk of await small({ streamUsage: true }).stream('Hello [[sim: tokens=12]]')) {
        text += chunk.text;
        outputTokens += (chunk.usage_metadata as UsageMetadata | undefined)?.output_tokens ?? 0;
      }
      assert.ok(text.length > 12);
      assert.equal(outputTokens, 12);
    });

    test('calls tools, and takes their results', async () => {
      const model = small().bindTools([WEATHER]);
      const question = { type: 'human', content: 'What now? [[sim: tool_call=weather]]' } as const;
      const asked = await model.invoke([question]);
      const [call] = asked.tool_calls ?? [];
      assert.equal(call?.name, 'weather');
      assert.equal(typeof call.args['city'], 'string');
      const result = { type: 'tool', content: 'sunny', tool_call_id: call.id ?? '' } as const;
      const answered = await model.invoke([question, asked, result]);
      assert.ok(answered.text.length > 0);
    });

    test('leaves the provider within a second', async () => {
      await installation.leaveStream(async () => {
        let seen = 0;
        for await (const chunk of await small({ maxTokens: LEAVING_TOKENS }).stream(LEAVING)) {
          if (chunk.text !== '') seen += 1;
          if (seen === 5) break;
        }
        return seen;
      });
      const error = await installation.abortCall((signal) =>
        small({ maxTokens: LEAVING_TOKENS }).invoke(LEAVING, { signal }),
      );
      assert.ok(error instanceof Error);
    });

    async function refusal(model: ChatOpenAI, text = 'Hello'): Promise<InstanceType<typeof OpenAI.APIError>> {
      const error = await expectFailure(model.invoke(text));
      assert.ok(error instanceof OpenAI.APIError, String(error));
      return error;
    }

    test('shows refusals', async () => {
      const wrongKey = await refusal(modelOf('tg-wrong', 'sim/small'));
      assert.ok(wrongKey instanceof OpenAI.AuthenticationError);
      assert.ok(wrongKey.message.startsWith(`401 ${api.wrongKey}`), wrongKey.message);
      const credit = await refusal(modelOf(KEYS.broke, 'sim/small'));
      assert.equal(credit.status, 402);
      assert.match(credit.message, api.credit);
      const unknown = await refusal(modelOf(KEYS.acme, 'sim/none'));
      assert.ok(unknown instanceof OpenAI.NotFoundError);
      assert.match(
        unknown.message,
        /^404 The model "sim\/none" does not exist or is not available to you\. GET \/v1\/models lists the models you can use\./,
      );
      const unbounded = await refusal(modelOf(KEYS.acme, 'sim/uncapped'));
      assert.ok(unbounded instanceof OpenAI.UnprocessableEntityError);
      assert.match(unbounded.message, api.unbounded);
      const malformed = await refusal(small({ maxTokens: 1.5 }));
      assert.ok(malformed instanceof OpenAI.BadRequestError);
      assert.ok(malformed.message.startsWith(`400 The field "${api.limitField}" is not valid`), malformed.message);
    });

    test("shows the provider's own refusals, and the pause after one", async () => {
      const model = modelOf(KEYS.acme, installation.freshModel());
      const failed = await refusal(model, 'Fail [[sim: status=500]]');
      assert.ok(failed instanceof OpenAI.InternalServerError);
      assert.match(failed.message, /^500 The simulated provider was asked to answer 500\./);
      const limited = await refusal(model, 'Busy [[sim: status=429 retry_after=7]]');
      assert.ok(limited instanceof OpenAI.RateLimitError);
      assert.match(limited.message, /^429 Rate limit reached for requests\./);
      assert.equal(limited.headers?.get('retry-after'), '7');
      const paused = await refusal(model);
      assert.ok(paused instanceof OpenAI.RateLimitError);
      assert.match(paused.message, api.paused);
    });

    test('is told by an error that a stream broke', async () => {
      for (const fault of ['cut_after=6', 'reset_after=6', 'error_after=6']) {
        const consume = async (): Promise<string> => {
          let text = '';
          for await (const chunk of await small().stream(`Break [[sim: ${fault}]]`)) text += chunk.text;
          return text;
        };
        assert.ok((await expectFailure(consume())) instanceof Error, fault);
      }
    });

    test('is told which base URL to use', async () => {
      const lacking = await refusal(small({ configuration: { baseURL: installation.url } }));
      const hint =
        `404 There is no endpoint at "${api.path}". The path lacks "/v1": set the base URL of your ` +
        `client ` +
        `to ${installation.url}/v1.`;
      assert.ok(lacking.message.startsWith(hint), lacking.message);
    });
  });
}
