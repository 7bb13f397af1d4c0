// Guardrails on the path of a request, over real sockets: what the provider sees, what the client gets, what is
// recorded and charged, and that no value that was found is anywhere afterwards.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, type Script, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { GENERATION_ROUTES, MODELS_OF_KINDS } from '../support/generation-routes.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { RawClient } from '../support/raw-client.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

const MAIL = 'planted.person@planted-domain.example';
const SECRET = 'plantedsesame';
const GUARDRAILS = `guardrails:
  - name: main
    rules:
      - { id: people, detect: [email], stage: input, action: cloak }
      - { id: doors, words: [${SECRET}], stage: both, action: block }
      - { id: internal, words: [plantedfalcon], stage: both, action: mask, label: "[internal]" }
`;
const CHAT_USAGE = { prompt_tokens: 40, completion_tokens: 3, total_tokens: 43 };
const json = (body: Json): ScriptedReply => ({
  headers: [['content-type', 'application/json']],
  body: JSON.stringify(body),
});
const stream = (...events: readonly string[]): ScriptedReply => ({
  headers: [['content-type', 'text/event-stream']],
  body: events.join(''),
  framing: 'chunked',
});
const chunk = (delta: Json): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;
const messagesEvent = (data: Json): string => `event: ${String(data['type'])}\ndata: ${JSON.stringify(data)}\n\n`;

let upstream: FakeUpstream;
let tollgate: Tollgate;
let ledger: LedgerView;
/** What the provider answers, given the body that it got. */
let answer: (body: string) => Script = () => json({ choices: [] });

before(async () => {
  upstream = await startFakeUpstream(({ body }) => answer(body.toString()));
  const yaml = testConfiguration({ upstreamUrl: upstream.url, models: MODELS_OF_KINDS });
  tollgate = await startTollgate({
    clickhouse: 'away',
    configurationYaml: `${GUARDRAILS}${yaml.replace('  - slug: acme\n', '  - slug: acme\n    guardrails: { policy: main }\n')}`,
  });
  ledger = openLedgerView(tollgate.postgresUrl);
});
after(async () => {
  await ledger?.close();
  await tollgate?.stop();
  await upstream?.close();
});

let labels = 0;
async function ask(path: string, body: Json, key: string = KEYS.acme): Promise<HttpAnswer & { label: string }> {
  labels += 1;
  const label = `screened-${labels}`;
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'x-client-request-id': label,
    'anthropic-version': '2023-06-01',
  };
  const answered = await httpCall(`${tollgate.url}${path}`, { headers, body: JSON.stringify(body), isOffFormat: true });
  return { ...answered, label };
}

const chat = (content: string, more: Json = {}): Json => ({
  model: 'sim/small',
  messages: [{ role: 'user', content }],
  max_tokens: 50,
  ...more,
});

const headersOf = ({ headers }: HttpAnswer): readonly unknown[] => [
  headers['x-service-guardrail'],
  headers['x-service-guardrail-count'],
];

