// No secret leaves by another door than the one that it is for. Secrets are planted in own provider keys and in what
// is sent to every route of the control plane, used, rotated, refused and removed, while a provider echoes them; then
// every answer, table, file of the data directory, metric, log and process is searched for them, in every encoding.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { createSecretBox } from '../../src/storage/postgres/secret-box.ts';
import { queryFacts } from '../support/facts-view.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { filesBelow } from '../support/files-below.ts';
import { firstFormat } from '../support/first-format-secret.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import { findInMemory } from '../support/process-memory.ts';
import { listDescendants } from '../support/process-table.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import type { ReceivedRequest } from '../support/request-reader.ts';
import { routeTable } from '../support/route-table.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts';

type Json = Readonly<Record<string, unknown>>;

/** In the middle of every planted secret: the end of one may be shown. */
const random = (): string => randomBytes(12).toString('hex');
const plant = (what: string): string => `sk-${what}-${random()}-tail`;
const SECRETS = {
  file: plant('file'),
  good: plant('good'),
  rotated: plant('rotated'),
  refused: plant('refused'),
  failing: plant('failing'),
  removed: plant('removed'),
  rejected: plant('rejected'),
  moved: plant('moved'),
  strange: plant('strange'),
};
/** What a search looks for: without the ends. */
const needleOf = (secret: string): string => secret.slice(3, -'-tail'.length);
const NEEDLES: readonly (readonly [what: string, text: string])[] = Object.entries(SECRETS).flatMap(
  ([what, secret]) => {
    const needle = needleOf(secret);
    const bytes = Buffer.from(needle);
    // Base64 depends on where the secret begins: what is in the middle of it is the same in one of three.
    const encoded = [0, 1, 2].map((shift) =>
      Buffer.concat([Buffer.alloc(shift, 'x'), bytes])
        .toString('base64')
        .slice(4, -4),
    );
    return [needle, bytes.toString('hex'), ...encoded].map((text) => [what, text] as const);
  },
);

function assertClean(where: string, text: string): void {
  for (const [what, needle] of NEEDLES) {
    const at = text.indexOf(needle);
    assert.equal(at, -1, `${where} has the secret "${what}": …${text.slice(Math.max(0, at - 80), at)}‹here›`);
  }
}

/** A provider that says the whole of a key that it does not like. */
function answer(request: ReceivedRequest): Script {
  const key = (request.header('authorization') ?? '').replace('Bearer ', '');
  if (/^sk-(refused|rejected|strange)/.test(key))
    return {
      status: 401,
      body: JSON.stringify({ error: { message: `Incorrect API key provided: ${key}`, param: key } }),
    };
  if (key.startsWith('sk-failing'))
    return {
      status: 402,
      headers: [
        ['x-request-id', key],
        ['retry-after', '1'],
      ],
      body: `{"error":"no credit: ${key}"}`,
    };
  const usage = { prompt_tokens: 10, completion_tokens: 4, input_tokens: 10, output_tokens: 4 };
  return { body: JSON.stringify({ id: 'resp_1', choices: [{ message: { content: 'ok' } }], output: [], usage }) };
}

const [MASTER_KEY, PREVIOUS_MASTER_KEY] = [randomBytes(32), randomBytes(32)];

