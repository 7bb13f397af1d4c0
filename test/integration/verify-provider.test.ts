// What a provider's answer to the one free request says of its key, over our own client and over undici.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readRequestSettings } from '../../src/domain/configuration/schema/request-settings.ts';
import type { Provider } from '../../src/domain/models/provider.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { OwnKeyVerifier } from '../../src/upstream/own-key-verifier.ts';
import { ProviderCalls } from '../../src/upstream/providers.ts';
import { verifyProvider } from '../../src/upstream/verify-provider.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { startRawProvider } from '../support/raw-provider.ts';
import { waitFor } from '../support/waiting.ts';

const json = (status: number, body: unknown): Script => ({
  status,
  headers: [['content-type', 'application/json']],
  body: JSON.stringify(body),
});
const openaiError = (message: string, code: string | null = null) => ({ error: { message, type: 'x', code } });

const ANSWERS: Readonly<Record<string, readonly [Script, string]>> = {
  'a list of models': [json(200, { data: [] }), 'good'],
  'a list of models that is long': [json(200, { data: 'x'.repeat(1_000_000) }), 'good'],
  '402, an account without credit': [json(402, openaiError('Insufficient Balance')), 'good'],
  '429': [json(429, openaiError('You exceeded your current quota', 'insufficient_quota')), 'good'],
  'a 400 that says the credit is used up': [
    json(400, { type: 'error', error: { type: 'x', message: 'Your credit balance is too low to access the API.' } }),
    'good',
  ],
  'a 403 that says the limit of the key is reached': [json(403, openaiError('Key limit exceeded (total)')), 'good'],
  '401': [json(401, openaiError('Incorrect API key provided: sk-12**34')), 'rejected'],
  'a 400 in the words of Gemini': [
    json(400, [openaiError('API key not valid. Please pass a valid API key.')]),
    'rejected',
  ],
  'a 403 in words of the configuration': [json(403, openaiError('Tenant is closed since May')), 'rejected'],
  'a restricted key': [
    json(403, openaiError('You have insufficient permissions for this operation. Missing scopes: api.model.read.')),
    'unverified',
  ],
  'a restricted key, as 401': [
    json(401, openaiError('You have insufficient permissions for this operation. Missing scopes: api.model.read.')),
    'unverified',
  ],
  'a 403 in unknown words': [json(403, openaiError('no')), 'unverified'],
  'a 404': [json(404, openaiError('no such path')), 'unverified'],
  'a redirect': [{ status: 302, headers: [['location', 'https://elsewhere.test']], body: '' }, 'unreachable'],
  'a page for browsers': [
    { status: 200, headers: [['content-type', 'text/html; charset=utf-8']], body: '<html>' },
    'unreachable',
  ],
  'a 503': [json(503, openaiError('overloaded')), 'unverified'],
  'a 401 that breaks off': [
    { ...(json(401, openaiError('no')) as object), body: '{"error": ', fault: { kind: 'cut', afterBytes: 5 } },
    'rejected',
  ],
  'no reply': [{ instead: 'close' }, 'unreachable'],
};

