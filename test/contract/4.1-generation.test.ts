// Spec 4.1 over HTTP: the three formats and count_tokens; each field of the tables with values of the right and of the
// wrong type; the headers; the provider's native body. What holds for every generation route (a model that is missing
// or unknown, media types, credentials) is in 7.8.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type FakeUpstream,
  type ReceivedRequest,
  type ScriptedReply,
  startFakeUpstream,
} from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { type ContractAnswer, callRoute } from '../support/generation-routes.ts';
import { providersConfiguration } from '../support/provider-configuration.ts';
import { refusalBody } from '../support/refusal-body.ts';

interface Format {
  readonly path: string;
  readonly envelope: 'openai' | 'messages';
  /** Of the body, beside the model; each value as JSON text. */
  readonly input: Readonly<Record<string, string>>;
  /** What the provider answers, in its own spelling. */
  readonly reply: string;
  /** null: the format has no stream. */
  readonly stream: string | null;
}

const MESSAGES = '[ {"role": "user", "content": "hi \\u2603 ☃"} ]';
const CHAT_CHUNK =
  'data: {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n';

const FORMATS: readonly Format[] = [
  {
    path: '/v1/chat/completions',
    envelope: 'openai',
    input: { messages: MESSAGES },
    reply:
      '{ "id": "chatcmpl-1",\n  "choices": [ {"index": 0, "message": {"role": "assistant", "content": "Hi ' +
      '\\u2603"}} ], "usage": {"prompt_tokens": 3, "completion_tokens": 2} }\n',
    stream: `: provider comment\n\n${CHAT_CHUNK}data: [DONE]\n\n`,
  },
  {
    path: '/v1/responses',
    envelope: 'openai',
    input: { input: '"hi"' },
    reply:
      '{"id":"resp_1", "object":"response", "output":[ ' +
      '{"type":"message","content":[{"type":"output_text","text":"Hi"}]} ], ' +
      '"usage":{"input_tokens":3,"output_tokens":2}}',
    stream:
      'event: response.completed\ndata: {"type":"response.completed", ' +
      '"response":{"id":"resp_1","usage":{"input_tokens":3,"output_tokens":2}}}\n\n',
  },
  {
    path: '/v1/messages',
    envelope: 'messages',
    input: { messages: MESSAGES, max_tokens: '50' },
    reply:
      '{"type":"message", "content":[ {"type":"text","text":"Hi"} ], "usage":{"input_tokens":3,"output_tokens":2}}',
    stream:
      'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":3,' +
      '"output_tokens":1}}}\n\n' +
      'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":2}}\n\nevent: ' +
      'message_stop\ndata: {"type": "message_stop"}\n\n',
  },
  {
    path: '/v1/messages/count_tokens',
    envelope: 'messages',
    input: { messages: MESSAGES },
    reply: '{ "input_tokens" : 3 }',
    stream: null,
  },
];

interface FieldRow {
  readonly path: string;
  readonly field: string;
  /** JSON texts that reach the provider as they are written. */
  readonly passes: readonly string[];
  /** JSON texts that are 400 and name the field. A field without any is the provider's alone to judge. */
  readonly refused: readonly string[];
}

const COUNT = {
  passes: ['1', '4096', 'null'],
  refused: ['"5"', '1.5', '-1', '1e3', 'true', '[5]', '{}', '99999999999999999999'],
};
const FLAG = { passes: ['true', 'false', 'null'], refused: ['"true"', '1', '0', '[]', '{}'] };

const FIELDS: readonly FieldRow[] = [
  { path: '/v1/chat/completions', field: 'messages', passes: ['[]', MESSAGES, '"hi"', 'null'], refused: [] },
  { path: '/v1/chat/completions', field: 'max_tokens', ...COUNT },
  { path: '/v1/chat/completions', field: 'max_completion_tokens', ...COUNT },
  { path: '/v1/chat/completions', field: 'stream', ...FLAG },
  // A limit of another format is no limit here.
  { path: '/v1/chat/completions', field: 'max_output_tokens', passes: ['5', '"many"'], refused: [] },
  { path: '/v1/responses', field: 'input', passes: ['"hi"', '[{"role":"user","content":"hi"}]', '5'], refused: [] },
  { path: '/v1/responses', field: 'max_output_tokens', ...COUNT },
  { path: '/v1/responses', field: 'previous_response_id', passes: ['null', '7'], refused: [] },
  { path: '/v1/responses', field: 'stream', ...FLAG },
  { path: '/v1/messages', field: 'max_tokens', ...COUNT },
  { path: '/v1/messages', field: 'messages', passes: ['[]', MESSAGES, '"hi"'], refused: [] },
  {
    path: '/v1/messages',
    field: 'system',
    passes: ['"Be brief."', '[{"type":"text","text":"Be brief."}]', '5'],
    refused: [],
  },
  { path: '/v1/messages', field: 'stream', ...FLAG },
  { path: '/v1/messages/count_tokens', field: 'messages', passes: ['[]', MESSAGES], refused: [] },
  { path: '/v1/messages/count_tokens', field: 'system', passes: ['"Be brief."'], refused: [] },
  // Nothing is generated, so there is nothing to limit or to stream.
  { path: '/v1/messages/count_tokens', field: 'max_tokens', passes: ['5', '"many"'], refused: [] },
  { path: '/v1/messages/count_tokens', field: 'stream', passes: ['false', '"yes"'], refused: [] },
];

