// What applying a configuration file changes, and what it leaves alone: everything that the file does not mention.
// Removal is said: by --prune, or by a command. A dry run tells the difference and changes nothing.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { applyCommand } from '../../src/commands/apply.ts';
import type { Command } from '../../src/commands/command/command.ts';
import { keyCommand } from '../../src/commands/key.ts';
import { limitCommand } from '../../src/commands/limit.ts';
import { memberCommand } from '../../src/commands/member.ts';
import { modelCommand } from '../../src/commands/model.ts';
import { orgCommand } from '../../src/commands/org.ts';
import { providerCommand } from '../../src/commands/provider.ts';
import { loadCatalog } from '../../src/storage/postgres/catalog/catalog-store.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { getPolicy, setOrganizationRouting } from '../../src/storage/postgres/routing/policies.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';

const masterKey = randomBytes(32);
const directory = mkdtempSync(join(tmpdir(), 'tollgate-apply-'));
const file = join(directory, 'tollgate.yaml');
let server: TestPostgres;
let postgres: Postgres;
let url: string;
before(async () => {
  server = await startTestPostgres();
});
beforeEach(async () => {
  await postgres?.close();
  url = await server.createDatabase();
  postgres = createPostgres({ url, log: silentLog });
});
after(async () => {
  await postgres.close();
  await server.stop();
  rmSync(directory, { recursive: true });
});

const PROVIDERS = `providers:
  - { id: sim, base_url: "http://127.0.0.1:1", auth: none }
  - { id: spare, base_url: "http://127.0.0.1:2", api_key: spare-key-canary }
`;
const MODELS = `models:
  - { id: sim/large, aliases: [sim/latest], context_length: 2000, served_by: [{ provider: sim, model: large, apis: [chat_completions], price: { input: "1.25", output: "10.00" } }] }
  - { id: sim/other, context_length: 1000, served_by: [{ provider: spare, model: other, apis: [chat_completions] }] }
  - { id: judge, kind: evaluation, context_length: 500, served_by: [{ provider: sim, model: judge-1, apis: [systemone], price: { input: "0.04" } }] }
`;
const POLICIES = `routing_policies:
  - { name: default, classifier: { model: judge }, tiers: [{ name: only, description: d, models: [{ id: sim/large }] }] }
  - { name: second, classifier: { model: judge }, tiers: [{ name: only, description: d, models: [{ id: sim/latest }] }] }
`;
const ORGANIZATIONS = `organizations:
  - slug: acme
    display_name: Acme Inc.
    billing: none
    auto_routing: { policy: default }
    limits: [{ kind: requests_per_minute, limit: 600 }]
    users: [{ email: ann@acme.test, role: owner }, { email: bo@acme.test }]
    keys: [{ name: ci, secret: tg-ci-0123456789 }, { name: old, secret: tg-old-0123456789 }]
`;
const FILE = PROVIDERS + MODELS + POLICIES + ORGANIZATIONS;

/** The lines that a command printed. */
async function run(command: Command, ...args: readonly string[]): Promise<readonly string[]> {
  const printed: string[] = [];
  const environment = { DATABASE_URL: url, MASTER_KEY: masterKey.toString('base64'), USER: 'operator' };
  assert.equal(await command.run(args, { environment, print: (text) => void printed.push(...text.split('\n')) }), 0);
  return printed;
}

async function apply(text: string, ...options: readonly string[]): Promise<readonly string[]> {
  writeFileSync(file, text);
  return run(applyCommand, file, ...options);
}

const limits = async (): Promise<readonly string[]> => run(limitCommand, 'list', '--organization', 'acme');
const organizationId = async (): Promise<string> =>
  (await postgres.query<{ id: string }>("SELECT id FROM organizations WHERE slug = 'acme'")).rows[0]?.id ?? '';
const modelIds = async (): Promise<readonly string[]> =>
  (await loadCatalog(postgres, secretsOf(masterKey).box)).models.filter(({ active }) => active).map(({ id }) => id);
const OPERATOR = { kind: 'cli', userId: null, label: 'test' } as const;

/** Every row that a file or a command can write. */
async function dump(): Promise<unknown> {
  const tables = ['providers', 'models', 'model_aliases', 'served_by', 'prices', 'routing_policies', 'organizations'];
  tables.push('teams', 'memberships', 'users', 'api_keys', 'usage_limits', 'catalog_version', 'audit_log', 'wallets');
  const read = tables.map((table) => postgres.query(`SELECT to_jsonb(t) AS row FROM ${table} t ORDER BY 1`));
  return (await Promise.all(read)).map(({ rows }) => rows);
}

