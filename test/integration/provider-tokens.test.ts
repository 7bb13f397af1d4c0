// The life of a provider's token: obtained by jobs, sealed, renewed ahead of its end by one process of several, served
// until its end where that fails, and never that of another account.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { TokenRenewer } from '../../jobs/tokens/renew-tokens.ts';
import { showPublicHealth, showWholeHealth } from '../../src/control-plane/catalog/health-fields.ts';
import { requestedProvider } from '../../src/domain/configuration/schema/provider-schema.ts';
import { isCallable, type Provider } from '../../src/domain/models/provider.ts';
import { UNKNOWN_HEALTH } from '../../src/domain/models/provider-health.ts';
import { isRefused } from '../../src/domain/refusals/refused.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLog, type Log } from '../../src/platform/log.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { publishModel, publishProvider } from '../../src/storage/postgres/catalog/catalog-operations.ts';
import { loadCatalog } from '../../src/storage/postgres/catalog/catalog-store.ts';
import { readProviderHealth } from '../../src/storage/postgres/catalog/provider-health.ts';
import { CHANGES_CHANNEL } from '../../src/storage/postgres/changes.ts';
import { createListener } from '../../src/storage/postgres/listen.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { NO_PROXIES } from '../../src/upstream/proxy-of.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/waiting.ts';

const { box } = secretsOf(randomBytes(32));
const ACTOR = { kind: 'cli', userId: null, label: 'test' } as const;
let server: TestPostgres;
let endpoint: FakeUpstream;
let answer: (count: number, secret: string) => Script;
let postgres: Postgres;
let url: string;
const running: TokenRenewer[] = [];
let logged: string;
let metrics: MetricsRegistry;

const token = (text: string, seconds: number): Script => ({
  headers: [['content-type', 'application/json']],
  body: JSON.stringify({ access_token: text, expires_in: seconds, token_type: 'Bearer' }),
});
const refusal: Script = { status: 401, body: '{"error":"invalid_client","error_description":"AADSTS7000215: no."}' };

before(async () => {
  server = await startTestPostgres();
  endpoint = await startFakeUpstream(({ body }) =>
    answer(endpoint.requests.length, new URLSearchParams(body.toString()).get('client_secret') ?? ''),
  );
});
after(async () => {
  await server?.stop();
  await endpoint?.close();
});
beforeEach(async () => {
  url = await server.createDatabase();
  postgres = createPostgres({ url, log: silentLog });
  logged = '';
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((renewer) => renewer.stop()));
  await postgres.close();
});

function keepRenewing(log: Log = silentLog): void {
  metrics = new MetricsRegistry();
  const renewer = new TokenRenewer({ postgres, box, proxies: NO_PROXIES, log, clock: systemClock, metrics });
  renewer.start();
  running.push(renewer);
}

const listening = (): Log =>
  createLog({ level: 'info', process: 'jobs', destination: { write: (line: string) => void (logged += line) } });

async function put(secret: string | undefined, settings: object = {}, version = 0): Promise<string | null> {
  const fields = {
    base_url: 'https://api.acme.test',
    token: { kind: 'entra', tenant: 't', client_id: 'app', authority: endpoint.url, ...settings },
  };
  if (secret !== undefined) Object.assign(fields.token, { client_secret: secret });
  const provider = requestedProvider.parse(fields).provider('p');
  const done = await publishProvider(postgres, { box }, ACTOR, { provider, version });
  return isRefused(done) ? JSON.stringify(done) : null;
}

async function serve(): Promise<void> {
  const model = {
    id: 'm',
    displayName: 'm',
    kind: 'text',
    aliases: [],
    contextLength: null,
    maxOutputTokens: null,
    maxCompletionTokensCap: null,
    attachmentTokensMax: null,
    tokenizer: 'o200k_base',
    active: true,
    servedBy: [{ provider: 'p', providerModel: 'm', apis: ['chat_completions'], price: null }],
  } as const;
  const done = await publishModel(postgres, ACTOR, { model, version: 0 });
  assert.ok(!isRefused(done), JSON.stringify(done));
}

async function present(): Promise<Provider> {
  const { models } = await loadCatalog(postgres, box);
  return models[0]?.servedBy[0]?.provider ?? assert.fail('no provider');
}

async function version(): Promise<number> {
  const { rows } = await postgres.query<{ version: string }>('SELECT version FROM providers');
  return Number(rows[0]?.version);
}

const hasKey = (key: string) =>
  waitFor(
    `the token ${key}`,
    () => present(),
    ({ apiKey }) => apiKey === key,
  );

