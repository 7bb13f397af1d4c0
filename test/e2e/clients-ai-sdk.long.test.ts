// The AI SDK with its OpenAI provider (both APIs), its Anthropic provider and the one for compatible servers.
// It checks the form of errors, and of one that it does not know it shows the HTTP reason phrase: refusals are flat on
// responses, in the dialect elsewhere.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, type LanguageModel, stepCountIs, streamText, tool } from 'ai';
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

interface Settings {
  readonly baseURL: string;
  readonly apiKey: string;
}

interface ProviderRow {
  readonly name: string;
  readonly model: (settings: Settings, id: string) => LanguageModel;
  readonly path: string;
  readonly limitField: string;
  readonly wrongKey: string;
  /** How a lack of credit reads, and a cost without bound; null: the provider always sends a limit. */
  readonly credit: RegExp;
  readonly unbounded: RegExp | null;
  readonly paused: RegExp;
}

const IN_FULL = {
  wrongKey: WRONG_KEY,
  credit:
    /^The balance does not cover what this request could cost: up to 0\.\d+ USD.* Add credit, or lower the output limit of the request\.$/,
  unbounded: /^The cost of this request has no upper bound\. Set "max_tokens" to a whole number/,
  paused: /^Every provider of this model has asked for a pause\. Try again after/,
} as const;

const PROVIDERS: readonly ProviderRow[] = [
  {
    name: 'openai on responses',
    model: (settings, id) => createOpenAI(settings)(id),
    path: '/responses',
    limitField: 'max_output_tokens',
    wrongKey: 'Unauthorized',
    credit: /^Payment Required$/,
    unbounded: /^Unprocessable Entity$/,
    paused: /^Too Many Requests$/,
  },
  {
    name: 'openai on chat',
    model: (settings, id) => createOpenAI(settings).chat(id),
    path: '/chat/completions',
    limitField: 'max_tokens',
    ...IN_FULL,
  },
  {
    name: 'anthropic',
    model: (settings, id) => createAnthropic(settings)(id),
    path: '/messages',
    limitField: 'max_tokens',
    ...IN_FULL,
    unbounded: null,
  },
  {
    name: 'openai-compatible',
    model: (settings, id) => createOpenAICompatible({ ...settings, name: 'tollgate', includeUsage: true })(id),
    path: '/chat/completions',
    limitField: 'max_tokens',
    ...IN_FULL,
  },
];

let installation: ClientInstallation;

before(async () => {
  installation = await startClientInstallation({ DIALECT_REFUSALS: 'chat_completions,messages' });
});

after(() => installation?.stop());