describe('what a file does not mention stays', () => {
  /** What somebody changed by another way than the file, and how it is read back. */
  const CASES: Readonly<Record<string, { change: () => Promise<unknown>; read: () => Promise<unknown> }>> = {
    'a limit that a command set beside those of the file': {
      change: () =>
        run(limitCommand, 'set', '--organization', 'acme', '--kind', 'tokens_per_minute', '--limit', '70000'),
      read: limits,
    },
    'a policy that an organization was given, where its entry names none': {
      change: async () => setOrganizationRouting(postgres, OPERATOR, await organizationId(), 'second'),
      read: () => postgres.query('SELECT auto_routing_policy FROM organizations'),
    },
    'the name of an organization, where its entry has none': {
      change: () => run(orgCommand, 'update', '--slug', 'acme', '--name', 'Renamed'),
      read: () => postgres.query('SELECT display_name FROM organizations'),
    },
    'whether an organization is billed, where its entry does not say': {
      change: () => run(orgCommand, 'update', '--slug', 'acme', '--billing', 'prepaid'),
      read: () => postgres.query('SELECT billing FROM organizations'),
    },
    'the role of a member, where its entry has none': {
      change: () => run(memberCommand, 'role', '--organization', 'acme', '--user', 'bo@acme.test', '--role', 'admin'),
      read: () => run(memberCommand, 'list', '--organization', 'acme'),
    },
    'a model that is switched off, where its entry does not say whether it is': {
      change: () => apply(PROVIDERS + MODELS.replace('{ id: sim/large,', '{ id: sim/large, active: false,')),
      read: modelIds,
    },
    'a model that another file brought': {
      change: () => apply(PROVIDERS + MODELS.replaceAll('sim/o', 'sim/an-o')),
      read: modelIds,
    },
    'a revoked key': {
      change: () => run(keyCommand, 'revoke', '--organization', 'acme', '--name', 'ci'),
      read: () => postgres.query('SELECT name, revoked_at FROM api_keys ORDER BY name'),
    },
  };
  for (const [what, { change, read }] of Object.entries(CASES)) {
    test(what, async () => {
      await apply(FILE);
      const silent = FILE.replace(/ {4}(display_name|billing|auto_routing):.*\n/g, '');
      const before = await read();
      await change();
      const changed = await read();
      assert.notDeepEqual(changed, before);
      await apply(silent);
      assert.deepEqual(await read(), changed);
    });
  }

  test('what a file does mention is as it says', async () => {
    await apply(FILE);
    await run(limitCommand, 'set', '--organization', 'acme', '--kind', 'requests_per_minute', '--limit', '1');
    await setOrganizationRouting(postgres, OPERATOR, await organizationId(), 'second');
    await apply(FILE);
    assert.deepEqual(await limits(), ['requests_per_minute\t600\tset by platform']);
    const { rows } = await postgres.query('SELECT auto_routing_policy AS policy FROM organizations');
    assert.deepEqual(rows, [{ policy: 'default' }]);
    await apply(FILE.replace('policy: default', 'policy: null'));
    const off = await postgres.query('SELECT auto_routing_policy AS policy FROM organizations');
    assert.deepEqual(off.rows, [{ policy: null }]);
  });

  test('an empty list of limits removes none: removal is said', async () => {
    await apply(FILE);
    const none = FILE.replace(/limits: .*/, 'limits: []');
    await apply(none);
    assert.equal((await limits()).length, 1);
    await apply(none, '--prune');
    assert.deepEqual(await limits(), ['no limits']);
  });
});