async function recordOf(label: string): Promise<Json> {
  const [row] = await waitFor(
    `${label} to be posted`,
    () =>
      ledger.query(
        `SELECT id::text, outcome, status, error_code, billing_status, usage_source, charge::text, guardrail, screening
           FROM generations WHERE client_request_id = $1 AND outcome IS NOT NULL`,
        [label],
      ),
    (rows) => rows.length === 1,
  );
  return row as unknown as Json;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

describe('a request that is blocked', () => {
  for (const { path, envelope, model, saying } of GENERATION_ROUTES) {
    test(`${path}: 400 in its own envelope, not sent, free, recorded`, async () => {
      const before = upstream.requests.length;
      const blocked = await ask(path, {
        model,
        ...saying(`say ${SECRET}`),
        user: `the ${SECRET}`,
        ...(path === '/v1/messages' ? { max_tokens: 5 } : {}),
      });
      assert.equal(blocked.status, 400, blocked.body.toString());
      const body = JSON.parse(blocked.body.toString()) as Json;
      assert.deepEqual(body['guardrail'], { policy: 'main', rule: 'doors', entity: 'words', stage: 'input' });
      const error = (envelope === 'systemone' ? body['detail'] : body['error']) as Json;
      assert.equal(error['code'], 'guardrail_blocked');
      assert.equal(error[envelope === 'systemone' ? 'error_type' : 'type'], 'invalid_request_error');
      assert.equal(headersOf(blocked)[0], 'blocked');
      assert.equal(upstream.requests.length, before);
      assert.ok(!blocked.body.includes(SECRET));
      const record = await recordOf(blocked.label);
      assert.equal(record['outcome'], 'refused');
      assert.equal(record['guardrail'], 'doors');
      assert.equal(record['charge'], null);
      assert.equal((record['screening'] as { input: { action: string } }).input.action, 'blocked');
    });
  }

  test('a form is one too', async () => {
    const boundary = 'b0undary';
    const part = (name: string, value: string): string =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const image = `--${boundary}\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\n\r\nPNG\r\n`;
    const formOf = (...parts: readonly string[]): string =>
      `${part('model', 'sim/image')}${parts.join('')}${image}--${boundary}--\r\n`;
    const form = (prompt: string): string => formOf(part('prompt', prompt));
    const headers = {
      authorization: `Bearer ${KEYS.acme}`,
      'content-type': `multipart/form-data; boundary=${boundary}`,
    };
    const call = (prompt: string): Promise<HttpAnswer> =>
      httpCall(`${tollgate.url}/v1/images/edits`, { headers, body: form(prompt), isOffFormat: true });
    assert.equal((await call(`a ${SECRET}`)).status, 400);
    answer = () => json({ data: [{ b64_json: 'aGk=' }] });
    assert.equal((await call('a plantedfalcon in the sun')).status, 200);
    assert.ok(upstream.requests.at(-1)?.body.toString().includes('a [internal] in the sun'));
    // As a file, in another field, encoded so that nobody can read it, and in chunks that come one after another.
    const odd = (more: string, value: string): string =>
      `--${boundary}\r\ncontent-disposition: form-data; name="prompt"${more}\r\n\r\n${value}\r\n`;
    const send = async (body: string): Promise<number> =>
      (await httpCall(`${tollgate.url}/v1/images/edits`, { headers, body, isOffFormat: true })).status;
    assert.equal(await send(formOf(odd('; filename="a.txt"', `a ${SECRET}`))), 400);
    assert.equal(await send(formOf(part('prompt', 'a cat'), part('style', SECRET))), 400);
    assert.equal(await send(formOf(part('prompt', 'a cat'), part('prompt', `a ${SECRET}`))), 400);
    const encoded = Buffer.from(SECRET).toString('base64');
    assert.equal(await send(formOf(odd('\r\ncontent-transfer-encoding: base64', encoded))), 503);
    assert.equal(await send(formOf(odd('\r\ncontent-type: text/plain; charset=utf-16', 'x'))), 503);
    assert.equal(await send(formOf(odd('\r\ncontent-type: text/plain; charset=ISO-8859-1', 'a cat'))), 200);
    const whole = form(`a ${SECRET}`);
    const cutAt = whole.indexOf(SECRET) + 5;
    const client = await RawClient.open(Number(new URL(tollgate.url).port));
    const head = Object.entries({ ...headers, host: 'a', 'content-length': whole.length });
    const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    await client.write(`POST /v1/images/edits HTTP/1.1\r\n${lines}\r\n${whole.slice(0, cutAt)}`);
    await client.write(whole.slice(cutAt));
    assert.match((await client.untilAnswered()).received, /^HTTP\/1.1 400 [^]*guardrail_blocked/);
    client.leave();
  });
});

describe('what is found and not blocked', () => {
  test('nothing: the bytes of both sides are as they came', async () => {
    const body = `{"model" : "sim/small", "messages":[{"role":"user","content":"h\\u0069"}],"max_tokens":5}`;
    answer = () => ({ ...json({}), body: '{ "choices":[], "x":"\\u0041" }' });
    const headers = { authorization: `Bearer ${KEYS.acme}` };
    const got = await httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body, isOffFormat: true });
    assert.equal(got.body.toString(), '{ "choices":[], "x":"\\u0041" }');
    assert.equal(upstream.requests.at(-1)?.body.toString(), body.replace('sim/small', 'small'));
    assert.deepEqual(headersOf(got), ['none', '0']);
  });

  test('a mask: only those bytes; with its count', async () => {
    answer = () =>
      json({ choices: [{ index: 0, message: { content: 'the plantedfalcon flies' } }], usage: CHAT_USAGE });
    const got = await ask('/v1/chat/completions', chat('about plantedfalcon\n and \u0070lantedfalcon'));
    assert.deepEqual(headersOf(got), ['masked', '3']);
    assert.ok(upstream.requests.at(-1)?.body.toString().includes('"about [internal]\\n and [internal]"'));
    assert.ok(got.body.toString().includes('the [internal] flies'));
    const { screening } = await recordOf(got.label);
    assert.deepEqual(screening, {
      input: {
        action: 'masked',
        findings: [{ policy: 'main', version: 1, rule: 'internal', entity: 'words', action: 'mask', count: 2 }],
      },
      output: {
        action: 'masked',
        findings: [{ policy: 'main', version: 1, rule: 'internal', entity: 'words', action: 'mask', count: 1 }],
      },
    });
  });

  test('a request in another organization is not screened', async () => {
    answer = () => json({ choices: [], usage: CHAT_USAGE });
    const got = await ask('/v1/chat/completions', chat(`the ${SECRET}`), KEYS.other);
    assert.equal(got.status, 200);
    assert.deepEqual(headersOf(got), [undefined, undefined]);
  });
});

