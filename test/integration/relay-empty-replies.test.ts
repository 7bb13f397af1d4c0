// A reply of which only the head comes, and then a cut, a standstill or the end of a stream without a byte: nothing of
// it has reached the client, so it gets a refusal of ours in its dialect and pays nothing. Nobody else is asked, since
// the request was sent.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, type Script, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerRow, type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const TEXT_APIS = ['chat_completions', 'responses', 'messages'] as const;
const MODELS = [{ id: 'sim/small', providerModel: 'small', outputCap: 4_096, apis: TEXT_APIS }];
const MESSAGES = [{ role: 'user', content: 'hi' }];
const BODIES: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { messages: MESSAGES, max_tokens: 50 },
  '/v1/responses': { input: 'hi', max_output_tokens: 50, store: false },
  '/v1/messages': { messages: MESSAGES, max_tokens: 50 },
};
const CHAT = '/v1/chat/completions';

const headOf = (status: number, isStream: boolean): ScriptedReply => ({
  status,
  headers: [['content-type', isStream ? 'text/event-stream' : 'application/json']],
  body: 'x'.repeat(100),
  framing: isStream ? 'chunked' : 'length',
});
const broken = (kind: 'cut' | 'reset' | 'stall', isStream: boolean, status = 200): Script => ({
  ...headOf(status, isStream),
  fault: { kind, afterBytes: 0 },
});
/** Of which the first bytes come, and no usage. */
const begun = (isStream: boolean, body: string): Script => ({
  ...headOf(200, isStream),
  body: `${body}${'x'.repeat(100)}`,
  fault: { kind: 'cut', afterBytes: Buffer.byteLength(body) },
});

describe('a reply of which no byte has reached the client', () => {
  let script: Script = broken('cut', false);
  let upstream: FakeUpstream;
  let second: FakeUpstream;
  let tollgate: Front;
  let ledger: LedgerView;

  before(async () => {
    upstream = await startFakeUpstream(() => script);
    second = await startFakeUpstream(() => assert.fail('a second provider was called'));
    tollgate = await startFront({ configurationYaml: configuration(upstream.url, second.url) });
    ledger = openLedgerView(tollgate.postgresUrl);
  });
  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await upstream?.close();
    await second?.close();
  });

  const ask = (path: string, stream: boolean, key: string = KEYS.acme): Promise<HttpAnswer> =>
    httpCall(`${tollgate.url}${path}`, {
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
      },
      body: JSON.stringify({ model: 'sim/small', stream, ...BODIES[path] }),
    });

  async function recordOf({ headers }: HttpAnswer): Promise<LedgerRow | undefined> {
    const id = String(headers['x-service-execution-id']);
    const [row] = await waitFor(
      `${id} to be posted`,
      () =>
        ledger.query(
          `SELECT outcome, status, error_code, billing_status, charge::text FROM generations
            WHERE id = $1 AND outcome IS NOT NULL`,
          [id],
        ),
      (rows) => rows.length === 1,
    );
    return row;
  }

  async function assertRefused(answer: HttpAnswer, path: string, code: 'upstream_unreachable' | 'upstream_timeout') {
    const text = answer.body.toString();
    assert.deepEqual([answer.status, answer.complete], [502, true], text);
    const { error } = JSON.parse(text) as { error: { type: string; code?: string; message: string } };
    if (path === '/v1/messages') assert.equal(error.type, 'api_error');
    else assert.equal(error.code, code);
    assert.deepEqual(await recordOf(answer), {
      outcome: 'no_reply',
      status: 502,
      error_code: code === 'upstream_timeout' ? 'idle_timeout' : 'no_reply',
      billing_status: 'not_billed',
      charge: null,
    });
  }

  for (const path of Object.keys(BODIES))
    for (const isStream of [true, false]) {
      const name = `${path} ${isStream ? 'as a stream' : 'as JSON'}`;
      for (const kind of ['cut', 'reset'] as const)
        test(`${name}: a ${kind} is a 502 that costs nothing, after one call`, async () => {
          script = broken(kind, isStream);
          const calls = upstream.requests.length;
          await assertRefused(await ask(path, isStream), path, 'upstream_unreachable');
          assert.equal(upstream.requests.length, calls + 1);
        });

      test(`${name}: a standstill is the 502 of a time limit`, async () => {
        script = broken('stall', isStream);
        await assertRefused(await ask(path, isStream), path, 'upstream_timeout');
      });
    }

  for (const path of Object.keys(BODIES))
    test(`${path}: a stream that ends cleanly without a byte is none`, async () => {
      script = { ...headOf(200, true), body: '' };
      await assertRefused(await ask(path, true), path, 'upstream_unreachable');
    });

  test('a refusal of the provider of which only the head comes is none', async () => {
    script = broken('cut', false, 400);
    await assertRefused(await ask(CHAT, false), CHAT, 'upstream_unreachable');
  });

  test('what a guardrail keeps until it is whole has reached nobody', async () => {
    script = begun(false, '{"usage":{"prompt_tokens":40,"completion_tokens":3},"choices":[{"message":{"content":"Hel');
    await assertRefused(await ask(CHAT, false, KEYS.acmeSecond), CHAT, 'upstream_unreachable');
    script = begun(true, 'data: {"choices":[{"index":0,"delta":{"conte');
    await assertRefused(await ask(CHAT, true, KEYS.acmeSecond), CHAT, 'upstream_unreachable');
  });

  test('one byte is a reply that broke off, which its client sees cut', async () => {
    script = begun(true, ':');
    const answer = await ask(CHAT, true);
    assert.deepEqual([answer.status, answer.complete, answer.body.toString()], [200, false, ':']);
    assert.equal((await recordOf(answer))?.outcome, 'cut_mid_stream');
  });
});

function configuration(upstreamUrl: string, secondUrl: string): string {
  const guardrails = `guardrails:
  - { name: lemonade, rules: [{ id: words, words: [plantedlemonade], stage: output, action: block }] }
`;
  const deployment = `      - provider: second
        model: small
        apis: [${TEXT_APIS.join(', ')}]
        price: { input: "1", output: "1" }
organizations:
`;
  const yaml = testConfiguration({ upstreamUrl, models: MODELS })
    .replace('    auth: bearer\n', '    auth: bearer\n    timeouts: { idle_ms: 500 }\n')
    .replace('models:\n', `  - { id: second, base_url: ${secondUrl}, api_key: sk-second, auth: bearer }\nmodels:\n`)
    .replace('organizations:\n', deployment)
    .replace(`secret: ${KEYS.acmeSecond}`, `secret: ${KEYS.acmeSecond}, guardrails: { add: [lemonade] }`);
  return guardrails + yaml;
}