describe('a file may refer to what the installation has', () => {
  const CASES: Readonly<Record<string, string>> = {
    'a provider, for a model':
      'models: [{ id: sim/added, context_length: 1, served_by: [{ provider: sim, model: a, apis: [messages] }] }]\n',
    'models, for a policy': POLICIES.replace('name: second', 'name: third'),
    'a policy, for an organization':
      'organizations: [{ slug: new, billing: none, auto_routing: { policy: second } }]\n',
    'a model, for a limit':
      'organizations: [{ slug: new, billing: none, limits: [{ kind: tokens_per_minute, limit: 1, model: sim/large }] }]\n',
    'a member, for a key':
      'organizations: [{ slug: acme, billing: none, keys: [{ name: bos, user: BO@acme.test }] }]\n',
    'an organization, and whether it is billed': 'organizations: [{ slug: acme, teams: [{ slug: research }] }]\n',
  };
  for (const [what, text] of Object.entries(CASES)) {
    test(what, async () => {
      const fresh = apply(text);
      await assert.rejects(
        fresh,
        /there is no (provider|model|routing policy|user) "[^"]+" in this file or the inst|billing: is missing/,
      );
      await apply(FILE);
      await apply(text);
      assert.deepEqual(await apply(text, '--dry-run'), ['nothing is applied (--dry-run): no difference']);
    });
  }

  test('a stored policy that a billed organization could not pay for is refused', async () => {
    await apply(FILE.replace('models: [{ id: sim/latest }]', 'models: [{ id: sim/other }]'));
    await assert.rejects(
      apply('organizations: [{ slug: new, billing: prepaid, auto_routing: { policy: second } }]'),
      /organization "new": the routing policy cannot be used: .*needs a model with a price/,
    );
  });
});

test('a detector of a guardrail policy at another address needs its secret again', async () => {
  const policy = (url: string, secret: string) => `guardrails:
  - name: names
    rules: [{ id: people, external: ner, stage: input, action: flag }]
    external: { ner: { shape: webhook, url: "${url}"${secret} } }
`;
  await apply(policy('https://vendor.test/scan', ', secret: sk-canary'));
  await apply(policy('https://vendor.test/other', ''));
  await assert.rejects(
    apply(policy('https://elsewhere.test/scan', '')),
    /guardrail policy "names": external.ner.secret is needed: the stored one is for another address/,
  );
  await apply(policy('https://elsewhere.test/scan', ', secret: sk-other'));
});

