// A configuration file in the database: applied whole or not at all, twice like once, and followed by whoever listens.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, type TestContext, test } from 'node:test';
import { DEMO_KEY_FILE, keepDemoKey } from '../../src/commands/start/demo-key.ts';
import { findDemo } from '../../src/commands/start/find-demo.ts';
import type { Configuration } from '../../src/domain/configuration/configuration.ts';
import { parseConfigurationFile } from '../../src/domain/configuration/parse-configuration-file.ts';
import { hashCredential } from '../../src/domain/identity/key-hash.ts';
import type { Organization } from '../../src/domain/identity/organization.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { isRefused } from '../../src/domain/refusals/refused.ts';
import { StartFault } from '../../src/installation/start-fault.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type AppliedConfiguration, applyConfiguration } from '../../src/storage/postgres/apply/apply-configuration.ts';
import { isUsableKey } from '../../src/storage/postgres/apply/known-secrets.ts';
import { readStoredNames } from '../../src/storage/postgres/apply/stored-names.ts';
import { readCatalogState } from '../../src/storage/postgres/catalog/catalog-states.ts';
import { loadCatalog } from '../../src/storage/postgres/catalog/catalog-store.ts';
import { findPrincipalByCredentialHash } from '../../src/storage/postgres/catalog/credentials.ts';
import { findKeyByNameOrId, revokeKey, updateKey } from '../../src/storage/postgres/identity/keys/keys.ts';
import { rotateKey } from '../../src/storage/postgres/identity/keys/rotate-key.ts';
import { replaceLimits } from '../../src/storage/postgres/identity/limits.ts';
import { getModelAccess, setModelAccess } from '../../src/storage/postgres/identity/model-access.ts';
import { findOrganizationBySlug } from '../../src/storage/postgres/identity/organizations.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { createListener, type Listener } from '../../src/storage/postgres/listen.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { startInterruptibleLink } from '../support/interruptible-link.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

const secrets = secretsOf(randomBytes(32));
const { pepper } = secrets;
let server: TestPostgres;
let postgres: Postgres;
let url: string;
before(async () => {
  server = await startTestPostgres();
});
after(async () => {
  await server.stop();
});
beforeEach(async () => {
  url = await server.createDatabase();
  postgres = createPostgres({ url, log: silentLog });
});
afterEach(async () => {
  await postgres.close();
});

const FILE = `
providers:
  - { id: sim, base_url: "http://127.0.0.1:1/", api_key: sim-key }
  - { id: other, base_url: "https://other.test/api", api_key: other-key, auth: x-api-key, on_disconnect: drain, timeouts: { idle_ms: 5000 } }
models:
  - id: sim/large
    aliases: ["sim/large[1m]", "sim/latest"]
    context_length: 1000000
    max_output_tokens: 128000
    max_completion_tokens_cap: 32000
    served_by:
      - { provider: sim, model: large, apis: [chat_completions], price: { input: "1.25", output: "10.00" } }
      - { provider: other, model: large-2, apis: [chat_completions, responses], stream_usage: request }
  - { id: sim/image, kind: image, active: false, served_by: [{ provider: sim, model: image, apis: [images], price: { image: "0.04" } }] }
organizations:
  - slug: acme
    billing: prepaid
    opening_credit: "25.00"
    limits: [{ kind: requests_per_minute, limit: 600 }, { kind: budget, window: month, limit: "100.00" }]
    teams: [{ slug: research }]
    users: [{ email: a@acme.test, role: owner, teams: [research] }]
    keys: [{ name: ci, user: a@acme.test, team: research, secret: tg-known }, { name: made }]
`;

function read(text: string): Configuration {
  const parsed = parseConfigurationFile(text, {});
  assert.deepEqual(parsed.ok ? [] : parsed.errors, []);
  assert.ok(parsed.ok);
  return parsed.configuration;
}

const apply = (text: string): Promise<AppliedConfiguration> => applyConfiguration(postgres, read(text), secrets);
const principalOf = (secret: string): Promise<Principal | null> =>
  findPrincipalByCredentialHash(postgres, hashCredential(pepper, secret));