describe('a key is verified', () => {
  let upstream: FakeUpstream;
  let script: Script = json(200, {});
  before(async () => {
    upstream = await startFakeUpstream(() => script);
  });
  after(() => upstream.close());

  for (const client of ['own', 'undici'] as const) {
    describe(`over ${client}`, () => {
      const refused: string[] = [];
      const calls = new ProviderCalls(new MetricsRegistry(), systemClock, {
        client,
        onKeyRefused: ({ id }) => refused.push(id),
      });
      after(() => calls.close());
      const provider = (own: Partial<Provider> = {}): Provider => ({
        id: 'p',
        baseUrl: `${upstream.url}/v1`,
        apiKey: 'sk-secret',
        auth: 'bearer',
        onDisconnect: 'cancel',
        requests: readRequestSettings({ errors: [{ status: 403, message: 'Tenant is closed' }] }),
        ...own,
      });

      for (const [name, [answer, result]] of Object.entries(ANSWERS)) {
        test(`${name}: ${result}`, async () => {
          script = answer;
          const found = await verifyProvider(provider(), calls);
          assert.equal(found.result, result, JSON.stringify(found));
          assert.equal(found.status, 'status' in answer ? answer.status : null);
          assert.ok(!/secret|sk-|\{/.test(found.reason), found.reason);
        });
      }

      test('with one GET of the list of models, or of what the configuration names, and with its key', async () => {
        script = json(200, {});
        await verifyProvider(provider(), calls);
        const requests = readRequestSettings({ verify: { path: '/key' }, query: { 'api-version': '1' } });
        await verifyProvider(provider({ baseUrl: `${upstream.url}/api/v1`, requests, auth: 'api-key' }), calls);
        const [last, usual] = [upstream.requests.at(-1), upstream.requests.at(-2)];
        assert.deepEqual([usual?.method, usual?.path, usual?.body.length], ['GET', '/v1/models', 0]);
        assert.equal(usual?.header('authorization'), 'Bearer sk-secret');
        // Anthropic answers 400 without it, whatever the key.
        assert.equal(usual?.header('anthropic-version'), '2023-06-01');
        assert.deepEqual([last?.method, last?.path], ['GET', '/api/v1/key?api-version=1']);
        assert.equal(last?.header('api-key'), 'sk-secret');
      });

      test('and no refusal of it counts as one of a request', () => assert.deepEqual(refused, []));

      test('with a token: without a valid one nobody is asked, and where there is nothing to ask it is the proof', async () => {
        const before = upstream.requests.length;
        const valid = { validUntilMs: systemClock.nowMs() + 60_000, overdueFromMs: 0 };
        const byToken = readRequestSettings({ verify: 'token' });
        const found = [
          await verifyProvider(provider({ token: { validUntilMs: 0, overdueFromMs: 0 } }), calls),
          await verifyProvider(provider({ token: valid, requests: byToken }), calls),
        ];
        assert.deepEqual(
          found.map(({ result }) => result),
          ['unverified', 'good'],
        );
        assert.equal(upstream.requests.length, before);
        script = json(200, {});
        assert.equal((await verifyProvider(provider({ token: valid }), calls)).result, 'good');
        assert.equal(upstream.requests.length, before + 1);
      });

      test('nobody listens: the reason says so', async () => {
        const nowhere = await verifyProvider(provider({ baseUrl: `http://127.0.0.1:${await findFreePort()}` }), calls);
        assert.deepEqual([nowhere.result, nowhere.status], ['unreachable', null]);
        assert.match(nowhere.reason, /ECONNREFUSED/);
      });

      test('a name that nobody knows: the reason says so', async () => {
        const unknown = await verifyProvider(provider({ baseUrl: 'http://unknown.invalid' }), calls);
        assert.equal(unknown.result, 'unreachable');
        assert.match(unknown.reason, /ENOTFOUND|EAI_AGAIN/);
      });

      test('a certificate that is not trusted: the reason says so', async () => {
        const file = (name: string) =>
          readFileSync(fileURLToPath(new URL(`../support/tls/${name}.pem`, import.meta.url)));
        const tls = { cert: file('localhost-certificate'), key: file('localhost-key') };
        const secret = await startRawProvider(() => undefined, tls);
        const found = await verifyProvider(provider({ baseUrl: `https://localhost:${secret.port}` }), calls);
        await secret.close();
        assert.equal(found.result, 'unreachable');
        assert.match(found.reason, /not trusted/);
      });
    });
  }

  test('of an own key: its connections are closed as soon as it has its answer', async () => {
    let open = 0;
    const listener = createServer((_, response) => void response.end('{"data":[]}'));
    listener.on('connection', (socket) => {
      open += 1;
      socket.on('close', () => (open -= 1));
    });
    await new Promise<void>((resolve) => void listener.listen(0, '127.0.0.1', resolve));
    const calls = new ProviderCalls(new MetricsRegistry(), systemClock);
    try {
      const baseUrl = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
      const provider = { id: 'p', baseUrl, apiKey: '', auth: 'bearer', onDisconnect: 'cancel' } as const;
      const verifier = new OwnKeyVerifier(calls, systemClock);
      const found = await verifier.verify({ provider, apis: [], isGuarded: false }, 'sk-own');
      // It answers anybody.
      assert.equal(found?.state, 'unverified');
      await waitFor(
        'the connections to be closed',
        async () => {
          calls.trim();
          return open;
        },
        (count) => count === 0,
      );
    } finally {
      await calls.close();
      listener.close();
    }
  });

  test('one that says nothing is given up after five seconds', async ({ mock }) => {
    script = { instead: 'silence' };
    const calls = new ProviderCalls(new MetricsRegistry(), systemClock);
    mock.timers.enable({ apis: ['setTimeout'] });
    const provider = { id: 'p', baseUrl: upstream.url, apiKey: 'k', auth: 'bearer', onDisconnect: 'cancel' } as const;
    const verifying = verifyProvider(provider, calls);
    mock.timers.tick(5_000);
    assert.deepEqual(await verifying, {
      result: 'unreachable',
      status: null,
      reason: 'did not answer within 5 seconds',
    });
    await calls.close();
  });
});
