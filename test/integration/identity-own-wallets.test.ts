// Whose wallet a key may charge: a member's own only by that member's will, or the operator's. Below HTTP, on a real
// Postgres.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { parseConfigurationFile } from '../../src/domain/configuration/parse-configuration-file.ts';
import type { Actor } from '../../src/domain/identity/actor.ts';
import type { KeyWithSecret } from '../../src/domain/identity/api-key.ts';
import { hashCredential } from '../../src/domain/identity/key-hash.ts';
import { applyConfiguration } from '../../src/storage/postgres/apply/apply-configuration.ts';
import { findPrincipalByCredentialHash } from '../../src/storage/postgres/catalog/credentials.ts';
import { listAudit } from '../../src/storage/postgres/identity/audit.ts';
import {
  createKey,
  findKeyByNameOrId,
  getKey,
  listKeys,
  revokeKey,
  updateKey,
} from '../../src/storage/postgres/identity/keys/keys.ts';
import { rotateKey } from '../../src/storage/postgres/identity/keys/rotate-key.ts';
import { addMember } from '../../src/storage/postgres/identity/members.ts';
import { setModelAccess } from '../../src/storage/postgres/identity/model-access.ts';
import { createOrganization } from '../../src/storage/postgres/identity/organizations.ts';
import { addPlatformAdministrator } from '../../src/storage/postgres/identity/platform-administrators.ts';
import { createTeam } from '../../src/storage/postgres/identity/teams.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { done, refusal } from '../support/refused.ts';

const secrets = secretsOf(randomBytes(32));
const OPERATOR: Actor = { kind: 'cli', userId: null, label: 'test' };
const BOOTSTRAP: Actor = { kind: 'bootstrap', userId: null, label: 'ADMIN_TOKEN' };
const personOf = (userId: string): Actor => ({ kind: 'token', userId, label: 'person' });

let server: TestPostgres;
let postgres: Postgres;
before(async () => {
  server = await startTestPostgres();
});
after(() => server.stop());
beforeEach(async () => {
  postgres = createPostgres({ url: await server.createDatabase(), log: silentLog });
});
afterEach(() => postgres.close());

interface People {
  readonly organizationId: string;
  readonly owner: string;
  readonly admin: string;
  readonly teamOwner: string;
  readonly member: string;
  readonly platform: string;
}

async function makePeople(): Promise<People> {
  const { id: organizationId } = done(
    await createOrganization(postgres, OPERATOR, { slug: 'acme', billing: 'prepaid' }),
  );
  const scope = { organizationId, teamId: null };
  const add = async (name: string, role: 'owner' | 'admin' | 'member') =>
    done(await addMember(postgres, OPERATOR, scope, { email: `${name}@acme.test`, role }));
  const [owner, admin, teamOwner, member] = [
    await add('owner', 'owner'),
    await add('admin', 'admin'),
    await add('lead', 'member'),
    await add('member', 'member'),
  ];
  const team = done(await createTeam(postgres, OPERATOR, { organizationId, slug: 'research' }));
  for (const [email, role] of [
    ['lead@acme.test', 'owner'],
    ['member@acme.test', 'member'],
  ] as const) {
    done(await addMember(postgres, OPERATOR, { organizationId, teamId: team.id }, { email, role }));
  }
  const platform = done(await addPlatformAdministrator(postgres, OPERATOR, 'root@platform.test'));
  return {
    organizationId,
    owner: owner.userId,
    admin: admin.userId,
    teamOwner: teamOwner.userId,
    member: member.userId,
    platform: platform.userId,
  };
}

/** A member's, charged to the member's own wallet. */
const makeOwnKey = async ({
  organizationId,
  member,
}: Pick<People, 'organizationId' | 'member'>): Promise<KeyWithSecret> =>
  done(
    await createKey(postgres, secrets, personOf(member), {
      organizationId,
      name: 'own',
      userId: member,
      payer: 'user',
    }),
  );

const wallets = async (): Promise<number> =>
  (await postgres.query('SELECT FROM wallets WHERE user_id IS NOT NULL')).rowCount;
const auditLength = async (organizationId: string): Promise<number> =>
  done(await listAudit(postgres, { organizationId, limit: 200 })).items.length;
