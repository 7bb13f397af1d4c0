// The two clients that ask typed questions: TypeSafe's own, and OpenRouter's.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { OpenRouterError } from '@openrouter/sdk/models/errors/openroutererror.js';
import * as typesafe from '@typesafe-ai/sdk';
import {
  type ClientInstallation,
  expectFailure,
  LISTED_MODELS,
  startClientInstallation,
} from '../support/client-installation.ts';
import { KEYS } from '../support/test-configuration.ts';

const JUDGE = 'sim/judge-latest';
const SLOWLY = 'Slowly [[sim: delay_ms=10000]]';

let installation: ClientInstallation;

before(async () => {
  installation = await startClientInstallation();
});

after(() => installation?.stop());

describe('the typesafe client', () => {
  const { TypeSafeClient, choice, noul, score } = typesafe;
  const clientOf = (apiKey: string, baseURL = installation.url): typesafe.TypeSafeClient =>
    new TypeSafeClient({ apiKey, baseURL, logLevel: 'off', retry: { maxRetries: 0 } });
  const ask = (
    key: string,
    model: string,
    state: typesafe.EntryType = 'Hello',
    questions: typesafe.Questions = { urgent: noul('Is it urgent?') },
  ) => clientOf(key).systemOne({ model, state, questions });

  async function refusal(call: PromiseLike<unknown>): Promise<typesafe.APIError> {
    const error = await expectFailure(call);
    assert.ok(error instanceof typesafe.APIError, String(error));
    return error;
  }

  test('gets answers of every type, under both forms of the name', async () => {
    for (const model of [JUDGE, 'judge-latest']) {
      const { data, response } = await clientOf(KEYS.acme)
        .systemOne({
          model,
          state: { message: 'My integration fails. [[sim: department=technical:0.8]]', history: ['Hello.'] },
          questions: {
            department: choice('Which team?', { billing: 'Payments', technical: 'Bugs', sales: null }),
            frustration: score(null, ['calm', 'angry', 'furious']),
            urgent: noul('Is it urgent?'),
          },
        })
        .withResponse();
      assert.equal(data.answers.department.choice, 'technical');
      assert.deepEqual(data.answers.frustration.legend, { 0: 'calm', 1: 'angry', 2: 'furious' });
      assert.ok(data.answers.urgent.noul >= 0 && data.answers.urgent.noul <= 1);
      assert.match(data.model, /^judge-\d/);
      assert.ok(data.usage.input_tokens > 0);
      assert.match(response.headers.get('x-service-execution-id') ?? '', /^[0-9a-f-]{36}$/);
    }
  });

  test('leaves the provider', async () => {
    const question = { model: JUDGE, state: SLOWLY, questions: { urgent: noul('Is it?') } };
    const error = await installation.abortCall((signal) => clientOf(KEYS.acme).systemOne(question, { signal }));
    assert.ok(error instanceof typesafe.APIUserAbortError);
  });

  test('lists models', async () => {
    const models = await clientOf(KEYS.acme).models.list();
    assert.deepEqual(
      models.slice(0, LISTED_MODELS.length).map(({ name }) => name),
      LISTED_MODELS,
    );
    for (const { description, release_date: date } of models) {
      assert.ok(description.length > 0);
      assert.match(date, /^\d{4}-\d{2}-\d{2}$/);
    }
    assert.equal((await refusal(clientOf('tg-wrong').models.list())).message, '401 unauthorized');
  });

  test('shows refusals', async () => {
    const wrongKey = await refusal(ask('tg-wrong', JUDGE));
    assert.ok(wrongKey instanceof typesafe.AuthenticationError);
    assert.equal(wrongKey.message, '401 unauthorized');
    const credit = await refusal(ask(KEYS.broke, JUDGE));
    assert.deepEqual([credit.status, credit.message], [402, '402 insufficient_credit']);
    assert.match((credit.body as { message: string }).message, /Add credit/);
    const unknown = await refusal(ask(KEYS.acme, 'none-latest'));
    assert.ok(unknown instanceof typesafe.NotFoundError);
    assert.equal(
      unknown.message,
      '404 The model "none-latest" does not exist or is not available to you. GET /v1/models lists the ' +
        'models you can use.',
    );
    const text = await refusal(ask(KEYS.acme, 'sim/small'));
    assert.ok(text instanceof typesafe.BadRequestError);
    assert.match(text.message, /^400 The model "sim\/small" is not served on this endpoint/);
    const strange = { kind: { type: 'maybe' } } as unknown as typesafe.Questions;
    assert.equal(
      (await refusal(ask(KEYS.acme, JUDGE, 'Hello', strange))).message,
      '400 The field "questions.kind.type" is not valid: must be "noul", "choice" or "score".',
    );
    const levels = { level: score('How?', ['0', '1', ...Array.from({ length: 9 }, String)]) };
    assert.match(
      (await refusal(ask(KEYS.acme, JUDGE, 'Hello', levels))).message,
      /^400 The field "questions\.level\.criteria" is not valid: must have 2 to 10 levels/,
    );
  });

  test("shows the provider's own refusals", async () => {
    const failed = await refusal(ask(KEYS.acme, JUDGE, 'Fail [[sim: status=500]]'));
    assert.ok(failed instanceof typesafe.InternalServerError);
    assert.equal(failed.message, '500 The simulated provider was asked to answer 500.');
    for (const form of ['array', 'string']) {
      const invalid = await refusal(ask(KEYS.acme, JUDGE, `Invalid [[sim: status=422 detail=${form}]]`));
      assert.ok(invalid instanceof typesafe.UnprocessableEntityError);
      assert.equal(invalid.message, '422 The simulated provider was asked to answer 422.');
    }
  });

  test('shows a pause that the provider asked for, and waits it out when it may', async () => {
    const limited = await refusal(ask(KEYS.acme, JUDGE, 'Busy [[sim: status=429 retry_after=1]]'));
    assert.ok(limited instanceof typesafe.RateLimitError);
    assert.equal(limited.message, '429 Rate limit reached for requests.');
    assert.equal(limited.headers.get('retry-after'), '1');
    const paused = await refusal(ask(KEYS.acme, JUDGE));
    assert.ok(paused instanceof typesafe.RateLimitError);
    assert.equal(paused.message, '429 upstream_cooldown');
    assert.equal(paused.headers.get('x-should-retry'), 'true');
    const patient = new TypeSafeClient({
      apiKey: KEYS.acme,
      baseURL: installation.url,
      logLevel: 'off',
      retry: { maxRetries: 1 },
    });
    const answer = await patient.systemOne({ model: JUDGE, state: 'Hello', questions: { urgent: noul('Is it?') } });
    assert.ok(answer.answers.urgent.noul >= 0);
  });

  test('is told which base URL to use', async () => {
    const client = clientOf(KEYS.acme, `${installation.url}/v1`);
    const twice = await refusal(
      client.systemOne({ model: JUDGE, state: 'Hello', questions: { urgent: noul('Is it?') } }),
    );
    assert.ok(twice instanceof typesafe.NotFoundError);
    const hint =
      `The path has "/v1" twice: set the base URL of your client to ${installation.url}/v1, ` +
      `or ${installation.url} if it adds "/v1" by itself`;
    assert.ok(twice.message.startsWith(`404 There is no endpoint at "/v1/v1/systemone". ${hint}`), twice.message);
    assert.ok((await refusal(client.models.list())).message.includes(hint));
  });
});