describe('a token of a provider', () => {
  test('is obtained, sealed, and every gateway hears of it; before that there is none', async () => {
    answer = () => token('first-token', 3_600);
    assert.equal(await put('entra-secret'), null);
    await serve();
    const none = await present();
    assert.deepEqual([none.apiKey, isCallable(none, Date.now())], ['', false]);
    const heard: string[] = [];
    const listener = createListener({
      url,
      log: silentLog,
      channels: { [CHANGES_CHANNEL]: (payload) => void heard.push(payload) },
      onReconnect: () => undefined,
    });
    await listener.listening;
    keepRenewing();
    const { token: life } = await hasKey('first-token');
    await waitFor('the notification', () => heard.length, Boolean);
    await listener.close();
    assert.ok(isCallable(await present(), Date.now()) && life !== undefined);
    assert.ok(Math.abs(life.validUntilMs - Date.now() - 3_600_000) < 60_000);
    assert.ok(Math.abs(life.validUntilMs - life.overdueFromMs - 360_000) < 1_000);
    const { rows } = await postgres.query<{ all: string }>(
      `SELECT (SELECT json_agg(p)::text FROM providers p) || (SELECT json_agg(t)::text FROM provider_tokens t)
         || (SELECT json_agg(a)::text FROM audit_log a) AS all`,
    );
    const stored = rows[0]?.all ?? '';
    for (const secret of ['first-token', 'entra-secret']) {
      assert.ok(!stored.includes(secret) && !stored.includes(Buffer.from(secret).toString('hex')), secret);
    }
  });

  test('is renewed ahead of its end, by one of several processes', async () => {
    let calls = 0;
    answer = () => token(`token-${++calls}`, 1_000 * calls);
    await put('entra-secret');
    await serve();
    for (let process = 0; process < 3; process += 1) keepRenewing();
    await hasKey('token-1');
    const { rows } = await postgres.query<{ after: number }>(
      `SELECT extract(epoch FROM next_attempt_at - obtained_at)::double precision AS after FROM provider_tokens`,
    );
    assert.ok(Math.abs((rows[0]?.after ?? 0) - 800) < 1, `${rows[0]?.after}`);
    // Its time comes, while the first one is still valid.
    await postgres.query('UPDATE provider_tokens SET next_attempt_at = clock_timestamp()');
    await hasKey('token-2');
    await Promise.all(running.splice(0).map((renewer) => renewer.stop()));
    assert.equal(calls, 2);
  });

  test('serves until its end where the next one cannot be obtained: one line of the log, and a count', async () => {
    let calls = 0;
    answer = () => (++calls === 1 ? token('the-only-one', 2) : refusal);
    await put('entra-secret');
    await serve();
    keepRenewing(listening());
    const found = await hasKey('the-only-one');
    await waitFor(
      'a failure',
      () => calls,
      (count) => count > 1,
    );
    await waitFor(
      'its count',
      () => metrics.render(),
      (text) => /renewals_total\{[^}]*"failed"\} 1/.test(text),
    );
    assert.equal((await present()).apiKey, 'the-only-one');
    assert.ok(!isCallable(found, found.token?.validUntilMs ?? 0));
    await waitFor(
      'its line',
      () => logged,
      (text) => text.includes('AADSTS7000215'),
    );
    const lines = logged.split('\n').filter((line) => line.includes('could not be obtained'));
    assert.equal(lines.length, 1, logged);
    assert.doesNotMatch(logged, /entra-secret|the-only-one/);
  });

  test('its end and how the last attempt went are in the health of its provider, without a secret', async () => {
    const health = async () => (await readProviderHealth(postgres)).get('p')?.token ?? assert.fail('no token');
    answer = (_, secret) => (secret === 'good-secret' ? token('t-1', 3_600) : refusal);
    await put('good-secret');
    assert.deepEqual(await health(), { expiresAtMs: null, obtainedAtMs: null, failure: null, nextAttemptAtMs: null });
    keepRenewing();
    const good = await waitFor('a token', health, ({ expiresAtMs }) => expiresAtMs !== null);
    assert.equal(good.failure, null);
    assert.ok(Math.abs((good.expiresAtMs ?? 0) - (good.obtainedAtMs ?? 0) - 3_600_000) < 1_000);
    assert.ok(Math.abs((good.nextAttemptAtMs ?? 0) - (good.obtainedAtMs ?? 0) - 2_880_000) < 1_000);
    await put('wrong-secret', {}, await version());
    const bad = await waitFor('a failure', health, ({ failure }) => failure !== null);
    assert.match(bad.failure ?? '', /^answered 401, invalid_client: AADSTS7000215: no\. \(client_secret is wrong/);
    assert.deepEqual([bad.expiresAtMs, bad.obtainedAtMs], [null, null]);
    const shown = JSON.stringify([showWholeHealth({ ...UNKNOWN_HEALTH, token: bad }, Date.now()), bad]);
    assert.ok(!shown.includes('wrong-secret'));
    const { token: toClients } = showPublicHealth({ ...UNKNOWN_HEALTH, token: bad }, Date.now());
    assert.deepEqual(toClients, { expires_at: null, renewal: 'failing' });
  });

  test('is not that of another account or secret, however valid', async () => {
    answer = (_, secret) => (secret === 'first-secret' ? token('of-the-first', 3_600) : refusal);
    await put('first-secret');
    await serve();
    keepRenewing();
    await hasKey('of-the-first');
    await put('second-secret', {}, await version());
    const changed = await present();
    assert.deepEqual([changed.apiKey, isCallable(changed, Date.now())], ['', false]);
    answer = (_, secret) => token(`of-${secret}`, 3_600);
    await put('third-secret', {}, await version());
    await hasKey('of-third-secret');
  });

  test('the stored secret stays for the same account alone', async () => {
    answer = () => token('first-token', 3_600);
    await put('entra-secret');
    assert.equal(await put(undefined, {}, await version()), null);
    for (const settings of [{ authority: 'https://login.evil.test' }, { tenant: 'other' }, { client_id: 'other' }])
      assert.match((await put(undefined, settings, await version())) ?? '', /the stored one is for another account/);
    const asKey = requestedProvider.parse({ base_url: 'https://api.acme.test' }).provider('p');
    const change = { provider: asKey, version: await version() };
    assert.ok(isRefused(await publishProvider(postgres, { box }, ACTOR, change)));
  });
});