describe('--dry-run', () => {
  test('prints the difference and changes nothing', async () => {
    await apply(FILE);
    const before = await dump();
    const changed = FILE.replace('"10.00"', '"12.50"')
      .replace('limit: 600', 'limit: 500')
      .replace('spare-key-canary', 'other-key-canary')
      .replace('{ name: ci,', '{ name: made }, { name: ci,')
      .replace(
        'models:',
        'models:\n  - { id: sim/new, context_length: 100, served_by: [{ provider: sim, model: n, apis: [messages] }] }',
      );
    const printed = await apply(changed, '--dry-run');
    assert.deepEqual(await dump(), before);
    const text = printed.join('\n');
    for (const expected of [
      /^~ provider spare$/m,
      /^ {4}api_key: .+ -> .+$/m,
      /^~ model sim\/large$/m,
      /"output":"10"/,
      /"output":"12\.5"/,
      /^\+ model sim\/new$/m,
      /^~ organization acme$/m,
      /^ {4}limits: - \{.*"limit":"600".*\}$/m,
      /^ {4}limits: \+ \{.*"limit":"500".*\}$/m,
      /^ {4}keys: \+ \{.*"name":"made".*\}$/m,
      /^nothing is applied \(--dry-run\): 4 differences$/m,
    ])
      assert.match(text, expected);
    assert.doesNotMatch(text, /canary|shown only now/);
    assert.deepEqual(await apply(FILE, '--dry-run'), ['nothing is applied (--dry-run): no difference']);
  });

  test('says what a prune would remove', async () => {
    await apply(FILE);
    const printed = await apply(FILE.replace(/ {2}- \{ id: sim\/other.*\n/, ''), '--dry-run', '--prune');
    assert.deepEqual(printed, ['- model sim/other', 'nothing is applied (--dry-run): 1 difference']);
    assert.ok((await modelIds()).includes('sim/other'));
  });

  test('tells a contradiction as applying does', async () => {
    await apply(FILE);
    const clash = `${PROVIDERS}models:\n  - { id: sim/third, aliases: [sim/latest], served_by: [{ provider: sim, model: x, apis: [messages] }] }\n`;
    await assert.rejects(apply(clash, '--dry-run'), /the alias "sim\/latest" of model "sim\/third" belongs to another/);
  });
});

describe('--prune', () => {
  test('removes what the sections of the file no longer have', async () => {
    await apply(FILE);
    await run(limitCommand, 'set', '--organization', 'acme', '--kind', 'tokens_per_minute', '--limit', '70000');
    await run(keyCommand, 'create', '--organization', 'acme', '--name', 'by-command');
    const less = FILE.replace(/ {2}- \{ id: (spare|sim\/other).*\n/g, '')
      .replace(/ {2}- \{ name: second.*\n/, '')
      .replace(', { name: old, secret: tg-old-0123456789 }', '')
      .replace(', { email: bo@acme.test }', '');
    await apply(less);
    assert.deepEqual(await modelIds(), ['sim/large', 'sim/other', 'judge']);
    await apply(less, '--prune');
    const catalog = await loadCatalog(postgres, secretsOf(masterKey).box);
    assert.deepEqual(
      [catalog.models.map(({ id }) => id), [...catalog.routing.policies.keys()]],
      [['sim/large', 'judge'], ['default']],
    );
    assert.deepEqual(await run(providerCommand, 'list'), ['sim\thttp://127.0.0.1:1\tno key']);
    assert.deepEqual(await limits(), ['requests_per_minute\t600\tset by platform']);
    // Keys that did not come from a file, and people, are removed by their own commands.
    const { rows } = await postgres.query('SELECT name FROM api_keys WHERE revoked_at IS NULL ORDER BY name');
    assert.deepEqual(rows, [{ name: 'by-command' }, { name: 'ci' }]);
    assert.equal((await run(memberCommand, 'list', '--organization', 'acme')).length, 2);
    // A removed policy that comes back has the next version, since records name the earlier one.
    await apply(FILE);
    assert.equal(((await getPolicy(postgres, 'second')) as { version: number }).version, 3);
  });

  test('leaves alone the sections that the file does not have', async () => {
    await apply(FILE);
    await apply(PROVIDERS, '--prune');
    assert.deepEqual(await modelIds(), ['sim/large', 'sim/other', 'judge']);
    assert.equal((await limits()).length, 1);
  });

  test('an alias can move from a model that is removed to one that is new', async () => {
    await apply(FILE);
    await apply(FILE.replaceAll('id: sim/large', 'id: sim/larger'), '--prune');
    assert.equal((await loadCatalog(postgres, secretsOf(masterKey).box)).byName.get('sim/latest')?.id, 'sim/larger');
  });
});

describe('removal by command', () => {
  test('of a model', async () => {
    await apply(FILE);
    assert.deepEqual(await run(modelCommand, 'remove', 'sim/other'), ['model "sim/other" is removed']);
    assert.deepEqual(await modelIds(), ['sim/large', 'judge']);
    await assert.rejects(run(modelCommand, 'remove', 'sim/other'), /there is no model "sim\/other"/);
    await assert.rejects(
      run(modelCommand, 'remove', 'sim/large'),
      /model "sim\/large": the routing policy "default" names it/,
    );
    assert.deepEqual(await run(modelCommand, 'list'), [
      'sim/large\ttext\tactive\tsim (large)',
      'judge\tevaluation\tactive\tsim (judge-1)',
    ]);
  });

  test('of a provider', async () => {
    await apply(FILE);
    await assert.rejects(run(providerCommand, 'remove', 'spare'), /provider "spare": the model "sim\/other" is served/);
    await run(modelCommand, 'remove', 'sim/other');
    assert.deepEqual(await run(providerCommand, 'remove', 'spare'), ['provider "spare" is removed']);
    await assert.rejects(run(providerCommand, 'remove', 'spare'), /there is no provider "spare"/);
  });

  test('is in the audit log, with what was there', async () => {
    await apply(FILE);
    await run(modelCommand, 'remove', 'sim/other');
    const { rows } = await postgres.query<{ before: Record<string, unknown>; after: unknown; actor_label: string }>(
      "SELECT before, after, actor_label FROM audit_log WHERE action = 'model.remove' AND target_id = 'sim/other'",
    );
    assert.equal(rows.length, 1);
    assert.deepEqual([rows[0]?.before['context_length'], rows[0]?.after], [1000, null]);
    assert.equal(rows[0]?.actor_label, 'command line: operator');
  });
});

describe('an empty file', () => {
  for (const text of ['', '\n', '# nothing\n', '{}\n', '---\n'])
    test(`is an error: ${JSON.stringify(text)}`, async () => {
      await assert.rejects(apply(text), /tollgate\.yaml:1: the file is empty: it has none of providers, models, /);
    });
});