/** Every row of every table a file writes, but for what may differ by time. */
async function dump(): Promise<unknown> {
  const tables = [
    'providers',
    'models',
    'model_aliases',
    'prices',
    'served_by',
    'routing_policies',
    'organizations',
    'teams',
    'users',
    'memberships',
    'wallets',
    'api_keys',
    'usage_limits',
    'ledger_entries',
    'catalog_version',
  ];
  const rows = await Promise.all(
    tables.map((table) => postgres.query(`SELECT to_jsonb(t) AS row FROM ${table} t ORDER BY to_jsonb(t)::text`)),
  );
  return rows.map((result) => result.rows);
}

describe('applying a file', () => {
  test('the catalog is what the file says', async () => {
    const { catalogVersion } = await apply(FILE);
    const catalog = await loadCatalog(postgres, secrets.box);
    assert.equal(catalog.version, catalogVersion);
    assert.deepEqual([...catalog.byName.keys()], ['sim/large', 'sim/large[1m]', 'sim/latest']);
    const [large, image] = catalog.models;
    assert.deepEqual(large?.servedBy[0], {
      provider: { id: 'sim', baseUrl: 'http://127.0.0.1:1', apiKey: 'sim-key', auth: 'bearer', onDisconnect: 'cancel' },
      providerModel: 'large',
      apis: ['chat_completions'],
      price: { version: '1', input: 1_250_000n, cachedInput: null, cacheWrite: null, output: 10_000_000n, image: null },
    });
    assert.equal(large?.servedBy[1]?.price, null);
    assert.equal(large?.servedBy[1]?.streamUsage, 'request');
    assert.deepEqual(large?.servedBy[1]?.provider.timeouts, { idleMs: 5_000 });
    assert.equal(large?.contextLength, 1_000_000);
    assert.equal(image?.active, false);
  });

  test('a provider by preset is stored written out, is the same when applied again, and loads as what it means', async () => {
    const provider = `
providers:
  - { id: azure, preset: azure-classic, with: { resource: acme }, api_key: k, drop_headers: [X-Stainless-Os], ignores: [max_completion_tokens], errors: [{ status: 400, word: NO_TENANT }] }`;
    await apply(provider);
    assert.equal((await apply(provider)).catalogChanged, false);
    const state = await postgres.transaction((client) => readCatalogState(client, 'provider', 'azure'));
    const template = { path: '/openai/deployments/{model}/{path}' };
    assert.deepEqual(state?.fields, {
      base_url: 'https://acme.openai.azure.com',
      auth: { header: 'api-key' },
      on_disconnect: 'cancel',
      api_key: state?.fields['api_key'],
      preset: 'azure-classic',
      query: { 'api-version': '2024-10-21' },
      drop_headers: ['x-stainless-os'],
      ignores: ['max_completion_tokens'],
      apis: { chat_completions: template, images: template, embeddings: template },
      errors: [{ status: 400, word: 'NO_TENANT' }],
      verify: { path: '/openai/models' },
    });
    await apply(
      `${provider}\nmodels: [{ id: m, served_by: [{ provider: azure, model: m1, apis: [chat_completions] }] }]`,
    );
    const { models } = await loadCatalog(postgres, secrets.box);
    const loaded = models[0]?.servedBy[0]?.provider;
    assert.equal(loaded?.auth, 'api-key');
    assert.deepEqual(loaded.requests, {
      preset: 'azure-classic',
      headers: {},
      query: { 'api-version': '2024-10-21' },
      dropHeaders: ['x-stainless-os'],
      ignores: ['max_completion_tokens'],
      apis: { chat_completions: template, images: template, embeddings: template },
      verifyPath: '/openai/models',
      isVerifiedByToken: false,
      http: 1,
      errors: [{ status: 400, in: 'word', text: 'NO_TENANT' }],
    });
  });

  test('no provider key lies in clear in the database, and another master key does not open it', async () => {
    await apply(FILE);
    const { rows } = await postgres.query<{ text: string }>(
      `SELECT string_agg(encode(api_key_sealed, 'escape'), ' ') AS text FROM providers`,
    );
    assert.doesNotMatch(rows[0]?.text ?? 'sim-key', /sim-key|other-key/);
    await assert.rejects(loadCatalog(postgres, secretsOf(randomBytes(32)).box), /another MASTER_KEY/);
    // A sealed key moved to another provider's row does not open there.
    await postgres.query(
      `UPDATE providers SET api_key_sealed = (SELECT api_key_sealed FROM providers WHERE id = 'sim')
        WHERE id = 'other'`,
    );
    await assert.rejects(loadCatalog(postgres, secrets.box), /sealed secret of provider other is damaged/);
  });

  test('applied twice is applied once: same rows, no new key, no second credit, nothing told', async () => {
    const first = await apply(FILE);
    assert.equal(first.catalogChanged, true);
    assert.deepEqual(
      first.generatedKeys.map(({ organization, name }) => [organization, name]),
      [['acme', 'made']],
    );
    assert.match(first.generatedKeys[0]?.secret ?? '', /^tg-[A-Za-z0-9_-]{43}$/);
    const before = await dump();
    const heard: string[] = [];
    const listener = await listen(heard);
    const second = await apply(FILE);
    assert.deepEqual(second, { ...first, generatedKeys: [], catalogChanged: false, differences: [] });
    assert.deepEqual(await dump(), before);
    await heardNext(heard, () => postgres.query(`SELECT pg_notify('tollgate_changed', 'end')`));
    assert.deepEqual(heard, ['end']);
    await listener.close();
    assert.deepEqual(await findBrokenInvariants(postgres), []);
  });

  test('the audit log has each organization that a file changed, as it was and as it is, without secrets', async () => {
    await apply(FILE);
    await apply(FILE);
    await apply(FILE.replace('teams: [{ slug: research }]', 'teams: [{ slug: research }, { slug: sales }]'));
    const { rows } = await postgres.query<{
      before: { teams: string[] } | null;
      after: { teams: string[]; keys: object[] };
    }>(
      `SELECT before, after FROM audit_log WHERE action = 'configuration.apply' AND after->>'slug' = 'acme'
        ORDER BY created_at, id`,
    );
    assert.deepEqual(
      rows.map(({ before, after }) => [before?.teams ?? null, after.teams]),
      [
        [null, ['research']],
        [['research'], ['research', 'sales']],
      ],
    );
    assert.ok((rows[0]?.after.keys.length ?? 0) > 0);
    assert.doesNotMatch(JSON.stringify(rows), /tg-[A-Za-z0-9_-]{12,}/);
  });

  test('several at once take turns', async () => {
    const results = await Promise.all([1, 2, 3, 4].map(() => apply(FILE)));
    assert.equal(results.flatMap(({ generatedKeys }) => generatedKeys).length, 1);
    assert.deepEqual(
      results.map(({ catalogVersion }) => catalogVersion),
      [1, 1, 1, 1],
    );
    const { rows } = await postgres.query('SELECT balance, leased FROM wallets');
    assert.deepEqual(rows, [{ balance: '25000000000000', leased: '0' }]);
  });

  test(
    'another price is another version; the opening credit stays what it ' + 'was; what the file has not stays',
    async () => {
      await apply(FILE);
      const changed = await apply(
        FILE.replace('"10.00"', '"12.00"')
          .replace('"25.00"', '"99.00"')
          .replace(/ {2}- \{ id: sim\/image.*\n/, ''),
      );
      assert.equal(changed.catalogVersion, 2);
      const { models } = await loadCatalog(postgres, secrets.box);
      assert.deepEqual(
        models.map(({ id }) => id),
        ['sim/large', 'sim/image'],
      );
      assert.notEqual(models[0]?.servedBy[0]?.price?.version, '1');
      assert.equal(models[0]?.servedBy[0]?.price?.output, 12_000_000n);
      const { rows } = await postgres.query('SELECT balance FROM wallets');
      assert.deepEqual(rows, [{ balance: '25000000000000' }]);
      const old = await postgres.query(`SELECT output FROM prices WHERE version = 1`);
      assert.deepEqual(old.rows, [{ output: '10000000' }]);
    },
  );

  test('what a deployment does about usage can change, and its price stays the same version', async () => {
    await apply(FILE);
    const versionOf = async () => (await loadCatalog(postgres, secrets.box)).models[0]?.servedBy[0]?.price?.version;
    const price = await versionOf();
    const { catalogVersion } = await apply(FILE.replace(', stream_usage: request', ''));
    assert.equal(catalogVersion, 2);
    assert.equal((await loadCatalog(postgres, secrets.box)).models[0]?.servedBy[1]?.streamUsage, undefined);
    assert.equal(await versionOf(), price);
  });

  test('an alias can move between models of the file, but not away from a model that is not in it', async () => {
    await apply(FILE);
    const providers = FILE.slice(0, FILE.indexOf('models:'));
    const deployment = 'served_by: [{ provider: sim, model: x, apis: [chat_completions] }]';
    await apply(
      `${providers}models:\n  - { id: sim/large, ${deployment} }\n  - { id: sim/new, aliases: ` +
        `[sim/latest], ${deployment} }\n`,
    );
    assert.equal((await loadCatalog(postgres, secrets.box)).byName.get('sim/latest')?.id, 'sim/new');
    await assert.rejects(apply(`${providers}models:\n  - { id: sim/third, aliases: [sim/latest], ${deployment} }\n`), {
      name: 'ConfigurationConflict',
    });
    await assert.rejects(apply(`${providers}models:\n  - { id: sim/latest, ${deployment} }\n`), {
      name: 'ConfigurationConflict',
    });
    assert.equal((await loadCatalog(postgres, secrets.box)).byName.get('sim/latest')?.id, 'sim/new');
  });

  test('routing policies get a version for each change', async () => {
    const judge =
      '  - { id: sim/judge, kind: evaluation, served_by: [{ provider: sim, model: judge, apis: [systemone] }] }\n';
    const policy = (
      floor: string,
    ): string => `${FILE.replace('organizations:', `${judge}organizations:`)}routing_policies:
  - { name: default, classifier: { model: sim/judge, confidence_floor: ${floor} }, tiers: [{ name: only, description: d, models: [{ id: sim/large }] }] }\n`;
    for (const floor of ['0.5', '0.5', '0.6', '0.5']) await apply(policy(floor));
    const { rows } = await postgres.query(
      `SELECT version, definition -> 'classifier' ->> 'confidence_floor' AS floor
        FROM routing_policies ORDER BY version`,
    );
    assert.deepEqual(rows, [
      { version: 1, floor: '0.5' },
      { version: 2, floor: '0.6' },
      { version: 3, floor: '0.5' },
    ]);
  });

  test('a stored routing policy may go on naming a model that somebody has turned off', async () => {
    const judge =
      '  - { id: sim/judge, kind: evaluation, served_by: [{ provider: sim, model: judge, apis: [systemone] }] }\n';
    const policies = `routing_policies:
  - { name: default, classifier: { model: sim/judge }, tiers: [{ name: only, description: d, models: [{ id: sim/large }] }] }\n`;
    const organization = 'organizations: [{ slug: smart, billing: none, auto_routing: { policy: default } }]\n';
    await apply(FILE.replace('organizations:', `${judge}organizations:`) + policies);
    const start = async (file: string): Promise<void> => {
      const parsed = parseConfigurationFile(file, {}, 'own.yaml', await readStoredNames(postgres));
      assert.deepEqual(parsed.ok ? [] : parsed.errors, []);
      if (parsed.ok) await applyConfiguration(postgres, parsed.configuration, secrets);
    };
    for (const file of [organization, policies]) await start(file);
    await postgres.query(`UPDATE models SET active = false WHERE id = 'sim/large'`);
    for (const file of [organization, policies]) await start(file);
  });
});

describe('keys', () => {
  test('a key stands for its organization, team, user, payer and permissions', async () => {
    const { generatedKeys } = await apply(FILE);
    const principal = await principalOf('tg-known');
    assert.ok(principal);
    const { rows } = await postgres.query(
      `SELECT (SELECT id FROM api_keys WHERE name = 'ci') AS key, o.id AS organization, t.id AS team, u.id AS "user",
        w.id AS wallet
         FROM organizations o, teams t, users u, wallets w`,
    );
    assert.deepEqual(rows[0], {
      key: principal.apiKeyId,
      organization: principal.organizationId,
      team: principal.teamId,
      user: principal.userId,
      wallet: principal.walletId,
    });
    assert.equal(principal.billed, true);
    assert.equal(principal.expiresAtMs, null);
    assert.deepEqual(principal.permissions, ['inference', 'usage.read']);
    assert.deepEqual((await principalOf(generatedKeys[0]?.secret ?? ''))?.permissions, ['inference', 'usage.read']);
    assert.equal(await principalOf('tg-unknown'), null);

    await apply(FILE.replace('billing: prepaid', 'billing: none').replace(/ +opening_credit.*\n/, ''));
    const unbilled = await principalOf('tg-known');
    assert.deepEqual([unbilled?.billed, unbilled?.walletId], [false, null]);
  });

  test('another secret under the same name replaces the key; a revoked key stays revoked', async () => {
    await apply(FILE);
    await apply(FILE.replace('tg-known', 'tg-rotated'));
    assert.equal(await principalOf('tg-known'), null);
    assert.ok(await principalOf('tg-rotated'));
    await apply(FILE);
    assert.equal(await principalOf('tg-known'), null);
    await revokeByName('ci');
    await apply(FILE.replace('tg-known', 'tg-rotated'));
    assert.equal(await principalOf('tg-rotated'), null);
  });
});

test('an own key of a file goes where the file says: with its provider beside it, or where it was first given', async () => {
  const provider = (url: string) => `providers: [{ id: theirs, base_url: "${url}", api_key: sk-operator }]
models: [{ id: m, context_length: 10, served_by: [{ provider: theirs, model: m, apis: [chat_completions] }] }]\n`;
  const key = `organizations:
  - slug: acme
    billing: none
    byok: { enabled: true }
    provider_credentials: [{ kind: theirs, name: ours, secret: sk-own-secret }]\n`;
  const givenFor = async () => {
    const { rows } = await postgres.query<{ origin: string | null }>(
      "SELECT given_for->>'origin' AS origin FROM own_keys",
    );
    return rows.map(({ origin }) => origin);
  };
  await apply(key);
  assert.deepEqual(await givenFor(), [null], 'nobody knows yet where its provider is');
  await apply(provider('https://one.test') + key);
  assert.deepEqual(await givenFor(), ['https://one.test']);
  // Another file, or a platform administrator, has the provider elsewhere: the file of the key does not follow.
  await apply(provider('https://two.test'));
  await apply(key);
  assert.deepEqual(await givenFor(), ['https://one.test']);
  // The secret before this one, whose overlap goes on, was for the place before.
  await postgres.query("UPDATE own_keys SET previous_sealed = secret_sealed, previous_until = now() + interval '1 h'");
  const previous = async () => (await postgres.query('SELECT previous_sealed, previous_until FROM own_keys')).rows;
  await apply(provider('https://one.test') + key);
  assert.notEqual((await previous())[0]?.['previous_sealed'], null);
  await apply(provider('https://two.test') + key);
  assert.deepEqual(await givenFor(), ['https://two.test']);
  assert.deepEqual(await previous(), [{ previous_sealed: null, previous_until: null }]);
  // A key of a former version, and a file that moves its provider before any gateway has bound it.
  await postgres.query('UPDATE own_keys SET given_for = NULL');
  await apply(provider('https://three.test'));
  assert.deepEqual(await givenFor(), ['https://two.test']);
});

describe('beside what is administered', () => {
  test(
    'the key of a file keeps its name, by which the file finds it: an organization does not stop the ' + 'next start',
    async () => {
      await apply(FILE);
      const { id: organizationId } = await acme();
      const ids = (await postgres.query<{ id: string }>('SELECT id FROM api_keys ORDER BY name')).rows.map(
        ({ id }) => id,
      );
      for (const keyId of ids) {
        const renamed = await updateKey(postgres, PERSON, { organizationId, keyId }, { name: 'mine' });
        assert.deepEqual(renamed, { refused: 'conflict', field: 'name', reason: 'is the configuration file’s' });
      }
      assert.deepEqual((await apply(FILE)).generatedKeys, []);
      assert.ok(
        !isRefused(
          await updateKey(
            postgres,
            PERSON,
            { organizationId, keyId: ids[0] ?? '' },
            { name: 'ci', expiresAtMs: 1_900_000_000_000 },
          ),
        ),
      );
    },
  );

  test('another secret under the name of a file’s key is under what was set on the key before', async () => {
    await apply(FILE);
    const { id: organizationId } = await acme();
    const before = await principalOf('tg-known');
    const scope = { kind: 'key', organizationId, keyId: before?.apiKeyId ?? '' } as const;
    for (const [setBy, limit] of [
      ['platform', 7n],
      ['organization', 5n],
    ] as const) {
      assert.ok(
        !isRefused(
          await replaceLimits(postgres, PERSON, scope, { setBy, limits: [{ kind: 'concurrent_requests', limit }] }),
        ),
      );
      assert.ok(
        !isRefused(
          await setModelAccess(postgres, PERSON, scope, { setBy, models: setBy === 'platform' ? ['sim/large'] : [] }),
        ),
      );
    }
    const limited = await principalOf('tg-known');
    await apply(FILE.replace('tg-known', 'tg-rotated'));
    const after = await principalOf('tg-rotated');
    assert.notEqual(after?.apiKeyId, scope.keyId);
    assert.deepEqual([after?.limits, after?.allowedModels], [limited?.limits, new Set()]);
    assert.deepEqual(await getModelAccess(postgres, { ...scope, keyId: after?.apiKeyId ?? '' }), {
      allowedModels: [],
      allowedModelsSetBy: { platform: ['sim/large'], organization: [] },
    });
  });

  test('a file may name the next owner after the last one, and may not leave none', async () => {
    await apply(FILE);
    const demoted = FILE.replace('email: a@acme.test, role: owner', 'email: a@acme.test, role: member');
    assert.notEqual(demoted, FILE);
    await assert.rejects(apply(demoted), /it takes the role of owner from the last one/);
    await apply(
      demoted
        .replace('users: [', 'users: [{ email: z@acme.test, role: member }, ')
        .replace(/(email: a@acme\.test[^}]*\})/, '$1, { email: y@acme.test, role: owner }'),
    );
    const { rows } = await postgres.query<{ email: string }>(
      `SELECT u.email FROM memberships m JOIN users u ON u.id = m.user_id
        WHERE m.role = 'owner' AND m.team_id IS NULL ORDER BY 1`,
    );
    assert.deepEqual(rows, [{ email: 'y@acme.test' }]);
  });

  test('a secret that was rotated out does not come back with the file that has it', async () => {
    await apply(FILE);
    const organization = await findOrganizationBySlug(postgres, 'acme');
    assert.ok(!isRefused(organization));
    const key = await findKeyByNameOrId(postgres, { organizationId: organization.id, key: 'ci' });
    assert.ok(!isRefused(key));
    const name = { organizationId: organization.id, keyId: key.id };
    const rotated = await rotateKey(postgres, secrets, { kind: 'cli', userId: null, label: 'test' }, name, {
      overlapSeconds: 0,
    });
    assert.ok(!isRefused(rotated));
    await apply(FILE);
    assert.equal((await principalOf(rotated.secret))?.apiKeyId, key.id);
    // Still found, and expired: the caller refuses it.
    assert.ok(((await principalOf('tg-known'))?.expiresAtMs ?? Infinity) < Date.now());
  });
});

