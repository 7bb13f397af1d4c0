// Own provider keys by a configuration file and on the command line, and how their states are kept: on one installation
// of two gateways, beside a provider that accepts a key or does not, as the test says.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import type { OwnKeyReference } from '../../src/domain/own-keys/key-changes.ts';
import { claimKeysToCheck } from '../../src/storage/postgres/own-keys/keys-to-check.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { transactionOrRollback } from '../../src/storage/postgres/rollback.ts';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, Tenant } from '../support/identity-world.ts';
import { silentLog } from '../support/postgres.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts';

type Json = Readonly<Record<string, unknown>>;

const SECRET = 'sk-planted-mark-of-the-file-0001';
const OTHER = 'sk-planted-mark-of-the-file-0002';

const fileOf = (fields: string, key: string) => `organizations:
  - slug: filed
    billing: none
    users: [{ email: owner@filed.test, role: owner }]
    byok: { enabled: true, kinds: [upstream], ${fields} }
    provider_credentials:
      - ${key}
    model_prices:
      sim/small: { input: "0.5", output: "2" }
`;
const mapped = (model: string) => KEY.replace('models:', `model_map: { sim/small: ${model} }, models:`);
const KEY = `{ kind: upstream, name: ours, secret: "\${OWN_SECRET}", models: [sim/small] }`;