describe('planted secrets', () => {
  let upstream: FakeUpstream;
  let receiver: WebhookReceiver;
  let tollgate: Tollgate;
  let tenant: Tenant;
  let inferenceKey: string;
  let database: pg.Client;

  before(async () => {
    upstream = await startFakeUpstream(answer);
    receiver = await startWebhookReceiver();
    const own = `  - slug: filed
    billing: none
    users: [{ email: owner@filed.test, role: owner }]
    byok: { enabled: true }
    provider_credentials: [{ kind: upstream, name: filed, secret: "\${OWN_SECRET}" }]
`;
    tollgate = await startTollgate({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }) + own,
      env: {
        ADMIN_TOKEN,
        MASTER_KEY: MASTER_KEY.toString('base64'),
        MASTER_KEY_PREVIOUS: PREVIOUS_MASTER_KEY.toString('base64'),
        OWN_SECRET: SECRETS.file,
        LOG_LEVEL: 'debug',
        WEBHOOK_ALLOW_HTTP: 'true',
        WEBHOOK_ALLOW_PRIVATE: 'true',
      },
    });
    database = new pg.Client({ connectionString: tollgate.postgresUrl });
    await database.connect();
    tenant = await Tenant.create(tollgate.url, 'planted', 'prepaid');
    const deposit = { organization_id: tenant.id, amount: '10', reference: 'planted' };
    await ask(tollgate.url, ADMIN_TOKEN, 'POST', '/v1/billing/deposits', deposit, 201);
    const fee = { per_request: '0.001' };
    await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', `/v1/admin/organizations/${tenant.id}/byok`, { enabled: true, fee });
    await tenant.as('PUT', '/webhook', { url: receiver.url });
    inferenceKey = (await tenant.addKey()).secret;
  });
  after(async () => {
    await database?.end();
    await tollgate?.stop({ keepData: true });
    if (tollgate !== undefined) removeInstallation(tollgate.dataDir);
    await receiver?.close();
    await upstream?.close();
  });

  /** Every answer is searched as it comes. */
  async function call(credential: string, method: string, path: string, body?: string): Promise<string> {
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' };
    const reply = await httpCall(`${tollgate.url}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    const text = reply.body.toString('latin1');
    assertClean(`the answer to ${method} ${path}`, `${JSON.stringify(reply.headers)} ${text}`);
    return text;
  }

  const generate = async (key = inferenceKey): Promise<void> => {
    const messages = [{ role: 'user', content: 'hi' }];
    for (const [path, body] of [
      ['/v1/chat/completions', { messages }],
      ['/v1/chat/completions', { messages, stream: true }],
    ] as const)
      await call(key, 'POST', path, JSON.stringify({ model: 'sim/small', max_tokens: 9, ...body }));
  };

  const hasSeen = (secret: string): boolean =>
    upstream.requests.some(({ headers }) => JSON.stringify(headers).includes(secret));

  async function withKey(secret: string, work: (path: string) => Promise<void>): Promise<void> {
    const key = { kind: 'upstream', name: `key ${tenant.next()}`, secret, verify: false };
    const made = await call(tenant.owner.token, 'POST', CREDENTIALS, JSON.stringify(key));
    const path = `${CREDENTIALS}/${(JSON.parse(made) as { data: { id: string } }).data.id}`;
    await work(path);
    await call(tenant.owner.token, 'DELETE', path);
  }

  test('own keys that serve, are rotated, refused, spent and removed', async () => {
    await generate();
    await withKey(SECRETS.good, async (path) => {
      // A gateway hears of a key within two seconds.
      await waitFor('the key to be used', () => generate().then(() => hasSeen(SECRETS.good)), Boolean);
      const rotation = JSON.stringify({ secret: SECRETS.rotated, overlap_seconds: 600 });
      await call(tenant.owner.token, 'POST', `${path}/rotate`, rotation);
      await generate();
      await call(tenant.owner.token, 'POST', `${path}/verify`);
    });
    await withKey(SECRETS.refused, async (path) => {
      // A new key is not asked about again for half a minute.
      await database.query('UPDATE own_keys SET checked_at = NULL WHERE removed_at IS NULL');
      await generate();
      await waitFor(
        'the refused key to be invalid',
        () => call(tenant.owner.token, 'GET', path),
        (key) => key.includes('"invalid"'),
      );
      await database.query(`UPDATE own_keys SET checked_at = now() - interval '61 minutes' WHERE state = 'invalid'`);
      assert.equal((await tollgate.run(['reconcile', 'check-own-keys'])).exitCode, 0);
      await call(tenant.owner.token, 'POST', `${path}/verify`);
    });
    await withKey(SECRETS.failing, async (path) => {
      await generate();
      await call(tenant.owner.token, 'POST', `${path}/verify`);
    });
    await withKey(SECRETS.removed, () => generate());
    const heard = async () => receiver.messages.some(({ body }) => body.includes('credential.invalid'));
    await waitFor('the webhook to hear of the refused key', heard, Boolean);
  });

  test('own keys that are moved to another master key, of both formats', async () => {
    const previous = createSecretBox({ current: PREVIOUS_MASTER_KEY, previous: [] });
    for (const seal of [
      (secret: string, name: string) => previous.seal(secret, name),
      (secret: string, name: string) => firstFormat(PREVIOUS_MASTER_KEY, secret, name),
    ]) {
      const id = randomUUID();
      await database.query(
        `INSERT INTO own_keys (id, organization_id, kind, name, fingerprint, place, position, fallback, secret_sealed,
           state) VALUES ($1, $2, 'upstream', $3, '00000000', 'before', 1, 'inherit', $4, 'disabled')`,
        [id, tenant.id, `moved ${id}`, seal(SECRETS.moved, `own key ${tenant.id} upstream ${id} 1`)],
      );
    }
    const moved = await tollgate.run(['reconcile', 'rewrap-secrets']);
    assert.equal(moved.exitCode, 0, moved.output);
    const present = createSecretBox({ current: MASTER_KEY, previous: [] });
    const { rows } = await database.query<{ id: string; sealed: Buffer }>(
      `SELECT id, secret_sealed AS sealed FROM own_keys WHERE name LIKE 'moved %'`,
    );
    assert.equal(rows.length, 2);
    for (const { id, sealed } of rows)
      assert.equal(present.open(sealed, `own key ${tenant.id} upstream ${id} 1`), SECRETS.moved);
  });

  test('what is said wrongly is not said back', async () => {
    const { rejected, strange } = SECRETS;
    const key = { kind: 'upstream', name: 'wrong', secret: rejected };
    for (const body of [
      JSON.stringify(key),
      JSON.stringify({ ...key, secret: [strange] }),
      JSON.stringify({ ...key, secret: `${strange} with a space` }),
      JSON.stringify({ ...key, secret: strange.repeat(200) }),
      JSON.stringify({ ...key, unknown: strange }),
      JSON.stringify({ ...key, kind: strange }),
      JSON.stringify({ ...key, settings: { key: strange } }),
      JSON.stringify({ ...key, kind: 'custom', base_url: `https://user:${strange}@host.test/` }),
      `{"secret":"${strange}`,
      `"${strange}"`,
    ])
      await call(tenant.owner.token, 'POST', CREDENTIALS, body);
    // As a credential of a client, in both of the headers' ways.
    await generate(strange);
    await httpCall(`${tollgate.url}/v1/messages`, { headers: { 'x-api-key': strange }, body: '{}' });
    await call(inferenceKey, 'GET', `/v1/models?key=${strange}`);
  });

  test('every route of the control plane, with secrets where they do not belong', async () => {
    const { strange } = SECRETS;
    const body = JSON.stringify({ secret: strange, api_key: strange, token: strange, password: strange });
    const routes = routeTable().filter(({ path }) => path.startsWith('/v1/') && !/completions|messages$/.test(path));
    assert.ok(routes.length > 100, String(routes.length));
    for (const { method, path } of routes) {
      const named = path.replaceAll(/:[A-Za-z]+/g, '00000000-0000-4000-8000-000000000000');
      const hasBody = method.toUpperCase() !== 'GET';
      for (const credential of [tenant.owner.token, ADMIN_TOKEN, inferenceKey])
        await call(credential, method.toUpperCase(), named, hasBody ? body : undefined);
    }
    for (const path of ['audit?limit=100', 'provider-credentials', 'byok/order', 'byok/settings', 'model-prices'])
      await call(tenant.owner.token, 'GET', `/v1/admin/active-org/${path}`);
    await call(tenant.owner.token, 'GET', '/v1/admin/active-org/byok/explain?model=sim/small&api=chat_completions');
    for (const format of ['json', 'csv']) await call(inferenceKey, 'GET', `/v1/usage/me/requests?format=${format}`);
  });

  test('processes, metrics and logs', async () => {
    assertClean('the log', tollgate.output());
    const metrics = await httpCall(`${tollgate.adminUrl}/metrics`);
    assertClean('/metrics', metrics.body.toString('latin1'));
    const processes = listDescendants(tollgate.pid);
    assert.ok(processes.length >= 2, 'gateway and jobs');
    for (const { pid, command } of processes) {
      assertClean(`the arguments of ${command}`, command);
      if (!/main\.ts/.test(command)) continue;
      assertClean(`the environment of ${command}`, readFileSync(`/proc/${pid}/environ`, 'latin1'));
    }
    assertClean('a webhook', JSON.stringify(receiver.messages));
  });

  test('core dumps have nothing of the memory of any process', {
    skip: process.platform === 'linux' ? false : 'only Linux says what a core dump would have',
  }, () => {
    const pids = [tollgate.pid, ...listDescendants(tollgate.pid).map(({ pid }) => pid)];
    for (const pid of pids) assert.match(readFileSync(`/proc/${pid}/coredump_filter`, 'latin1'), /^0+\n$/, String(pid));
  });

  test('the memory of jobs has none of them, though they were verified, refused, rotated and moved', (context) => {
    // The arguments of the process are in its memory, so what is there is found.
    const control = 'src/main.ts';
    const found = findInMemory(tollgate.jobsPid(), [control, ...Object.values(SECRETS).map(needleOf)]);
    if (found === null) context.skip('this system does not let a test read the memory of another process');
    else assert.deepEqual([...found], [control]);
  });

  test('every table of Postgres', async () => {
    const tables = await database.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
        WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    );
    assert.ok(tables.rows.length > 20);
    let rows = 0;
    for (const { name } of tables.rows) {
      const found = await database.query<{ row: string }>(`SELECT to_jsonb(t)::text AS row FROM ${name} t`);
      rows += found.rows.length;
      for (const { row } of found.rows) assertClean(`table ${name}`, row);
    }
    assert.ok(rows > 100, String(rows));
  });

  test('every table of ClickHouse, the spool, and all else in the data directory', async () => {
    await tollgate.stop({ keepData: true });
    assertClean('the log at the end', tollgate.output());
    const tables = await queryFacts<{ name: string }>(
      tollgate.dataDir,
      `SELECT database || '.' || name AS name FROM system.tables
        WHERE database NOT IN ('system', 'information_schema', 'INFORMATION_SCHEMA') AND engine NOT LIKE '%View'`,
    );
    assert.ok(tables.length > 0);
    for (const { name } of tables)
      for (const row of await queryFacts<Json>(tollgate.dataDir, `SELECT * FROM ${name}`))
        assertClean(`table ${name} of ClickHouse`, JSON.stringify(row));
    let files = 0;
    for (const { path, content } of filesBelow(tollgate.dataDir)) {
      files += 1;
      assertClean(path, content);
    }
    assert.ok(files > 10, String(files));
  });

  test('the needles are found where they are', () => {
    const { good } = SECRETS;
    for (const text of [good, Buffer.from(good).toString('hex'), Buffer.from(`ab${good}`).toString('base64')])
      assert.throws(() => assertClean('here', `before ${text} after`));
    assert.ok(KEYS.acme.length > 0 && hasSeen(good));
  });
});

const CREDENTIALS = '/v1/admin/active-org/provider-credentials';