const PROVIDER_ERROR = '{"error": {"message": "The provider\'s own words.", "extra": [1, 2]}}\n';
const EXECUTION_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function formatOf(path: string): Format {
  return FORMATS.find((format) => format.path === path) ?? assert.fail(path);
}

/** The body as JSON text, so that the test decides each byte. */
function write(format: Format, model: string, fields: Readonly<Record<string, string>>): string {
  const members = Object.entries({ ...format.input, ...fields }).map(([name, value]) => `"${name}" : ${value}`);
  return `{ "model" : "${model}", ${members.join(',\n')} }`;
}

function answerNatively({ path, body }: ReceivedRequest): ScriptedReply {
  const format = formatOf(path);
  const text = body.toString('utf8');
  if (text.includes('FAIL')) return { status: 422, body: PROVIDER_ERROR };
  if (!text.includes('"stream" : true') || format.stream === null) return { body: format.reply };
  return { body: format.stream, framing: 'chunked', headers: [['content-type', 'text/event-stream; charset=utf-8']] };
}

describe('generation formats', () => {
  let first: FakeUpstream;
  let second: FakeUpstream;
  let tollgate: Front;
  /** While true, the first provider cannot serve. */
  let isFirstBroken = false;

  before(async () => {
    first = await startFakeUpstream((request) =>
      isFirstBroken ? { status: 500, body: '{}' } : answerNatively(request),
    );
    second = await startFakeUpstream(() => ({
      body: formatOf('/v1/responses')
        .reply.replace('resp_1', 'resp_of_the_second')
        .replace('{"type":"message"', '{"id":"msg_of_the_second","type":"message"'),
    }));
    const providers = [
      { id: 'first', url: first.url },
      { id: 'second', url: second.url },
    ];
    const models = [
      { id: 'public/one', deployments: [{ provider: 'first', model: 'one-2026' }] },
      {
        id: 'public/two',
        deployments: [
          { provider: 'first', model: 'two-first' },
          { provider: 'second', model: 'two-second' },
        ],
      },
    ];
    tollgate = await startFront({
      configurationYaml: providersConfiguration(providers, models),
    });
  });

  after(async () => {
    await tollgate?.stop();
    await Promise.all([first?.close(), second?.close()]);
  });

  const send = (path: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<ContractAnswer> =>
    callRoute(tollgate.url + path, { body, headers });

  function assertNative(answer: ContractAnswer, status: number, body: string): void {
    assert.deepEqual([answer.status, answer.body], [status, body]);
    assert.match(String(answer.headers['x-service-execution-id']), EXECUTION_ID);
  }

  for (const format of FORMATS) {
    const { path } = format;

    describe(`POST ${path}`, () => {
      test('reaches the provider with its own path and model, and answers with its body as it is', async () => {
        const answer = await send(path, write(format, 'public/one', {}));
        assertNative(answer, 200, format.reply);
        assert.equal(answer.headers['content-type'], 'application/json');
        const request = first.requests.at(-1);
        assert.deepEqual([request?.method, request?.path], ['POST', path]);
        assert.equal(request?.header('content-type'), 'application/json');
        assert.equal(request?.header('authorization'), 'Bearer sk-first-0123456789');
        assert.equal(request?.body.toString('utf8'), write(format, 'one-2026', {}));
      });

      test('fields that nobody here knows pass', async () => {
        const fields = { temperature: '0.30000000000000004', future_field: '{"a": [1e400, "\\ud83d\\ude00"]}' };
        assertNative(await send(path, write(format, 'public/one', fields)), 200, format.reply);
        assert.equal(first.requests.at(-1)?.body.toString('utf8'), write(format, 'one-2026', fields));
      });

      test("relays the provider's own error as it is", async () => {
        const answer = await send(path, write(format, 'public/one', { metadata: '"FAIL"' }));
        assertNative(answer, 422, PROVIDER_ERROR);
      });

      test('gives every execution an id of its own', async () => {
        const answers = await Promise.all([1, 2, 3].map(() => send(path, write(format, 'public/one', {}))));
        assert.equal(new Set(answers.map(({ headers }) => headers['x-service-execution-id'])).size, 3);
      });

      const { stream } = format;
      if (stream !== null) {
        test('streams the events of the provider as they are', async () => {
          const answer = await send(path, write(format, 'public/one', { stream: 'true' }));
          assertNative(answer, 200, stream);
          assert.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8');
        });
      }

      for (const version of ['2023-06-01', '2026-10-21', '2099-12-31', null]) {
        test(`the version header ${version ?? 'that is not there'} is passed on`, async () => {
          const answer = await send(
            path,
            write(format, 'public/one', {}),
            version === null ? {} : { 'anthropic-version': version },
          );
          assert.equal(answer.status, 200, answer.body);
          assert.equal(first.requests.at(-1)?.header('anthropic-version'), version);
        });
      }
    });
  }

  for (const { path, field, passes, refused } of FIELDS) {
    const format = formatOf(path);
    describe(`${path}, ${field}`, () => {
      for (const value of passes) {
        test(`${value} passes as it is`, async () => {
          const answer = await send(path, write(format, 'public/one', { [field]: value }));
          assert.equal(answer.status, 200, answer.body);
          assert.equal(first.requests.at(-1)?.body.toString('utf8'), write(format, 'one-2026', { [field]: value }));
        });
      }
      for (const value of refused) {
        test(`${value}: 400`, async () => {
          const callsBefore = first.requests.length;
          const answer = await send(path, write(format, 'public/one', { [field]: value }));
          assert.equal(answer.status, 400, answer.body);
          assertNamesField(format, field, answer);
          assert.equal(first.requests.length, callsBefore, 'nothing reached the provider');
        });
      }
    });
  }

  function assertNamesField({ envelope }: Format, field: string, answer: ContractAnswer): void {
    const body = refusalBody(answer.body, String(answer.headers['x-service-execution-id']));
    const { message } = (body as { error: { message: string } }).error;
    assert.ok(message.startsWith(`The field "${field}" is not valid: must be `), message);
    if (envelope === 'messages')
      assert.deepEqual(body, { type: 'error', error: { type: 'invalid_request_error', message } });
    else
      assert.deepEqual(body, {
        error: { message, type: 'invalid_request_error', code: 'invalid_field', param: field },
      });
  }

  test('a continuation stays where the response that it continues was made', async () => {
    const format = formatOf('/v1/responses');
    isFirstBroken = true;
    assert.equal((await send(format.path, write(format, 'public/two', {}))).status, 200);
    isFirstBroken = false;
    const callsBefore = first.requests.length;
    const fresh = await send(format.path, write(format, 'public/two', { previous_response_id: '"resp_unknown"' }));
    assert.equal(fresh.status, 404, 'one that nobody here made is not there');
    const fields = { previous_response_id: '"resp_of_the_second"' };
    assert.equal((await send(format.path, write(format, 'public/two', fields))).status, 200);
    assert.equal(second.requests.at(-1)?.body.toString('utf8'), write(format, 'two-second', fields));
    assert.equal(first.requests.length, callsBefore);
  });

  test('a response or an item is never asked for at a provider that does not keep it', async () => {
    const format = formatOf('/v1/responses');
    isFirstBroken = true;
    assert.equal((await send(format.path, write(format, 'public/two', {}))).status, 200);
    isFirstBroken = false;
    const calls = (): number => first.requests.length + second.requests.length;
    const callsBefore = calls();
    const response = '"previous_response_id":"resp_of_the_second"';
    const items = '"input":[{"type":"item_reference","id":"msg_of_the_second"},{"role":"user","content":"on"}]';
    const ask = (members: string) => send(format.path, `{"model":"public/one","max_output_tokens":5,${members}}`);
    for (const [members, status, code, param] of [
      [`"input":"on",${response}`, 404, 'response_not_found', null],
      [items, 400, 'invalid_field', 'input'],
      [`${items},${response}`, 400, 'invalid_field', 'input'],
    ] as const) {
      const answer = await ask(members);
      const { error } = JSON.parse(answer.body) as { error?: { code: string; param: string | null } };
      assert.deepEqual([answer.status, error?.code, error?.param], [status, code, param], answer.body);
    }
    assert.equal(calls(), callsBefore);
    // Where its provider is a candidate, too, it alone is asked.
    assert.equal((await send(format.path, `{"model":"public/two","max_output_tokens":5,${items}}`)).status, 200);
    assert.equal(second.requests.at(-1)?.body.includes('msg_of_the_second'), true);
    assert.equal(calls(), callsBefore + 1);
  });
});