describe('the openrouter client', () => {
  const URGENT = { urgent: { type: 'noul' as const, instructions: 'Is it urgent?' } };
  const clientOf = (apiKey: string, serverURL = `${installation.url}/v1`): OpenRouter =>
    new OpenRouter({ apiKey, serverURL, retryConfig: { strategy: 'none' } });
  const ask = (key: string, model: string, state = 'Hello') =>
    clientOf(key).systemOne.create({ decisionsRequest: { model, state, questions: URGENT } });

  /** It knows its own service's errors only: of others it keeps the status and the body, which says it all. */
  async function refusal(call: PromiseLike<unknown>): Promise<OpenRouterError> {
    const error = await expectFailure(call);
    assert.ok(error instanceof OpenRouterError, String(error));
    return error;
  }

  test('gets answers of every type', async () => {
    const { answers, model, usage } = await clientOf(KEYS.acme).systemOne.create({
      decisionsRequest: {
        model: JUDGE,
        state: 'My integration fails. [[sim: team=technical:0.8]]',
        questions: {
          ...URGENT,
          team: { type: 'choice', instructions: 'Which?', criteria: { billing: 'Payments', technical: 'Bugs' } },
          level: { type: 'score', instructions: 'How?', criteria: ['calm', 'angry'] },
        },
      },
    });
    assert.deepEqual(Object.keys(answers).sort(), ['level', 'team', 'urgent']);
    const { team } = answers;
    assert.ok(team !== undefined && team.type === 'choice' && 'choice' in team);
    assert.equal(team.choice, 'technical');
    assert.match(model, /^judge-\d/);
    assert.ok(usage.inputTokens > 0);
  });

  test('leaves the provider', async () => {
    const request = { decisionsRequest: { model: JUDGE, state: SLOWLY, questions: URGENT } };
    const error = await installation.abortCall((signal) =>
      clientOf(KEYS.acme).systemOne.create(request, { fetchOptions: { signal } }),
    );
    assert.ok(error instanceof Error);
  });

  test('keeps what refusals say', async () => {
    const rows: readonly (readonly [key: string, model: string, state: string, status: number, said: RegExp])[] = [
      ['tg-wrong', JUDGE, 'Hello', 401, /"unauthorized"/],
      [KEYS.broke, JUDGE, 'Hello', 402, /"insufficient_credit".*Add credit/],
      [KEYS.acme, 'none-latest', 'Hello', 404, /\\"none-latest\\" does not exist/],
      [KEYS.acme, 'sim/small', 'Hello', 400, /\\"sim\/small\\" is not served on this endpoint/],
      [KEYS.acme, JUDGE, 'Fail [[sim: status=500]]', 500, /was asked to answer 500/],
    ];
    for (const [key, model, state, status, said] of rows) {
      const error = await refusal(ask(key, model, state));
      assert.equal(error.statusCode, status);
      assert.match(error.body, said);
    }
    const lacking = clientOf(KEYS.acme, installation.url).systemOne.create({
      decisionsRequest: { model: JUDGE, state: 'Hello', questions: URGENT },
    });
    assert.ok((await refusal(lacking)).body.includes(`set the base URL of your client to ${installation.url}/v1.`));
  });

  test('keeps the pause that the provider asked for', async () => {
    const limited = await refusal(ask(KEYS.acme, JUDGE, 'Busy [[sim: status=429 retry_after=1]]'));
    assert.equal(limited.statusCode, 429);
    assert.equal(limited.headers.get('retry-after'), '1');
  });
});