const walletOf = async (secret: string): Promise<string | null> =>
  (await findPrincipalByCredentialHash(postgres, hashCredential(secrets.pepper, secret)))?.walletId ?? null;

describe('a key that its user pays for', () => {
  test('is made by that user or the operator; by nobody else, and then nothing is made', async () => {
    const people = await makePeople();
    const { organizationId, member } = people;
    const order = (name: string) => ({ organizationId, name, userId: member, payer: 'user' }) as const;
    const before = await auditLength(organizationId);
    for (const who of ['owner', 'admin', 'teamOwner'] as const) {
      assert.equal(
        await refusal(createKey(postgres, secrets, personOf(people[who]), order(who))),
        'permission_denied',
        who,
      );
    }
    // Whether somebody is a member is not told by the way.
    const absent = { ...order('absent'), userId: randomUUID() };
    assert.equal(await refusal(createKey(postgres, secrets, personOf(people.admin), absent)), 'permission_denied');
    assert.deepEqual(done(await listKeys(postgres, { organizationId })).items, []);
    assert.deepEqual([await wallets(), await auditLength(organizationId)], [0, before]);

    for (const [name, actor] of Object.entries({
      own: personOf(member),
      platform: personOf(people.platform),
      cli: OPERATOR,
      bootstrap: BOOTSTRAP,
    })) {
      const made = done(await createKey(postgres, secrets, actor, order(name)));
      assert.deepEqual([made.payer, made.userId], ['user', member], name);
    }
    assert.deepEqual([await wallets(), await auditLength(organizationId)], [1, before + 4]);
    // An administrator is a user too, and the organization's own wallet is an administrator's to use.
    done(
      await createKey(postgres, secrets, personOf(people.admin), {
        organizationId,
        name: 'mine',
        userId: people.admin,
        payer: 'user',
      }),
    );
    done(
      await createKey(postgres, secrets, personOf(people.admin), {
        organizationId,
        name: 'theirs',
        userId: member,
        payer: 'organization',
      }),
    );
  });

  test('is rotated and changed by who may make it; an administrator may end it', async () => {
    const people = await makePeople();
    const { organizationId, member } = people;
    const made = await makeOwnKey(people);
    const name = { organizationId, keyId: made.id };
    const { secret: _, ...shown } = made;
    for (const who of ['owner', 'admin', 'teamOwner'] as const) {
      const actor = personOf(people[who]);
      assert.equal(
        await refusal(rotateKey(postgres, secrets, actor, name, { overlapSeconds: 0 })),
        'permission_denied',
        who,
      );
      assert.equal(await refusal(updateKey(postgres, actor, name, { expiresAtMs: null })), 'permission_denied', who);
      assert.equal(
        await refusal(
          setModelAccess(postgres, actor, { kind: 'key', ...name }, { setBy: 'organization', models: null }),
        ),
        'permission_denied',
        who,
      );
    }
    assert.deepEqual(await getKey(postgres, name), shown);
    done(await updateKey(postgres, personOf(member), name, { name: 'laptop' }));
    const rotated = done(await rotateKey(postgres, secrets, personOf(people.platform), name, { overlapSeconds: 0 }));
    assert.equal(await walletOf(rotated.secret), await walletOf(made.secret));
    assert.ok(done(await revokeKey(postgres, personOf(people.admin), name)).revokedAtMs);
  });

  test('as its user: only their own, and what the organization pays for is only ended', async () => {
    const people = await makePeople();
    const { organizationId, member } = people;
    const own = await makeOwnKey(people);
    const given = done(
      await createKey(postgres, secrets, personOf(people.admin), { organizationId, name: 'given', userId: member }),
    );
    const nobodys = done(await createKey(postgres, secrets, personOf(people.admin), { organizationId, name: 'ci' }));
    const as = (keyId: string, userId = member) => ({ organizationId, keyId, userId });
    const actor = personOf(member);
    for (const name of [as(nobodys.id), as(own.id, people.admin), as(randomUUID())]) {
      assert.equal(await refusal(rotateKey(postgres, secrets, actor, name, { overlapSeconds: 0 })), 'not_found');
      assert.equal(await refusal(updateKey(postgres, actor, name, { name: 'x' })), 'not_found');
      assert.equal(await refusal(revokeKey(postgres, actor, name)), 'not_found');
    }
    assert.equal(
      await refusal(rotateKey(postgres, secrets, actor, as(given.id), { overlapSeconds: 0 })),
      'permission_denied',
    );
    assert.equal(await refusal(updateKey(postgres, actor, as(given.id), { expiresAtMs: null })), 'permission_denied');
    done(await revokeKey(postgres, actor, as(given.id)));
    done(await rotateKey(postgres, secrets, actor, as(own.id), { overlapSeconds: 0 }));
    done(await revokeKey(postgres, actor, as(own.id)));
  });
});

