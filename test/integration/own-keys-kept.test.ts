// Own provider keys by a configuration file and on the command line, and how jobs keeps their states: on one
// installation, beside a provider that accepts a key or does not, as the test says.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { ADMIN_TOKEN, Tenant } from '../support/identity-world.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

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
const KEY = `{ kind: upstream, name: ours, secret: "\${OWN_SECRET}", models: [sim/small] }`;

describe('own provider keys', () => {
  let upstream: FakeUpstream;
  let tollgate: Tollgate;
  let database: pg.Client;
  let tenant: Tenant;
  const refused = new Set<string>();

  before(async () => {
    upstream = await startFakeUpstream((request) =>
      refused.has((request.header('authorization') ?? '').slice('Bearer '.length))
        ? { status: 401, body: '{"error":{"message":"Incorrect API key"}}' }
        : ONE_TOKEN_REPLY,
    );
    tollgate = await startTollgate({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      env: { ADMIN_TOKEN, OWN_SECRET: SECRET, OTHER_SECRET: OTHER },
      clickhouse: 'away',
    });
    database = new pg.Client({ connectionString: tollgate.postgresUrl });
    await database.connect();
  });
  after(async () => {
    await database?.end();
    await tollgate?.stop();
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
      [fileOf('fallback: true', KEY.replace('ours', 'two')).replace('sim/small: {', 'no/such: {'), /no\/such/],
    ] as const) {
      const done = await apply(text);
      assert.notEqual(done.exitCode, 0, done.output);
      assert.match(done.output, says);
    }
    assert.deepEqual(await keys(), before);
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

  test('jobs asks about a key that was refused: invalid, until its provider accepts it again', async () => {
    const check = async (because: string) => {
      await database.query(`UPDATE own_keys SET ${because} WHERE name = 'ours' AND removed_at IS NULL`);
      assert.equal((await tollgate.run(['reconcile', 'check-own-keys'])).exitCode, 0);
    };
    await check('suspected_at = now()');
    await waitFor(
      'the key to be accepted',
      () => stateOf('ours'),
      (state) => state === 'active',
    );
    refused.add(OTHER);
    await check('suspected_at = now()');
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
