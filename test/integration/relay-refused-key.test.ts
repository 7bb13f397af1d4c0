// A provider that does not accept the service's own key: the next one serves, else 502 without a word of the
// provider's; the operator is told. Any other refusal is relayed as it came. And headers that are no ASCII.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { HTTP_FRONT } from '../support/http-front-name.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { providersConfiguration } from '../support/provider-configuration.ts';
import { RawClient } from '../support/raw-client.ts';
import { KEYS } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const CANARY = 'account-of-the-operator';
const json = (status: number, value: unknown): Script => ({ status, body: JSON.stringify(value) });

const REFUSALS: Readonly<Record<string, Script>> = {
  unauthorized: json(401, {
    error: { message: `Incorrect API key provided: ${CANARY}`, type: 'invalid_request_error' },
  }),
  credit: json(402, { error: { message: `Insufficient credits: ${CANARY}`, code: 402 } }),
  disabled: json(400, {
    type: 'error',
    error: { type: 'invalid_request_error', message: `This organization has been disabled. ${CANARY}` },
  }),
  gemini: json(400, [
    {
      error: {
        code: 400,
        message: 'API key not valid.',
        details: [{ reason: 'API_KEY_INVALID', metadata: { consumer: CANARY } }],
      },
    },
  ]),
  xai: {
    ...json(400, { code: CANARY, error: 'Incorrect API key provided: x***y.' }),
    split: { kind: 'each_byte' },
  } as Script,
  chunked: { ...json(403, { error: { type: 'permission_error', message: CANARY } }), framing: 'chunked' } as Script,
};
/** What the second of two asks gets too. */
const RELAYED: Readonly<Record<string, Script>> = {
  field: json(400, { error: { message: 'max_tokens is too large', param: 'max_tokens' } }),
  moderation: json(403, { error: { message: 'Your chosen model requires moderation' } }),
  quoting: json(400, { error: { message: 'no such thing: API key not valid' } }),
  long: json(400, { error: { message: 'API key not valid', more: 'x'.repeat(100_000) } }),
  empty: { status: 403, body: '' },
  chunks: { ...json(400, { error: { message: 'no' } }), framing: 'chunked', split: { kind: 'each_byte' } } as Script,
};
const GOOD = json(200, {
  id: 'resp_saved1',
  choices: [],
  usage: { prompt_tokens: 3, completion_tokens: 2, input_tokens: 3, output_tokens: 2 },
});
const ROUTES = [
  { path: '/v1/chat/completions', fields: { messages: [] } },
  { path: '/v1/responses', fields: { input: 'hi' } },
  { path: '/v1/messages', fields: { messages: [], max_tokens: 9 } },
] as const;

