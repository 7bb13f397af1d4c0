// Bad input: each its status and envelope from the spec (7.3, 7.4, 7.6, 7.8); nothing crashes, nothing reaches a
// provider, nothing is charged.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { RawClient } from '../support/raw-client.ts';
import { finalStatuses } from '../support/raw-connection.ts';
import { KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';

const BODY_LIMIT_BYTES = 65_536;
const GOOD = '{"model":"sim/small","messages":[{"role":"user","content":"hi"}],"max_tokens":5}';

type Envelope = 'openai' | 'gateway' | 'platform' | 'admission';

interface Case {
  readonly name: string;
  readonly body?: string | Buffer;
  readonly key?: string | null;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly status: number;
  readonly envelope: Envelope;
  readonly code?: string;
}

const CASES: readonly Case[] = [
  { name: 'an empty body', body: '', status: 400, envelope: 'openai' },
  { name: 'a body that is not JSON', body: 'hello', status: 400, envelope: 'openai', code: 'invalid_json' },
  { name: 'a body cut short', body: GOOD.slice(0, -1), status: 400, envelope: 'openai', code: 'invalid_json' },
  { name: 'a body and more', body: `${GOOD}{}`, status: 400, envelope: 'openai', code: 'invalid_json' },
  { name: 'a byte order mark', body: `\ufeff${GOOD}`, status: 400, envelope: 'openai' },
  { name: 'an array', body: '[]', status: 400, envelope: 'openai' },
  { name: 'a string', body: '"model"', status: 400, envelope: 'openai' },
  { name: 'null', body: 'null', status: 400, envelope: 'openai' },
  {
    name: 'form data',
    body: 'model=sim%2Fsmall',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    status: 415,
    envelope: 'openai',
  },
  { name: 'a compressed body', body: GOOD, headers: { 'content-encoding': 'gzip' }, status: 415, envelope: 'openai' },
  {
    name: 'a compressed body, as the second of two lines says',
    body: GOOD,
    headers: { 'content-encoding': ['identity', 'gzip'] },
    status: 415,
    envelope: 'openai',
  },
  { name: 'no model', body: '{"messages":[]}', status: 400, envelope: 'openai', code: 'missing_model' },
  {
    name: 'a model that is a number',
    body: '{"model":5,"messages":[]}',
    status: 400,
    envelope: 'openai',
    code: 'model_not_a_string',
  },
  { name: 'a model that is null', body: '{"model":null,"messages":[]}', status: 400, envelope: 'openai' },
  {
    name: 'a model that is an object',
    body: '{"model":{"id":"sim/small"},"messages":[]}',
    status: 400,
    envelope: 'openai',
  },
  {
    name: 'an empty model',
    body: '{"model":"","messages":[]}',
    status: 400,
    envelope: 'openai',
    code: 'missing_model',
  },
  {
    name: 'an unknown model',
    body: '{"model":"sim/none","messages":[]}',
    status: 404,
    envelope: 'openai',
    code: 'model_not_found',
  },
  {
    name: 'a hostile model name',
    body: '{"model":"__proto__","messages":[]}',
    status: 404,
    envelope: 'openai',
    code: 'model_not_found',
  },
  {
    name: 'a model name with line ends',
    body: '{"model":"a\\r\\nX-Evil: 1","messages":[]}',
    status: 404,
    envelope: 'openai',
    code: 'model_not_found',
  },
  {
    name: 'auto routing that is not enabled',
    body: '{"model":"service/auto","messages":[]}',
    status: 404,
    envelope: 'openai',
    code: 'model_not_found',
  },
  {
    name: 'stream that is a string',
    body: '{"model":"sim/small","stream":"yes","messages":[]}',
    status: 400,
    envelope: 'openai',
  },
  {
    name: 'max_tokens that is a string',
    body: '{"model":"sim/small","max_tokens":"5","messages":[]}',
    status: 400,
    envelope: 'openai',
  },
  {
    name: 'max_tokens below zero',
    body: '{"model":"sim/small","max_tokens":-1,"messages":[]}',
    status: 400,
    envelope: 'openai',
  },
  {
    name: 'max_tokens that is not whole',
    body: '{"model":"sim/small","max_tokens":1.5,"messages":[]}',
    status: 400,
    envelope: 'openai',
  },
  {
    name: 'no limit where none is known',
    body: '{"model":"sim/uncapped","messages":[]}',
    status: 422,
    envelope: 'admission',
    code: 'not_safely_billable',
  },
  {
    name: 'an empty wallet',
    body: GOOD,
    key: KEYS.poor,
    status: 402,
    envelope: 'admission',
    code: 'insufficient_credit',
  },
  { name: 'no key', body: GOOD, key: null, status: 401, envelope: 'gateway', code: 'authentication required' },
  { name: 'a wrong key', body: GOOD, key: 'tg-nobody', status: 401, envelope: 'gateway', code: 'unauthorized' },
  {
    name: 'a prefix of a key',
    body: GOOD,
    key: KEYS.acme.slice(0, -1),
    status: 401,
    envelope: 'gateway',
    code: 'unauthorized',
  },
  { name: 'a key and more', body: GOOD, key: `${KEYS.acme}x`, status: 401, envelope: 'gateway', code: 'unauthorized' },
  {
    name: 'a key in capitals',
    body: GOOD,
    key: KEYS.acme.toUpperCase(),
    status: 401,
    envelope: 'gateway',
    code: 'unauthorized',
  },
  {
    name: 'another scheme',
    body: GOOD,
    key: null,
    headers: { authorization: `Basic ${KEYS.acme}` },
    status: 401,
    envelope: 'gateway',
  },
  { name: 'SQL for a key', body: GOOD, key: "' OR 1=1 --", status: 401, envelope: 'gateway', code: 'unauthorized' },
  {
    name: 'no key on a lookup',
    method: 'GET',
    path: '/v1/models',
    key: null,
    status: 401,
    envelope: 'gateway',
    code: 'authentication required',
  },
  { name: 'GET on the endpoint', method: 'GET', status: 405, envelope: 'openai' },
  { name: 'an unknown path', method: 'GET', path: '/v1/nothing', status: 404, envelope: 'platform' },
  {
    name: 'a doubled version',
    body: GOOD,
    path: '/v1/v1/chat/completions',
    status: 404,
    envelope: 'openai',
    code: 'unknown_path',
  },
  { name: 'a lookup without an id', method: 'GET', path: '/v1/generation', status: 400, envelope: 'platform' },
  {
    name: 'a lookup of what is no id',
    method: 'GET',
    path: '/v1/generation?id=%27%3B--',
    status: 404,
    envelope: 'platform',
  },
  { name: 'a label lookup without a label', method: 'GET', path: '/v1/generations', status: 400, envelope: 'platform' },
];

describe('bad input', () => {
  let upstream: FakeUpstream;
  let tollgate: Tollgate;
  let ledger: LedgerView;
  let port: number;

  before(async () => {
    upstream = await startFakeUpstream(() => ({
      body: '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}',
    }));
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      env: { BODY_LIMIT_BYTES: String(BODY_LIMIT_BYTES) },
    });
    ledger = openLedgerView(tollgate.postgresUrl);
    port = Number(new URL(tollgate.url).port);
  });

  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await upstream?.close();
  });

  for (const item of CASES) {
    test(`${item.name}: ${item.status}`, async () => {
      const key = item.key === undefined ? KEYS.acme : item.key;
      const headers = {
        'content-type': 'application/json',
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...item.headers,
      };
      const answer = await httpCall(`${tollgate.url}${item.path ?? '/v1/chat/completions'}`, {
        headers,
        ...(item.method === undefined ? {} : { method: item.method }),
        ...(item.body === undefined ? {} : { body: item.body }),
      });
      const text = answer.body.toString('utf8');
      assert.equal(answer.status, item.status, text);
      assert.match(String(answer.headers['content-type']), /^application\/json/);
      assertEnvelope(item, JSON.parse(text) as Record<string, unknown>);
      assert.ok(!text.includes(KEYS.acme), 'no credential is shown back');
    });
  }

  test('a body over the limit: 413, before it was sent', async () => {
    const head = headOf(BODY_LIMIT_BYTES + 1);
    const client = await RawClient.open(port);
    await client.write(head);
    await client.untilAnswered();
    // The rest is read, so that a client which sends first comes to read the answer; what follows it is no request.
    await client.write(Buffer.alloc(BODY_LIMIT_BYTES + 1, 'x'));
    await client.write(head);
    const { received } = await client.untilClosed();
    assert.deepEqual(finalStatuses(received), [413]);
    const body = JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4)) as Record<string, unknown>;
    assertEnvelope({ name: '413', status: 413, envelope: 'openai' }, body);
  });

  test('a body of exactly the limit is served', async () => {
    const body = GOOD.replace('}', `}${' '.repeat(BODY_LIMIT_BYTES - GOOD.length)}`);
    assert.equal(body.length, BODY_LIMIT_BYTES);
    const headers = { authorization: `Bearer ${KEYS.free}` };
    assert.equal((await httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body })).status, 200);
    upstreamCallsAllowed += 1;
  });
  let upstreamCallsAllowed = 0;

  test('a body that stops coming ends with 408 or a closed connection', async () => {
    const socket = connect({ port, host: '127.0.0.1' });
    let received = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      received += chunk;
    });
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => undefined);
    socket.write(headOf(GOOD.length) + GOOD.slice(0, 20));
    await closed;
    const statuses = finalStatuses(received);
    assert.ok(statuses.length === 0 || statuses[0] === 408, received);
  });

  test('a client that leaves in mid-body is no event', async () => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    socket.write(headOf(GOOD.length) + GOOD.slice(0, 20), () => socket.resetAndDestroy());
    await new Promise((resolve) => socket.once('close', resolve));
  });

  test('nothing of it reached a provider, nothing was charged, nothing crashed', async () => {
    assert.equal(upstream.requests.length, upstreamCallsAllowed);
    assert.equal((await ledger.wallet('acme')).balance, OPENING_CREDIT_PICO);
    assert.equal((await ledger.wallet('poor')).balance, 1_000_000n);
    assert.equal(tollgate.gatewayPids().length, 1);
    const answer = await httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${KEYS.acme}` },
      body: GOOD,
    });
    assert.equal(answer.status, 200);
    assert.doesNotMatch(tollgate.output(), /internal_error|uncaught|unhandled/i);
  });
});

function headOf(length: number): string {
  const lines = [
    'POST /v1/chat/completions HTTP/1.1',
    'Host: gateway',
    `Authorization: Bearer ${KEYS.acme}`,
    'Content-Type: application/json',
  ];
  return `${[...lines, `Content-Length: ${length}`].join('\r\n')}\r\n\r\n`;
}

function assertEnvelope(item: Case, body: Record<string, unknown>): void {
  const shown = JSON.stringify(body);
  switch (item.envelope) {
    case 'openai': {
      const error = body.error as Record<string, unknown>;
      assert.equal(typeof error.message, 'string', shown);
      assert.equal(error.type, 'invalid_request_error', shown);
      assert.ok('param' in error && 'code' in error, shown);
      if (item.code !== undefined) assert.equal(error.code, item.code, shown);
      return;
    }
    case 'gateway':
      assert.deepEqual(Object.keys(body), ['error', 'request_id'], shown);
      assert.equal(typeof body.error, 'string', shown);
      if (item.code !== undefined) assert.equal(body.error, item.code, shown);
      return;
    case 'platform':
      assert.equal(typeof body.error, 'string', shown);
      assert.equal(typeof body.code, 'string', shown);
      return;
    case 'admission': {
      assert.equal(body.error, item.code, shown);
      assert.equal(typeof body.message, 'string', shown);
      const billing = body.billing as Record<string, unknown>;
      assert.equal(billing.code, item.code, shown);
      assert.equal(billing.retryable, false, shown);
      return;
    }
  }
}