const PERSON = { kind: 'token', userId: null, label: 'test' } as const;

async function acme(): Promise<Organization> {
  const organization = await findOrganizationBySlug(postgres, 'acme');
  assert.ok(!isRefused(organization));
  return organization as Organization;
}

async function revokeByName(name: string): Promise<void> {
  const organization = await acme();
  const key = await findKeyByNameOrId(postgres, { organizationId: organization.id, key: name });
  assert.ok(!isRefused(key));
  const revoked = await revokeKey(
    postgres,
    { kind: 'cli', userId: null, label: 'test' },
    { organizationId: organization.id, keyId: key.id },
  );
  assert.ok(!isRefused(revoked));
}

describe('limits of a file', () => {
  test(
    'are the platform’s: what the organization sets stays beside them, and a file that says nothing of ' +
      'limits lifts none',
    async () => {
      const shown = async (): Promise<string[]> => {
        const { rows } = await postgres.query<{ set_by: string; kind: string; amount: string }>(
          'SELECT set_by, kind, amount::text FROM usage_limits ORDER BY set_by DESC, kind',
        );
        return rows.map(({ set_by, kind, amount }) => `${set_by} ${kind} ${amount}`);
      };
      const platforms = ['platform budget 100000000000000', 'platform requests_per_minute 600'];
      const organizations = 'organization requests_per_minute 5';
      await apply(FILE);
      const scope = { kind: 'organization', organizationId: (await acme()).id } as const;
      const own = { setBy: 'organization', limits: [{ kind: 'requests_per_minute', limit: 5n }] } as const;
      assert.ok(!isRefused(await replaceLimits(postgres, PERSON, scope, own)));
      const before = await dump();
      await apply(FILE);
      assert.deepEqual(await dump(), before);
      assert.deepEqual(await shown(), [...platforms, organizations]);

      const silent = FILE.replace(/^    limits: .*\n/m, '');
      assert.notEqual(silent, FILE);
      await apply(silent);
      assert.deepEqual(await dump(), before);
      const none = FILE.replace(/limits: .*/, 'limits: []');
      await apply(none);
      assert.deepEqual(await shown(), [...platforms, organizations]);
      await applyConfiguration(postgres, read(none), secrets, { prune: true });
      assert.deepEqual(await shown(), [organizations]);
      await apply(FILE);
      assert.deepEqual(await shown(), [...platforms, organizations]);
    },
  );
});