describe('a key of the service that a provider refuses', () => {
  let first: FakeUpstream;
  let second: FakeUpstream;
  let tollgate: Front;
  let ledger: LedgerView;

  before(async () => {
    let calls = 0;
    first = await startFakeUpstream(({ method, body }) => {
      if (method === 'GET') return REFUSALS['unauthorized'] as Script;
      const name = /"(?:at|alone)-(\w+)"/.exec(body.toString('latin1'))?.[1] ?? '';
      if (name === 'kept') return calls++ === 0 ? GOOD : (REFUSALS['unauthorized'] as Script);
      return REFUSALS[name] ?? RELAYED[name] ?? GOOD;
    });
    second = await startFakeUpstream(() => GOOD);
    const configurationYaml = providersConfiguration(
      [
        { id: 'first', url: first.url },
        { id: 'second', url: second.url },
      ],
      [...Object.keys(REFUSALS), ...Object.keys(RELAYED), 'kept'].flatMap((name) => [
        {
          id: `test/${name}`,
          deployments: [
            { provider: 'first', model: `at-${name}` },
            { provider: 'second', model: 'm' },
          ],
        },
        { id: `alone/${name}`, deployments: [{ provider: 'first', model: `alone-${name}` }] },
      ]),
    );
    tollgate = await startFront({ configurationYaml });
    ledger = openLedgerView(tollgate.postgresUrl);
  });

  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await Promise.all([first?.close(), second?.close()]);
  });

  const ask = (model: string, route: (typeof ROUTES)[number] = ROUTES[0]): Promise<HttpAnswer> =>
    httpCall(`${tollgate.url}${route.path}`, {
      headers: { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, ...route.fields }),
    });

  for (const name of Object.keys(REFUSALS)) {
    test(`${name}: the next provider serves`, async () => {
      for (const route of ROUTES) {
        const before = second.requests.length;
        const answer = await ask(`test/${name}`, route);
        assert.equal(answer.status, 200, answer.body.toString('utf8'));
        assert.equal(second.requests.length, before + 1);
      }
    });

    test(
      `${name}: where there is no other, 502 in the route's envelope and nothing of what the provider ` +
        `said; nothing is charged`,
      async () => {
        for (const route of ROUTES) {
          const answer = await ask(`alone/${name}`, route);
          const text = answer.body.toString('utf8');
          assert.equal(answer.status, 502, text);
          assert.ok(text.includes('No provider of this model could serve the request.'));
          assert.ok(!text.includes(CANARY) && !/key/i.test(text), text);
          const error = (JSON.parse(text) as { error: { type: string } }).error;
          assert.equal(error.type, route.path === '/v1/messages' ? 'api_error' : 'server_error');
          const id = String(answer.headers['x-service-execution-id']);
          const [row] = await waitFor(
            `execution ${id} to be posted`,
            () =>
              ledger.query('SELECT outcome, billing_status FROM generations WHERE id = $1 AND outcome IS NOT NULL', [
                id,
              ]),
            (rows) => rows.length === 1,
          );
          assert.deepEqual([row?.outcome, row?.billing_status], ['provider_refused', 'not_billed']);
        }
      },
    );
  }

  for (const [name, script] of Object.entries(RELAYED)) {
    test(`${name}: another refusal is relayed as it came`, async () => {
      const before = second.requests.length;
      const answer = await ask(`test/${name}`);
      const { status, body } = script as { status: number; body: string };
      assert.deepEqual([answer.status, answer.body.toString('utf8'), answer.complete], [status, body, true]);
      assert.equal(second.requests.length, before);
    });
  }

  test('a saved response: 502 and nothing of what the provider said', async () => {
    const saved = await ask('alone/kept', ROUTES[1]);
    assert.equal(saved.status, 200, saved.body.toString('utf8'));
    const answer = await httpCall(`${tollgate.url}/v1/responses/resp_saved1`, {
      headers: { authorization: `Bearer ${KEYS.acme}` },
    });
    assert.equal(answer.status, 502, answer.body.toString('utf8'));
    assert.ok(!answer.body.includes(CANARY));
  });

  test('the operator is told: a log line a minute, a metric, and the state on /readyz, which stays ready', async () => {
    const ready = await httpCall(`${tollgate.adminUrl}/readyz`);
    assert.equal(ready.status, 200);
    assert.match(ready.body.toString('utf8'), /^ready\n.*provider first: key_refused \(4\d\d\)\n$/);
    const metrics = (await httpCall(`${tollgate.adminUrl}/metrics`)).body.toString('utf8');
    assert.match(metrics, /tollgate_provider_key_refusals_total\{provider="first",status="401"\} [1-9]/);
    const lines = tollgate
      .output()
      .split('\n')
      .filter((line) => line.includes('does not accept the key'));
    assert.equal(lines.length, 1);
    assert.match(lines[0] as string, /"provider":"first","status":4\d\d/);
    assert.ok(!tollgate.output().includes(CANARY) && !tollgate.output().includes('sk-first'));
  });

  const sendRaw = async (value: Buffer): Promise<{ received: string }> => {
    const body = '{"model":"test/good","messages":[]}'.replace('good', 'kept');
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEYS.acme}\r\nuser-agent: `;
    const rest = `\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const client = await RawClient.open(Number(new URL(tollgate.url).port));
    await client.write(Buffer.concat([Buffer.from(head), value, Buffer.from(rest)]));
    const { received } = await client.until('an answer', (open) => open.isClosed || open.received.endsWith('}'));
    client.leave();
    return { received };
  };

  test('a header of any UTF-8 reaches the provider as the bytes it came in', async () => {
    // uWebSockets.js takes bytes above 127 at either end of a value for blanks and drops them, so there is none here.
    for (const value of ['Zürich', 'robot \u{1f916}!', '(日本)']) {
      const { received } = await sendRaw(Buffer.from(value));
      assert.match(received, /^HTTP\/1\.1 200 /);
      const sent = second.requests.at(-1)?.headers.find(([name]) => name.toLowerCase() === 'user-agent')?.[1];
      assert.equal(sent, Buffer.from(value).toString('latin1'));
    }
  });

  test('a header that cannot be sent on is 400 by its name, calls nobody and is no fault of a provider', async () => {
    const faults = async (): Promise<string> =>
      (await httpCall(`${tollgate.adminUrl}/metrics`)).body
        .toString('utf8')
        .match(/^tollgate_upstream_errors_total.*$/gm)
        ?.join('\n') ?? '';
    const [calls, before] = [first.requests.length, await faults()];
    for (const value of [Buffer.from([0x64, 0xe9, 0x64]), Buffer.from([0x64, 0x7f, 0x64])]) {
      const { received } = await sendRaw(value);
      assert.match(received, /^HTTP\/1\.1 400 /);
      // The parser of node:http has refused a control character before.
      if (HTTP_FRONT === 'uws' || value[1] !== 0x7f) assert.match(received, /user-agent.{0,3} holds bytes/);
    }
    assert.deepEqual([first.requests.length, await faults()], [calls, before]);
  });
});