for (const row of PROVIDERS) {
  describe(`the AI SDK, ${row.name}`, () => {
    const modelOf = (key: string, id: string, baseURL = `${installation.url}/v1`): LanguageModel =>
      row.model({ baseURL, apiKey: key }, id);
    const small = (): LanguageModel => modelOf(KEYS.acme, 'sim/small');
    const weather = (asked: string[]) => ({
      weather: tool({
        description: 'The weather',
        inputSchema: z.object({ city: z.string() }),
        execute: ({ city }) => {
          asked.push(city);
          return 'sunny';
        },
      }),
    });
    const TOOL_PROMPT = 'What now? [[sim: tool_call=weather tool_arguments=%7B%22city%22%3A%22Bonn%22%7D]]';

    test('generates text', async () => {
      const { text, finishReason, usage } = await generateText({
        model: small(),
        prompt: 'Hello [[sim: tokens=9]]',
        maxOutputTokens: 100,
      });
      assert.ok(text.length > 9);
      assert.equal(finishReason, 'stop');
      assert.equal(usage.outputTokens, 9);
    });

    test('streams text', async () => {
      const result = streamText({
        model: small(),
        prompt: 'Hello [[sim: tokens=11 split_utf8]]',
        maxOutputTokens: 100,
      });
      let text = '';
      for await (const delta of result.textStream) text += delta;
      assert.ok(text.length > 11 && !text.includes('\ufffd'));
      assert.equal(await result.finishReason, 'stop');
      assert.equal((await result.usage).outputTokens, 11);
    });

    test('runs tools to their end, whole and streamed', async () => {
      const asked: string[] = [];
      const question = {
        model: small(),
        prompt: TOOL_PROMPT,
        tools: weather(asked),
        stopWhen: stepCountIs(3),
        maxOutputTokens: 100,
      };
      const whole = await generateText(question);
      assert.equal(whole.steps.length, 2);
      assert.ok(whole.text.length > 0);
      const streamed = streamText(question);
      assert.ok((await streamed.text).length > 0);
      assert.equal((await streamed.steps).length, 2);
      assert.deepEqual(asked, ['Bonn', 'Bonn']);
    });

    test('leaves the provider within a second', async () => {
      await installation.leaveStream(async () => {
        const controller = new AbortController();
        const result = streamText({
          model: small(),
          prompt: LEAVING,
          maxOutputTokens: LEAVING_TOKENS,
          abortSignal: controller.signal,
        });
        let seen = 0;
        for await (const delta of result.textStream) {
          assert.ok(delta.length > 0);
          seen += 1;
          if (seen === 5) controller.abort();
        }
        return seen;
      });
      const question = { model: small(), prompt: LEAVING, maxOutputTokens: LEAVING_TOKENS };
      const error = await installation.abortCall((abortSignal) => generateText({ ...question, abortSignal }));
      assert.equal((error as Error).name, 'AbortError');
    });

    async function refusal(model: LanguageModel, prompt = 'Hello', maxOutputTokens?: number): Promise<APICallError> {
      const limit = maxOutputTokens === undefined ? {} : { maxOutputTokens };
      const error = await expectFailure(generateText({ model, prompt, maxRetries: 0, ...limit }));
      assert.ok(APICallError.isInstance(error), String(error));
      return error;
    }

    test('shows refusals', async () => {
      const wrongKey = await refusal(modelOf('tg-wrong', 'sim/small'));
      assert.deepEqual([wrongKey.statusCode, wrongKey.message, wrongKey.isRetryable], [401, row.wrongKey, false]);
      const credit = await refusal(modelOf(KEYS.broke, 'sim/small'));
      assert.deepEqual([credit.statusCode, credit.isRetryable], [402, false]);
      assert.match(credit.message, row.credit);
      const unknown = await refusal(modelOf(KEYS.acme, 'sim/none'));
      assert.deepEqual([unknown.statusCode, unknown.isRetryable], [404, false]);
      assert.equal(
        unknown.message,
        'The model "sim/none" does not exist or is not available to you. GET /v1/models lists the models you can use.',
      );
      const malformed = await refusal(small(), 'Hello', 1e30);
      assert.deepEqual([malformed.statusCode, malformed.isRetryable], [400, false]);
      assert.equal(
        malformed.message,
        `The field "${row.limitField}" is not valid: must be a whole number from 0 to 9007199254740991, in digits alone.`,
      );
      if (row.unbounded === null) return;
      const unbounded = await refusal(modelOf(KEYS.acme, 'sim/uncapped'));
      assert.deepEqual([unbounded.statusCode, unbounded.isRetryable], [422, false]);
      assert.match(unbounded.message, row.unbounded);
    });

    test("shows the provider's own refusals, and the pause after one", async () => {
      const model = modelOf(KEYS.acme, installation.freshModel());
      const failed = await refusal(model, 'Fail [[sim: status=500]]', 50);
      assert.deepEqual(
        [failed.statusCode, failed.message, failed.isRetryable],
        [500, 'The simulated provider was asked to answer 500.', true],
      );
      const limited = await refusal(model, 'Busy [[sim: status=429 retry_after=7]]', 50);
      assert.deepEqual(
        [limited.statusCode, limited.message, limited.isRetryable],
        [429, 'Rate limit reached for requests.', true],
      );
      assert.equal(limited.responseHeaders?.['retry-after'], '7');
      const paused = await refusal(model, 'Hello', 50);
      assert.deepEqual([paused.statusCode, paused.isRetryable], [429, true]);
      assert.match(paused.message, row.paused);
      assert.ok(Number(paused.responseHeaders?.['retry-after']) >= 1);
    });

    /** What consuming a stream throws, or is told by the way. */
    async function streamFailure(model: LanguageModel, prompt: string): Promise<unknown> {
      let failure: unknown;
      const told = ({ error }: { error: unknown }): void => {
        failure ??= error;
      };
      const result = streamText({ model, prompt, maxRetries: 0, maxOutputTokens: 50, onError: told });
      try {
        for await (const part of result.fullStream) if (part.type === 'error') told(part);
      } catch (error) {
        told({ error });
      }
      return failure;
    }

    test('shows refusals of a stream', async () => {
      const error = await streamFailure(modelOf(KEYS.acme, 'sim/none'), 'Hello');
      assert.ok(APICallError.isInstance(error));
      assert.match(error.message, /"sim\/none" does not exist/);
    });

    test('is told by an error that a stream broke', async () => {
      for (const fault of ['cut_after=6', 'reset_after=6', 'cut_mid_event=6', 'error_after=6']) {
        assert.ok((await streamFailure(small(), `Break [[sim: ${fault}]]`)) instanceof Error, fault);
      }
    });

    test('is told by an error that a stream ended too early', async () => {
      assert.ok((await streamFailure(small(), 'Break [[sim: end_after=6]]')) instanceof Error);
    });

    test('is told which base URL to use', async () => {
      const lacking = await refusal(modelOf(KEYS.acme, 'sim/small', installation.url), 'Hello', 50);
      assert.equal(lacking.statusCode, 404);
      assert.equal(
        lacking.message,
        `There is no endpoint at "${row.path}". The path lacks "/v1": set the base URL of your client ` +
          `to ${installation.url}/v1.`,
      );
      const twice = await refusal(modelOf(KEYS.acme, 'sim/small', `${installation.url}/v1/v1`), 'Hello', 50);
      assert.match(twice.message, /The path has "\/v1" twice: set the base URL of your client to http:/);
    });
  });
}

test('the AI SDK waits out the pause that a provider asked for, and is served', async () => {
  const model = createOpenAI({ baseURL: `${installation.url}/v1`, apiKey: KEYS.acme })(installation.freshModel());
  const { finishReason } = await generateText({
    model,
    prompt: 'Busy. [[sim: status=429 retry_after=1 times=1]]',
    maxRetries: 1,
  });
  assert.equal(finishReason, 'stop');
});