describe('own provider keys', () => {
  let upstream: FakeUpstream;
  let tollgate: Tollgate;
  let database: pg.Client;
  let tenant: Tenant;
  let receiver: WebhookReceiver;
  const refused = new Set<string>();

  before(async () => {
    receiver = await startWebhookReceiver();
    upstream = await startFakeUpstream((request) =>
      refused.has((request.header('authorization') ?? '').slice('Bearer '.length))
        ? { status: 401, body: '{"error":{"message":"Incorrect API key"}}' }
        : ONE_TOKEN_REPLY,
    );
    tollgate = await startTollgate({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      env: {
        ADMIN_TOKEN,
        OWN_SECRET: SECRET,
        OTHER_SECRET: OTHER,
        WEBHOOK_ALLOW_HTTP: 'true',
        WEBHOOK_ALLOW_PRIVATE: 'true',
      },
      clickhouse: 'away',
      gatewayProcesses: 2,
    });
    database = new pg.Client({ connectionString: tollgate.postgresUrl });
    await database.connect();
  });
  after(async () => {
    await database?.end();
    await tollgate?.stop();
    await receiver?.close();
    await upstream?.close();
  });

  const apply = async (text: string, ...options: readonly string[]) => {
    const path = join(tollgate.dataDir, 'own.yaml');
    writeFileSync(path, text);
    const done = await tollgate.run(['apply', path, ...options]);
    assert.doesNotMatch(done.output, /planted-mark/);
    return done;
  };
  const keys = async () => (await tenant.as('GET', '/provider-credentials')) as unknown as readonly Json[];
  const own = async (action: string, ...options: readonly string[]) => {
    const done = await tollgate.run(['own-key', action, '--organization', 'filed', ...options]);
    assert.doesNotMatch(done.output, /planted-mark/);
    return done;
  };
  const stateOf = async (name: string) => (await keys()).find((key) => key['name'] === name)?.['state'];

  test('a configuration file stores them once, and changes what it says of them', async () => {
    const first = await apply(fileOf('fallback: true', KEY));
    assert.equal(first.exitCode, 0, first.output);
    const { rows } = await database.query<{ id: string }>(`SELECT id FROM organizations WHERE slug = 'filed'`);
    tenant = await Tenant.adopt(tollgate.url, rows[0]?.id ?? '');
    const [stored] = await keys();
    assert.deepEqual(
      [stored?.['name'], stored?.['state'], stored?.['models'], stored?.['place']],
      ['ours', 'unverified', ['sim/small'], 'before'],
    );
    assert.equal((await tenant.as('GET', '/byok/settings'))['fallback'], true);
    const price = { model: 'sim/small', price: { input: '0.5', output: '2' } };
    assert.deepEqual(await tenant.as('GET', '/model-prices'), [price]);
    const again = await apply(fileOf('fallback: true', KEY), '--dry-run');
    assert.match(again.output, /no difference/);

    const changed = KEY.replace('models: [sim/small]', 'place: after').replace('OWN_SECRET', 'OTHER_SECRET');
    assert.equal((await apply(fileOf('fallback: false', changed))).exitCode, 0);
    const [after] = await keys();
    assert.deepEqual([after?.['id'], after?.['place'], after?.['models']], [stored?.['id'], 'after', null]);
    assert.notEqual(after?.['fingerprint'], stored?.['fingerprint']);
  });

  test('a file that contradicts itself stores nothing', async () => {
    const before = await keys();
    for (const [text, says] of [
      [fileOf('custom_base_url: true, fee: { percent: "1" }', KEY), /fee/],
      [fileOf('fee: { percent: "101" }', KEY), /percent/],
      [fileOf('fallback: perhaps', KEY), /fallback/],
      [fileOf('fee: { percent: "1" }', mapped('dear-model')), /filed.*ours.*"dear-model", which has no price/],
      [fileOf('fallback: true', KEY.replace('ours', 'two')).replace('sim/small: {', 'no/such: {'), /no\/such/],
    ] as const) {
      const done = await apply(text);
      assert.notEqual(done.exitCode, 0, done.output);
      assert.match(done.output, says);
    }
    assert.deepEqual(await keys(), before);
    for (const text of [
      fileOf('fee: { percent: "1" }', mapped('sim-large')),
      fileOf('fee: { per_request: "0.001" }', mapped('dear-model')),
    ])
      assert.equal((await apply(text, '--dry-run')).exitCode, 0);
  });

  test('the first key of each organization is asked about before any second one, and no more than a share', async () => {
    const postgres = createPostgres({ url: tollgate.postgresUrl, log: silentLog, max: 1 });
    try {
      const claimed = await transactionOrRollback<(readonly OwnKeyReference[])[]>(
        postgres,
        async (client, rollBack) => {
          // Those of the many were never asked about; they would all come first.
          await client.query(
            `INSERT INTO own_keys (organization_id, kind, name, fingerprint, place, position, fallback, secret_sealed,
             state, suspected_at, checked_at)
           SELECT o.id, 'custom', 'to check ' || n, '00000000', 'before', n, 'inherit', 'x', 'unverified', now(),
                  CASE o.slug WHEN 'poor' THEN now() - interval '1 minute' END
             FROM organizations o, generate_series(1, CASE o.slug WHEN 'poor' THEN 1 ELSE 300 END) n
            WHERE o.slug IN ('acme', 'poor')`,
          );
          const claims = [];
          for (const max of [2, 8, 8]) claims.push(await claimKeysToCheck(client, { max, shareMax: 4 }));
          return rollBack(claims);
        },
      );
      const organizations = claimed.map((keys) => new Set(keys.map(({ organizationId }) => organizationId)).size);
      assert.deepEqual(organizations, [2, 1, 1]);
      assert.deepEqual(
        claimed.map((keys) => keys.length),
        [2, 4, 4],
      );
      assert.equal(new Set(claimed.flat().map(({ keyId }) => keyId)).size, 10, 'what is claimed is claimed once');
    } finally {
      await postgres.close();
    }
  });

  test('the command line: verified unless told otherwise, the secret from the environment only', async () => {
    const made = await own('create', '--kind', 'upstream', '--name', 'by command', '--secret-from', 'OWN_SECRET');
    assert.equal(made.exitCode, 0, made.output);
    assert.equal(await stateOf('by command'), 'active');
    refused.add(OTHER);
    const bad = await own('rotate', '--name', 'by command', '--secret-from', 'OTHER_SECRET');
    assert.notEqual(bad.exitCode, 0);
    assert.match(bad.output, /does not accept the key/);
    assert.notEqual((await own('create', '--kind', 'groq', '--name', 'x', '--secret-from', 'OWN_SECRET')).exitCode, 0);
    assert.notEqual((await own('create', '--kind', 'upstream', '--name', 'y', '--secret-from', 'NONE')).exitCode, 0);
    assert.equal((await own('disable', '--name', 'by command')).exitCode, 0);
    assert.equal(await stateOf('by command'), 'disabled');
    assert.equal((await own('remove', '--name', 'by command')).exitCode, 0);
    assert.equal(await stateOf('by command'), undefined);
    refused.delete(OTHER);
  });

  test('the command line: what the platform lets an organization do', async () => {
    const byok = async (action: string, ...options: readonly string[]) => {
      const done = await tollgate.run(['byok', action, '--organization', 'filed', ...options]);
      return { ...done, shown: Object.fromEntries(done.output.split('\n').map((line) => line.split('\t'))) as Json };
    };
    const before = await byok('show');
    assert.deepEqual(
      [before.shown['enabled'], before.shown['kinds'], before.shown['fee']],
      ['yes', 'upstream', 'none'],
    );
    const set = ['--kinds', 'upstream,openai', '--fee-percent', '2.5', '--credentials-max', '7'];
    const changed = await byok('set', ...set);
    assert.deepEqual(
      [changed.exitCode, changed.shown['kinds'], changed.shown['fee'], changed.shown['credentials']],
      [0, 'upstream,openai', '2.50 %', 'at most 7'],
    );
    for (const wrong of [
      ['--kinds', 'nobody'],
      ['--fee-percent', '101'],
      ['--custom-base-url', 'yes'],
    ])
      assert.notEqual((await byok('set', ...wrong)).exitCode, 0, wrong.join(' '));
    assert.equal((await byok('set', '--kinds', 'upstream', '--no-fee', '--enabled', 'yes')).exitCode, 0);
    assert.equal((await byok('show')).shown['fee'], 'none');
  });

  /** How often the provider was asked about the key that the file names now. */
  const asked = () =>
    upstream.requests.filter(
      (request) => request.path === '/v1/models' && request.header('authorization') === `Bearer ${OTHER}`,
    ).length;

  test('one gateway asks about a key that was refused: invalid, until its provider accepts it again', async () => {
    const check = async (because: string) => {
      await database.query(`UPDATE own_keys SET ${because} WHERE name = 'ours' AND removed_at IS NULL`);
      assert.equal((await tollgate.run(['reconcile', 'check-own-keys'])).exitCode, 0);
    };
    await tenant.as('PUT', '/webhook', { url: receiver.url });
    const before = asked();
    await check('suspected_at = now(), checked_at = NULL');
    await waitFor(
      'the key to be accepted',
      () => stateOf('ours'),
      (state) => state === 'active',
    );
    refused.add(OTHER);
    await check('suspected_at = now(), checked_at = NULL');
    await waitFor(
      'the key to be invalid',
      () => stateOf('ours'),
      (state) => state === 'invalid',
    );
    refused.delete(OTHER);
    await check(`checked_at = now() - interval '61 minutes'`);
    await waitFor(
      'the key to recover',
      () => stateOf('ours'),
      (state) => state === 'active',
    );
    assert.doesNotMatch(tollgate.output(), /planted-mark/);

    // The webhook hears of both, once each.
    const told = await waitFor(
      'the webhook to hear of it',
      async () => receiver.messages.map(({ body }) => JSON.parse(body) as { type: string; data: Json }),
      (messages) => messages.length >= 2,
    );
    const [key] = await keys();
    assert.deepEqual(
      told.map(({ type, data }) => [type, data['credential_id'], data['kind'], data['name'], data['state']]),
      [
        ['credential.invalid', key?.['id'], 'upstream', 'ours', 'invalid'],
        ['credential.recovered', key?.['id'], 'upstream', 'ours', 'active'],
      ],
    );
    assert.doesNotMatch(JSON.stringify(receiver.messages), /planted-mark|0002/);
    assert.equal(asked() - before, 3);
  });

  test('a gateway that finds a key refused has it asked about at once, but not twice in half a minute', async () => {
    const { secret } = await tenant.addKey();
    const generate = async () => {
      const headers = { authorization: `Bearer ${secret}` };
      const body = '{"model":"sim/small","messages":[{"role":"user","content":"hi"}],"max_tokens":1}';
      const reply = await httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body });
      return [reply.status, /byok_key_unavailable/.test(reply.body.toString())];
    };
    const before = asked();
    const [key] = await keys();
    await database.query('UPDATE own_keys SET checked_at = NULL WHERE id = $1', [key?.['id']]);
    refused.add(OTHER);
    assert.deepEqual(await generate(), [503, true]);
    await waitFor(
      'the key to be invalid',
      () => stateOf('ours'),
      (state) => state === 'invalid',
    );
    assert.equal(asked(), before + 1);
    refused.delete(OTHER);
    const verified = await tenant.as('POST', `/provider-credentials/${String(key?.['id'])}/verify`);
    assert.equal(verified['state'], 'active');
    refused.add(OTHER);
    await waitFor(
      'the key to be used again, and refused',
      async () => {
        assert.deepEqual(await generate(), [503, true]);
        const { rows } = await database.query('SELECT FROM own_keys WHERE suspected_at IS NOT NULL');
        return rows.length;
      },
      (count) => count === 1,
    );
    assert.equal((await tollgate.run(['reconcile', 'check-own-keys'])).exitCode, 0);
    assert.equal(asked(), before + 2);
    refused.delete(OTHER);
  });

  test('a secret that was replaced is erased once its overlap is over', async () => {
    const key = { kind: 'upstream', name: 'replaced', secret: SECRET, verify: false };
    const { id } = await tenant.as('POST', '/provider-credentials', key, 201);
    const rotate = (overlap_seconds: number) =>
      tenant.as('POST', `/provider-credentials/${String(id)}/rotate`, {
        secret: OTHER,
        verify: false,
        overlap_seconds,
      });
    const kept = async () => {
      const checked = await tollgate.run(['reconcile', 'check-own-keys']);
      assert.equal(checked.exitCode, 0, checked.output);
      const { rows } = await database.query(
        'SELECT previous_sealed IS NOT NULL AS sealed, previous_until IS NOT NULL AS until FROM own_keys WHERE id = $1',
        [id],
      );
      return rows[0] as Json;
    };
    await rotate(600);
    assert.deepEqual(await kept(), { sealed: true, until: true });
    await rotate(1);
    await pause(1_100);
    assert.deepEqual(await kept(), { sealed: false, until: false });
    await tenant.as('DELETE', `/provider-credentials/${String(id)}`);
  });

  test('where its provider is moved, list and doctor say that a key waits for its secret, until it is rotated', async () => {
    const named = ['--name', 'moved', '--secret-from', 'OWN_SECRET', '--no-verify'];
    assert.equal((await own('create', '--kind', 'upstream', ...named)).exitCode, 0);
    const provider = (url: string) => `providers: [{ id: upstream, base_url: "${url}", api_key: sk-operator }]\n`;
    assert.equal((await apply(provider('http://127.0.0.1:9'))).exitCode, 0);
    const waiting = /upstream\tmoved\t.*\tsecret_needed\tits provider has another address now/;
    assert.match((await own('list')).output, waiting);
    const doctor = await tollgate.run(['doctor']);
    assert.match(
      doctor.output,
      /note +own key "moved" \(upstream\) of the organization "filed" is not used: its provider/,
    );
    assert.doesNotMatch((await own('rotate', ...named)).output, /secret_needed/);
    // It is the new address's now, and the others are where they were.
    assert.equal((await apply(provider(upstream.url))).exitCode, 0);
    const { output } = await own('list');
    assert.match(output, waiting);
    assert.equal(output.match(/secret_needed/g)?.length, 1, output);
    assert.equal((await own('remove', '--name', 'moved')).exitCode, 0);
  });

  test('--prune removes what the file does not list, with its secret', async () => {
    const none = fileOf('fallback: true', KEY).replace(/provider_credentials:\n.*\n/, 'provider_credentials: []\n');
    assert.equal((await apply(none, '--prune')).exitCode, 0);
    assert.deepEqual(await keys(), []);
    const { rows } = await database.query<{ count: number }>(
      'SELECT count(*)::integer AS count FROM own_keys WHERE secret_sealed IS NOT NULL',
    );
    assert.equal(rows[0]?.count, 0);
  });
});