describe('listening', () => {
  test(
    'a change is told with the id of whose credentials it is about, or as a catalog change; a new key is ' +
      'told to nobody',
    async () => {
      const heard: string[] = [];
      const listener = await listen(heard);
      await apply(FILE);
      const key = await principalOf('tg-known');
      await revokeByName('ci');
      await waitFor(
        'word of the key',
        () => heard.at(-1),
        (last) => last === `principals:${key?.apiKeyId}`,
      );
      assert.ok(heard.includes('catalog') && heard.includes(`principals:${key?.organizationId}`));
      assert.equal(heard.filter((payload) => payload === `principals:${key?.apiKeyId}`).length, 1);
      await listener.close();
    },
  );

  test('a changed limit is told, since principals are remembered with it, and stays the same limit', async () => {
    await apply(FILE);
    const idsOf = async (): Promise<unknown[]> =>
      (await postgres.query('SELECT id, kind, model FROM usage_limits ORDER BY kind, model')).rows;
    const before = await idsOf();
    const heard: string[] = [];
    const listener = await listen(heard);
    await heardNext(heard, () => apply(FILE.replace('limit: 600', 'limit: 500').replace('"100.00"', '"90.00"')));
    assert.deepEqual(heard, [`principals:${(await principalOf('tg-known'))?.organizationId}`]);
    assert.deepEqual(await idsOf(), before);
    await heardNext(heard, () => apply(FILE.replace('limit: 600', 'limit: 600, model: sim/large')));
    const [budget, requests] = (await idsOf()) as { id: string; model: string | null }[];
    assert.deepEqual(budget, before[0]);
    assert.equal(requests?.model, 'sim/large');
    await listener.close();
  });

  test('a broken connection is replaced, and the owner is told that something may have been missed', async () => {
    const heard: string[] = [];
    let reconnected = (): void => {};
    const again = new Promise<void>((resolve) => {
      reconnected = resolve;
    });
    const listener = await listen(heard, () => reconnected());
    await postgres.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tollgate listener'
        AND datname = current_database()`,
    );
    await again;
    await heardNext(heard, () => postgres.query(`SELECT pg_notify('tollgate_changed', 'after')`));
    assert.deepEqual(heard, ['after']);
    await listener.close();
  });

  test('is closed where its connection has fallen silent, too', async () => {
    const link = await startInterruptibleLink(url);
    const listener = createListener({ url: link.url, log: silentLog, channels: {}, onReconnect: () => {} });
    await listener.listening;
    link.silence();
    await listener.close();
    await link.cut();
  });
});

async function listen(heard: string[], onReconnect: () => void = () => {}): Promise<Listener> {
  const listener = createListener({
    url,
    log: silentLog,
    channels: { tollgate_changed: (payload) => void heard.push(payload) },
    onReconnect,
  });
  await listener.listening;
  return listener;
}

/** Does something and waits until that many more notifications were heard. */
async function heardNext(heard: string[], act: () => Promise<unknown>, count = 1): Promise<void> {
  const wanted = heard.length + count;
  await act();
  await waitFor(
    'a notification',
    () => heard.length,
    (length) => length >= wanted,
  );
}

const DEMO = readFileSync(new URL('../../deploy/demo.yaml', import.meta.url), 'utf8').replace(
  '${SIMULATED_PROVIDER_URL}',
  'http://127.0.0.1:18999',
);
/** As an owner may write it who knows nothing of the demo. */
const LIKE_THE_DEMO = `
providers: [{ id: sim, base_url: "http://127.0.0.1:18999", api_key: my-own-key }]
models: [{ id: sim/small, context_length: 9, max_output_tokens: 9, served_by: [{ provider: sim, model: m, apis: [chat_completions] }] }]
organizations: [{ slug: demo, billing: none }]
`;

describe('what a start without a file takes for the demo', () => {
  const IS_DEMO = { isDemo: true, simulatedProviderPort: '18999' };
  const IS_KEPT = { isDemo: false, simulatedProviderPort: '18999' };
  const IS_OWN = { isDemo: false, simulatedProviderPort: null };

  /** As a start of the demo leaves it. */
  async function makeDemo(context: TestContext): Promise<string> {
    const dataDirectory = temporaryDirectory(context);
    const secret = keepDemoKey(dataDirectory);
    await apply(DEMO.replace('name: demo, user', `name: demo, secret: ${secret}, user`));
    return dataDirectory;
  }
  const find = (dataDirectory: string) => findDemo(postgres, { dataDirectory, opened: secrets });

  test('an installation that has nothing', async (context) => {
    assert.deepEqual(await find(temporaryDirectory(context)), { isDemo: true, simulatedProviderPort: null });
  });

  test('a demo, also after its key was rotated and revoked; such a key is not shown any more', async (context) => {
    const dataDirectory = await makeDemo(context);
    const isShown = () =>
      isUsableKey(postgres, secrets, { secret: keepDemoKey(dataDirectory), nowMs: systemClock.nowMs() });
    assert.deepEqual(await find(dataDirectory), IS_DEMO);
    assert.equal(await isShown(), true);
    const organization = await findOrganizationBySlug(postgres, 'demo');
    assert.ok(!isRefused(organization));
    const key = await findKeyByNameOrId(postgres, { organizationId: organization.id, key: 'demo' });
    assert.ok(!isRefused(key));
    const reference = { organizationId: organization.id, keyId: key.id };
    const actor = { kind: 'cli', userId: null, label: 'test' } as const;
    assert.ok(!isRefused(await rotateKey(postgres, secrets, actor, reference, { overlapSeconds: 0 })));
    assert.deepEqual(await find(dataDirectory), IS_DEMO);
    assert.equal(await isShown(), false);
    assert.ok(!isRefused(await revokeKey(postgres, actor, reference)));
    assert.deepEqual(await find(dataDirectory), IS_DEMO);
  });

  test('a key that cannot be read is told', async (context) => {
    await makeDemo(context);
    const other = temporaryDirectory(context);
    mkdirSync(join(other, DEMO_KEY_FILE));
    await assert.rejects(
      find(other),
      (fault) => fault instanceof StartFault && /cannot read .*EISDIR/.test(fault.message),
    );
  });

  test('never one of another data directory, whatever key lies there', async (context) => {
    await makeDemo(context);
    const other = temporaryDirectory(context);
    assert.deepEqual(await find(other), IS_OWN);
    keepDemoKey(other);
    assert.deepEqual(await find(other), IS_OWN);
  });

  for (const [what, file] of [
    ['all its names are those of the demo', LIKE_THE_DEMO],
    ['nothing but a provider', LIKE_THE_DEMO.split('\n').slice(0, 2).join('\n')],
    ['the demo’s file, applied by its owner', DEMO],
  ] as const)
    test(`never an installation of one's own: ${what}`, async (context) => {
      const dataDirectory = temporaryDirectory(context);
      await apply(file);
      assert.deepEqual(await find(dataDirectory), IS_OWN);
      // A start of the demo was cut once before it stored anything.
      keepDemoKey(dataDirectory);
      assert.deepEqual(await find(dataDirectory), IS_OWN);
    });

  for (const [what, file, expected] of [
    ['an organization', 'organizations: [{ slug: acme, billing: none }]', IS_KEPT],
    ['a provider', 'providers: [{ id: other, base_url: "https://other.test/api", api_key: other-key }]', IS_KEPT],
    ['a model', LIKE_THE_DEMO.replaceAll(/^(?!models).*$/gm, '').replace('sim/small', 'mine/small'), IS_KEPT],
    ['another key of its provider', DEMO.replace('simulated-provider-key', 'my-own-key'), IS_OWN],
    ['another address of its provider', DEMO.replace('http://127.0.0.1:18999', 'https://sim.test'), IS_OWN],
  ] as const)
    test(`a demo to which its owner gave ${what} goes on as it is`, async (context) => {
      const dataDirectory = await makeDemo(context);
      const parsed = parseConfigurationFile(file, {}, 'own.yaml', await readStoredNames(postgres));
      assert.deepEqual(parsed.ok ? [] : parsed.errors, []);
      assert.ok(parsed.ok);
      await applyConfiguration(postgres, parsed.configuration, secrets);
      assert.deepEqual(await find(dataDirectory), expected);
    });
});