describe('the user of a key that its user pays for', () => {
  const fileFor = (email: string) => `
organizations:
  - slug: acme
    billing: prepaid
    teams: [{ slug: research }]
    users: [{ email: owner@acme.test, role: owner }, { email: ${email}, role: member }]
    keys: [{ name: own, user: ${email} }]
`;

  async function apply(text: string): Promise<void> {
    const parsed = parseConfigurationFile(text, {});
    assert.ok(parsed.ok, parsed.ok ? '' : parsed.errors.join('\n'));
    await applyConfiguration(postgres, parsed.configuration, secrets);
  }

  test('stays, whatever a configuration file says: nobody else comes to spend that wallet', async () => {
    const { organizationId, member } = await makePeople();
    const made = await makeOwnKey({ organizationId, member });
    const withSecret = (file: string) => file.replace('name: own', `name: own, secret: ${made.secret}`);
    for (const file of [
      fileFor('other@acme.test'),
      fileFor('member@acme.test'),
      fileFor('other@acme.test').replace(', user: other@acme.test', ''),
    ]) {
      const message = /key "own" of organization "acme" is paid for by its user/;
      await assert.rejects(apply(withSecret(file)), { name: 'ConfigurationConflict', message });
    }
    // One of the same name is another key, and the organization's.
    await apply(fileFor('other@acme.test'));
    await apply(fileFor('other@acme.test').replace('name: own', `name: own, secret: tg-${'o'.repeat(43)}`));
    const { secret: _, ...shown } = made;
    assert.deepEqual(await getKey(postgres, { organizationId, keyId: made.id }), shown);
  });

  test('gives it a name of their own: the organization’s and each member’s do not meet', async () => {
    const { organizationId, member, owner } = await makePeople();
    const order = { organizationId, name: 'ci' };
    for (const userId of [member, owner]) {
      done(await createKey(postgres, secrets, personOf(userId), { ...order, userId, payer: 'user' }));
      assert.equal(
        await refusal(createKey(postgres, secrets, personOf(userId), { ...order, userId, payer: 'user' })),
        'conflict',
      );
    }
    done(await createKey(postgres, secrets, OPERATOR, order));
    assert.equal(await refusal(createKey(postgres, secrets, OPERATOR, order)), 'conflict');
    assert.equal(done(await findKeyByNameOrId(postgres, { organizationId, key: 'ci' })).payer, 'organization');
  });

  test('is the owner of its wallet, by the word of the database', async () => {
    const { organizationId, member, admin } = await makePeople();
    const { id } = await makeOwnKey({ organizationId, member });
    for (const userId of [admin, null]) {
      await assert.rejects(
        postgres.query('UPDATE api_keys SET user_id = $2 WHERE id = $1', [id, userId]),
        /api_keys_wallet_is_its_users/,
      );
    }
  });

  test('is in the audit log when a file changes it', async () => {
    await apply(fileFor('one@acme.test'));
    await apply(
      fileFor('two@acme.test').replace('}]\n    keys', '}, { email: one@acme.test, role: member }]\n    keys'),
    );
    await apply(
      fileFor('one@acme.test').replace('}]\n    keys', '}, { email: two@acme.test, role: member }]\n    keys'),
    );
    const { rows } = await postgres.query<{ user: string }>(
      `SELECT after -> 'keys' -> 0 ->> 'user' AS user FROM audit_log
        WHERE action = 'configuration.apply' ORDER BY created_at, id`,
    );
    assert.deepEqual(
      rows.map(({ user }) => user),
      ['one@acme.test', 'two@acme.test', 'one@acme.test'],
    );
  });
});