describe('cloaking', () => {
  const PLACEHOLDER = /TGE\d{12}/;

  test('the provider sees a placeholder, the same in each turn; the client gets its value back', async () => {
    const seen: string[] = [];
    answer = (body) => {
      const placeholder = PLACEHOLDER.exec(body)?.[0] ?? 'none';
      seen.push(placeholder);
      assert.ok(!body.includes(MAIL));
      return json({
        choices: [
          {
            index: 0,
            message: {
              content: `Written to ${placeholder}.`,
              tool_calls: [
                {
                  id: 'c',
                  type: 'function',
                  function: { name: 'send', arguments: JSON.stringify({ to: placeholder }) },
                },
              ],
            },
          },
        ],
        usage: CHAT_USAGE,
      });
    };
    for (let turn = 0; turn < 2; turn++) {
      const got = await ask('/v1/chat/completions', chat(`Write to ${MAIL}, turn ${turn}`));
      const { message } = (JSON.parse(got.body.toString()) as { choices: { message: Json }[] }).choices[0] ?? {
        message: {},
      };
      assert.equal(message['content'], `Written to ${MAIL}.`);
      const [call] = message['tool_calls'] as { function: { arguments: string } }[];
      assert.deepEqual(JSON.parse(call?.function.arguments ?? ''), { to: MAIL });
      assert.deepEqual(headersOf(got), ['cloaked', '1']);
    }
    assert.match(seen[0] ?? '', PLACEHOLDER);
    assert.equal(seen[0], seen[1]);
  });

  test('in streamed text and arguments, whatever the pieces', async () => {
    answer = (body) => {
      const placeholder = PLACEHOLDER.exec(body)?.[0] ?? 'none';
      const args = JSON.stringify({ to: placeholder });
      return stream(
        ...Array.from(`To ${placeholder}!`, (content) => chunk({ content })),
        ...Array.from(args, (piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
        'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n',
        `data: ${JSON.stringify({ choices: [], usage: CHAT_USAGE })}\n\n`,
        'data: [DONE]\n\n',
      );
    };
    const got = await ask(
      '/v1/chat/completions',
      chat(`Write to ${MAIL}`, { stream: true, stream_options: { include_usage: true } }),
    );
    let [content, args] = ['', ''];
    for (const line of got.body.toString().split('\n')) {
      if (!line.startsWith('data: {')) continue;
      const { choices } = JSON.parse(line.slice(6)) as {
        choices: { delta: { content?: string; tool_calls?: { function: { arguments: string } }[] } }[];
      };
      content += choices[0]?.delta.content ?? '';
      args += choices[0]?.delta.tool_calls?.[0]?.function.arguments ?? '';
    }
    assert.equal(content, `To ${MAIL}!`);
    assert.deepEqual(JSON.parse(args), { to: MAIL });
    assert.ok(got.body.toString().endsWith('data: [DONE]\n\n'));
    assert.equal((await recordOf(got.label))['outcome'], 'completed');
  });
});

describe('what is too big for the event loop', () => {
  test('is screened by a worker, on both sides', async () => {
    const filler = 'lorem ipsum "dolor" \n'.repeat(8_000);
    answer = (body) =>
      json({ choices: [{ index: 0, message: { content: `${filler}${/TGE\d{12}/.exec(body)?.[0] ?? ''}` } }] });
    const got = await ask('/v1/chat/completions', chat(`${filler}plantedfalcon ${MAIL}`));
    assert.deepEqual(headersOf(got), ['masked', '2']);
    const { choices } = JSON.parse(got.body.toString()) as { choices: { message: { content: string } }[] };
    assert.ok(choices[0]?.message.content === `${filler}${MAIL}`);
    const sent = JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '') as { messages: { content: string }[] };
    assert.match(sent.messages[0]?.content.slice(filler.length) ?? '', /^\[internal\] TGE\d{12}$/);
  });
});

describe('a reply that is blocked', () => {
  test('whole: the client gets 400, and the reply is charged', async () => {
    answer = () => json({ choices: [{ index: 0, message: { content: `It is ${SECRET}` } }], usage: CHAT_USAGE });
    const got = await ask('/v1/chat/completions', chat('tell'));
    assert.equal(got.status, 400);
    assert.deepEqual((JSON.parse(got.body.toString()) as Json)['guardrail'], {
      policy: 'main',
      rule: 'doors',
      entity: 'words',
      stage: 'output',
    });
    assert.deepEqual(headersOf(got), ['blocked', '1']);
    const record = await recordOf(got.label);
    assert.deepEqual(
      [record['outcome'], record['billing_status'], record['usage_source'], record['status'], record['error_code']],
      ['output_blocked', 'final', 'reported', 400, 'guardrail_blocked'],
    );
    assert.ok(BigInt(textOf(record['charge'])) > 0n);
  });

  const cut = (...events: readonly string[]): Script => {
    const reply = stream(...events);
    return { ...reply, fault: { kind: 'stall', afterBytes: Buffer.byteLength(reply.body) } };
  };
  const half = [SECRET.slice(0, 6), SECRET.slice(6)] as const;
  for (const [name, body] of [
    ['an error of the provider', JSON.stringify({ error: { message: `no room at ${SECRET}` } })],
    ['a page of a proxy', `<html>${SECRET}</html>`],
    ['nothing at all', ''],
  ] as const)
    test(`${name} in a 200 costs nothing, though it is blocked or cannot be read`, async () => {
      answer = () => ({ headers: [['content-type', 'application/json']], body });
      const got = await ask('/v1/chat/completions', chat('tell'));
      const record = await recordOf(got.label);
      assert.deepEqual([record['outcome'], record['billing_status']], ['provider_failed', 'not_billed']);
    });

  const STREAMS = [
    {
      path: '/v1/chat/completions',
      body: chat('tell', { stream: true }),
      reply: cut(chunk({ content: 'It is ' }), chunk({ content: half[0] }), chunk({ content: `${half[1]} now` })),
      ending:
        /data: \{"error":\{"message":"[^\n]+","type":"invalid_request_error","code":"guardrail_blocked"[^\n]+\n\n$/,
    },
    {
      path: '/v1/messages',
      body: chat('tell', { stream: true }),
      reply: cut(
        messagesEvent({
          type: 'message_start',
          message: { id: 'm', content: [], usage: { input_tokens: 5, output_tokens: 1 } },
        }),
        messagesEvent({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
        messagesEvent({
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'text_delta', text: `It is ${half[0]}` },
        }),
        messagesEvent({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `${half[1]} now` } }),
      ),
      ending: /event: error\ndata: \{"type":"error","error":\{"type":"invalid_request_error"[^\n]+\n\n$/,
    },
    {
      path: '/v1/responses',
      body: { model: 'sim/small', input: 'tell', max_output_tokens: 50, stream: true },
      reply: cut(
        messagesEvent({ type: 'response.created', response: { id: 'resp_1', instructions: null } }),
        messagesEvent({
          type: 'response.output_text.delta',
          output_index: 0,
          content_index: 0,
          delta: `It is ${half[0]}`,
        }),
        messagesEvent({
          type: 'response.output_text.delta',
          output_index: 0,
          content_index: 0,
          delta: `${half[1]} now`,
        }),
      ),
      ending: /event: response.failed\ndata: \{"type":"response.failed"[^\n]+"code":"invalid_prompt"[^\n]+\n\n$/,
    },
  ] as const;
  for (const { path, body, reply, ending } of STREAMS) {
    test(`${path}: the stream ends with the dialect’s own error, and what was produced is charged`, async () => {
      answer = () => reply;
      const got = await ask(path, body);
      const text = got.body.toString();
      assert.equal(got.status, 200);
      assert.ok(got.complete);
      assert.match(text, ending);
      assert.ok(!text.includes('[DONE]') && !text.includes(half[0]) && !text.includes(half[1]), text);
      const record = await recordOf(got.label);
      assert.deepEqual(
        [record['outcome'], record['billing_status'], record['usage_source'], record['error_code']],
        ['output_blocked', 'final', 'counted', 'guardrail_blocked'],
      );
      assert.ok(BigInt(textOf(record['charge'])) > 0n);
    });
  }
});

describe('a reply that names an encoding which is none', () => {
  for (const encoding of ['identity', ' Identity ', ''])
    test(`"${encoding}": it is screened, whole and as a stream`, async () => {
      const says = 'by plantedfalcon';
      const named = (reply: ScriptedReply): ScriptedReply => ({
        ...reply,
        headers: [...(reply.headers ?? []), ['content-encoding', encoding]],
      });
      answer = () => named(json({ choices: [{ index: 0, message: { content: says } }], usage: CHAT_USAGE }));
      const whole = await ask('/v1/chat/completions', chat('tell'));
      assert.deepEqual([whole.status, whole.body.includes('by [internal]')], [200, true], whole.body.toString());
      answer = () => named(stream(chunk({ content: says }), 'data: [DONE]\n\n'));
      const streamed = await ask('/v1/chat/completions', chat('tell', { stream: true }));
      assert.deepEqual([streamed.status, streamed.body.includes('plantedfalcon')], [200, false]);
      assert.equal(((await recordOf(streamed.label))['screening'] as { output: Json }).output['action'], 'masked');
    });

  test('a compressed one is refused, since it cannot be read', async () => {
    const body = JSON.stringify({ choices: [{ index: 0, message: { content: 'by plantedfalcon' } }] });
    answer = () => ({
      headers: [
        ['content-type', 'application/json'],
        ['content-encoding', 'gzip'],
      ],
      body,
    });
    const got = await ask('/v1/chat/completions', chat('tell'));
    assert.equal(got.status, 503, got.body.toString());
  });
});

describe('an error of the provider', () => {
  const refused = (message: string): ScriptedReply => ({ ...json({ error: { message } }), status: 400 });

  test('is screened as other replies, and what was cloaked is put back', async () => {
    answer = (body) => refused(`bad value ${/TGE\d{12}/.exec(body)?.[0] ?? ''} by plantedfalcon`);
    const got = await ask('/v1/chat/completions', chat(MAIL));
    assert.equal(got.status, 400);
    assert.deepEqual(JSON.parse(got.body.toString()), { error: { message: `bad value ${MAIL} by [internal]` } });
    assert.deepEqual(headersOf(got), ['masked', '2']);
    const { outcome, screening } = await recordOf(got.label);
    assert.equal(outcome, 'provider_refused');
    assert.equal((screening as { output: Json }).output['action'], 'masked');
  });

  test('is screened for an API whose replies have no texts, too', async () => {
    answer = (body) => refused(`cannot embed ${/TGE\d{12}/.exec(body)?.[0] ?? ''} by plantedfalcon`);
    const got = await ask('/v1/embeddings', { model: 'sim/embedding', input: `write to ${MAIL}` });
    assert.equal(got.status, 400, got.body.toString());
    assert.deepEqual(JSON.parse(got.body.toString()), { error: { message: `cannot embed ${MAIL} by [internal]` } });
  });

  test('with a status alone it is passed with that, and with its own bytes', async () => {
    answer = () => ({ status: 404, body: '' });
    const got = await ask('/v1/chat/completions', chat('tell'));
    assert.deepEqual([got.status, got.body.length], [404, 0]);
    assert.deepEqual((await recordOf(got.label))['screening'], {
      input: { action: 'none' },
      output: { action: 'none' },
    });
  });

  for (const type of ['text/html', 'text/event-stream'])
    test(`${type}: it is a text as any other`, async () => {
      answer = () => ({ status: 404, headers: [['content-type', type]], body: '<p>no plantedfalcon here</p>' });
      const got = await ask('/v1/chat/completions', chat('tell', { stream: true }));
      assert.deepEqual([got.status, got.body.toString()], [404, '<p>no [internal] here</p>']);
      assert.deepEqual(headersOf(got), ['masked', '1']);
    });

  for (const type of ['application/json', 'text/event-stream'])
    test(`${type}: one that is blocked is free, as any error of the provider`, async () => {
      answer = () => ({ ...refused(`no ${SECRET} here`), status: 422, headers: [['content-type', type]] });
      const got = await ask('/v1/chat/completions', chat('tell', { stream: true }));
      assert.equal(got.status, 400);
      assert.ok(!got.body.includes(SECRET));
      const record = await recordOf(got.label);
      assert.deepEqual(
        [record['outcome'], record['billing_status'], record['charge'], record['error_code'], record['status']],
        ['provider_refused', 'not_billed', null, 'guardrail_blocked', 400],
      );
    });

  test('of images has none', async () => {
    answer = () => refused('no such size');
    const got = await ask('/v1/images/generations', { model: 'sim/image', prompt: 'a cat' });
    assert.deepEqual((await recordOf(got.label))['screening'], {
      input: { action: 'none' },
      output: { action: 'none' },
    });
  });
});

describe('events of a stream that are too big for the event loop', () => {
  const filler = 'a word, '.repeat(12_000);
  const textIn = ({ body }: HttpAnswer): string =>
    [...body.toString().matchAll(/^data: (\{.*\})$/gm)]
      .map(
        ([, data = '']) =>
          (JSON.parse(data) as { choices: { delta: { content: string } }[] }).choices[0]?.delta.content,
      )
      .join('');

  test('what they say is replaced, in their place among the others', async () => {
    const done = 'data: [DONE]\n\n';
    answer = () =>
      stream(
        chunk({ content: 'It is planted' }),
        chunk({ content: `falcon. ${filler}plantedfalcon; ${filler}planted` }),
        chunk({ content: 'falcon, and ' }),
        chunk({ content: `${filler}"plantedfalcon"` }),
        chunk({ content: ' end' }),
        done,
      );
    const got = await ask('/v1/chat/completions', chat('tell', { stream: true }));
    const one = '[internal]';
    assert.ok(got.complete);
    assert.equal(textIn(got), `It is ${one}. ${filler}${one}; ${filler}${one}, and ${filler}"${one}" end`);
    assert.ok(got.body.toString().endsWith(done));
    const record = await recordOf(got.label);
    const { output } = record['screening'] as { output: { action: string; findings: { count: number }[] } };
    assert.deepEqual([output.action, output.findings.map(({ count }) => count)], ['masked', [4]]);
  });

  test('one behind a burst, and last: its record says what was found in it', async () => {
    const small = Array.from({ length: 60 }, (_, index) => chunk({ content: `word ${index} ` }));
    const events = [...small, chunk({ content: `${filler}plantedfalcon.` }), 'data: [DONE]\n\n'];
    for (let round = 0; round < 5; round++) {
      answer = () => ({ ...stream(...events), split: { kind: 'random', seed: round, bytesMax: 40_000 } });
      const got = await ask('/v1/chat/completions', chat('tell', { stream: true }));
      assert.ok(got.complete && textIn(got).endsWith('[internal].'));
      const { screening } = (await recordOf(got.label)) as { screening: { output?: { action: string } } };
      assert.equal(screening.output?.action, 'masked');
    }
  });

  test('a block in one ends the stream, and nothing of it goes out', async () => {
    answer = () =>
      stream(chunk({ content: 'It is ' }), chunk({ content: `${filler}${SECRET} and` }), chunk({ content: '!' }));
    const got = await ask('/v1/chat/completions', chat('tell', { stream: true }));
    const text = got.body.toString();
    assert.ok(got.complete);
    assert.match(text, /"code":"guardrail_blocked"/);
    assert.ok(!text.includes(SECRET) && !text.includes('a word'), text.slice(0, 500));
    assert.equal((await recordOf(got.label))['outcome'], 'output_blocked');
  });

  test('the last one may lack its blank line', async () => {
    const output = [{ type: 'message', content: [{ type: 'output_text', text: `${filler}plantedfalcon` }] }];
    const response = { id: 'resp_1', status: 'completed', output, usage: { input_tokens: 5, output_tokens: 1 } };
    answer = () => stream(messagesEvent({ type: 'response.completed', response }).trimEnd());
    const body = { model: 'sim/small', input: 'tell', max_output_tokens: 50, stream: true };
    const got = await ask('/v1/responses', body);
    assert.ok(got.body.includes(`${filler}[internal]"`), got.body.toString().slice(-300));
  });
});

describe('afterwards', () => {
  test('GET /v1/generation says what each stage did', async () => {
    const got = await ask('/v1/chat/completions', chat(`the ${SECRET}`));
    const { id } = await recordOf(got.label);
    const shown = await httpCall(`${tollgate.url}/v1/generation?id=${String(id)}`, {
      headers: { authorization: `Bearer ${KEYS.acme}` },
    });
    const { data } = JSON.parse(shown.body.toString()) as { data: { guardrail: { input: Json } } };
    assert.equal(data.guardrail.input['action'], 'blocked');
  });

  test('a value that was found is in no log, spool, table or metric', async () => {
    const planted = [MAIL, SECRET, 'planted.person', 'plantedfalcon'];
    const isRule = (text: string): boolean => text.includes('doors');
    const texts: [string, string][] = [['output', tollgate.output()]];
    texts.push(['metrics', (await httpCall(`${tollgate.adminUrl}/metrics`)).body.toString()]);
    for (const file of filesIn(tollgate.dataDir)) texts.push([file, readFileSync(file, 'latin1')]);
    const tables = await ledger.query(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`,
      [],
    );
    for (const { name } of tables) {
      const rows = await ledger.query(`SELECT t::text AS row FROM "${String(name)}" t`, []);
      // The policy itself has its words.
      texts.push([
        String(name),
        rows
          .map(({ row }) => String(row))
          .filter((row) => !isRule(row) || !row.includes('words'))
          .join('\n'),
      ]);
    }
    for (const [where, text] of texts)
      for (const value of planted) assert.ok(!text.includes(value), `${value} is in ${where}`);
  });
});

function filesIn(directory: string): string[] {
  return readdirSync(directory).flatMap((name) => {
    const path = join(directory, name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    return found.isDirectory() ? filesIn(path) : found.isFile() ? [path] : [];
  });
}
