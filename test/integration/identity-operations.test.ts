// Identity below HTTP, on a real Postgres: each operation, tenants apart, the owner floor under concurrency, rotation,
// the audit log.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { UsageLimit } from '../../src/domain/configuration/configuration.ts';
import type { Actor } from '../../src/domain/identity/actor.ts';
import { hashCredential } from '../../src/domain/identity/key-hash.ts';
import type { MemberScope } from '../../src/domain/identity/member.ts';
import type { Organization } from '../../src/domain/identity/organization.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import type { Page } from '../../src/domain/lists/page.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { isRefused } from '../../src/domain/refusals/refused.ts';
import { findPrincipalByCredentialHash } from '../../src/storage/postgres/catalog/credentials.ts';
import { listAudit, recordAudit } from '../../src/storage/postgres/identity/audit.ts';
import { createKey, getKey, listKeys, revokeKey, updateKey } from '../../src/storage/postgres/identity/keys/keys.ts';
import { rotateKey } from '../../src/storage/postgres/identity/keys/rotate-key.ts';
import { listLimits, replaceLimits } from '../../src/storage/postgres/identity/limits.ts';
import { addMember, listMembers, removeMember, setMemberRole } from '../../src/storage/postgres/identity/members.ts';
import { getModelAccess, setModelAccess } from '../../src/storage/postgres/identity/model-access.ts';
import {
  createOrganization,
  getOrganization,
  listOrganizations,
  listOrganizationsOfUser,
  updateOrganization,
} from '../../src/storage/postgres/identity/organizations.ts';
import {
  addPlatformAdministrator,
  listPlatformAdministrators,
  removePlatformAdministrator,
} from '../../src/storage/postgres/identity/platform-administrators.ts';
import { createTeam, deleteTeam, getTeam, listTeams, updateTeam } from '../../src/storage/postgres/identity/teams.ts';
import {
  createToken,
  listTokens,
  revokeToken,
  setActiveOrganization,
} from '../../src/storage/postgres/identity/tokens.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { done, refusal } from '../support/refused.ts';

const secrets = secretsOf(randomBytes(32));
const { pepper } = secrets;
const OPERATOR: Actor = { kind: 'cli', userId: null, label: 'test' };
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

const byPlatform = (...limits: UsageLimit[]) => ({ setBy: 'platform', limits }) as const;

interface Tenant {
  readonly organization: Organization;
  readonly scope: MemberScope;
  readonly ownerId: string;
}

async function makeTenant(slug: string): Promise<Tenant> {
  const organization = done(
    await createOrganization(postgres, OPERATOR, { slug, billing: 'prepaid', ownerEmail: `owner@${slug}.test` }),
  );
  const scope = { organizationId: organization.id, teamId: null };
  const [owner] = done(await listMembers(postgres, scope)).items;
  assert.equal(owner?.role, 'owner');
  return { organization, scope, ownerId: owner.userId };
}

async function addModels(...ids: string[]): Promise<void> {
  for (const id of ids)
    await postgres.query(
      `INSERT INTO models (id, display_name, kind, tokenizer) VALUES ($1, $1, 'text', 'o200k_base')`,
      [id],
    );
}

const principalOf = (secret: string): Promise<Principal | null> =>
  findPrincipalByCredentialHash(postgres, hashCredential(pepper, secret));
const personOf = (userId: string): Actor => ({ kind: 'token', userId, label: 'person' });

describe('organizations', () => {
  test('made with wallet and owner, listed in pages, changed; a taken slug is a conflict', async () => {
    const { organization, ownerId } = await makeTenant('acme');
    assert.deepEqual(await getOrganization(postgres, organization.id), organization);
    assert.equal(await refusal(createOrganization(postgres, OPERATOR, { slug: 'acme', billing: 'none' })), 'conflict');
    assert.equal(await refusal(createOrganization(postgres, OPERATOR, { slug: 'A b', billing: 'none' })), 'invalid');
    for (let index = 0; index < 4; index += 1) await makeTenant(`more-${index}`);
    const slugs: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Page<Organization> = done(await listOrganizations(postgres, { limit: 2, cursor }));
      slugs.push(...page.items.map(({ slug }) => slug));
      cursor = page.nextCursor;
    } while (cursor !== null);
    assert.deepEqual(slugs, ['acme', 'more-0', 'more-1', 'more-2', 'more-3']);
    assert.equal(await refusal(listOrganizations(postgres, { cursor: 'bm9uc2Vuc2U' })), 'invalid');
    const mine = done(await listOrganizationsOfUser(postgres, { userId: ownerId }));
    assert.deepEqual(
      mine.items.map(({ slug }) => slug),
      ['acme'],
    );
    const updated = done(
      await updateOrganization(postgres, OPERATOR, organization.id, {
        displayName: 'Acme',
        billing: 'none',
        frozen: true,
      }),
    );
    assert.deepEqual(updated, { ...organization, displayName: 'Acme', billing: 'none', frozen: true });
    const { rows } = await postgres.query('SELECT frozen FROM wallets WHERE organization_id = $1', [organization.id]);
    assert.deepEqual(rows, [{ frozen: true }]);
    assert.equal(await refusal(updateOrganization(postgres, OPERATOR, randomUUID(), { frozen: true })), 'not_found');
    assert.equal(await refusal(getOrganization(postgres, 'not-a-uuid')), 'not_found');
  });
});

describe('teams', () => {
  test('made, listed, renamed; deleted once nothing depends on it', async () => {
    const { organization, scope } = await makeTenant('acme');
    const organizationId = organization.id;
    const team = done(await createTeam(postgres, OPERATOR, { organizationId, slug: 'research' }));
    const name = { organizationId, teamId: team.id };
    assert.equal(await refusal(createTeam(postgres, OPERATOR, { organizationId, slug: 'research' })), 'conflict');
    for (const displayName of ['two\nlines', 'two\u2028lines', '\ud800', '']) {
      assert.equal(
        await refusal(createTeam(postgres, OPERATOR, { organizationId, slug: 'odd', displayName })),
        'invalid',
      );
    }
    assert.deepEqual(done(await listTeams(postgres, { organizationId })).items, [team]);
    assert.equal(done(await updateTeam(postgres, OPERATOR, name, { slug: 'lab', displayName: 'The Lab' })).slug, 'lab');
    done(
      await addMember(postgres, OPERATOR, { ...scope, teamId: team.id }, { email: 'owner@acme.test', role: 'owner' }),
    );
    done(
      await replaceLimits(
        postgres,
        OPERATOR,
        { kind: 'team', ...name },
        { setBy: 'platform', limits: [{ kind: 'requests_per_minute', limit: 5n }] },
      ),
    );
    const key = done(await createKey(postgres, secrets, OPERATOR, { organizationId, name: 'ci', teamId: team.id }));
    assert.equal(await refusal(deleteTeam(postgres, OPERATOR, name)), 'conflict');
    done(await revokeKey(postgres, OPERATOR, { organizationId, keyId: key.id }));
    done(await deleteTeam(postgres, OPERATOR, name));
    assert.equal(await refusal(getTeam(postgres, name)), 'not_found');
    const [deletion] = done(await listAudit(postgres, { organizationId, limit: 1 })).items;
    assert.equal(deletion?.action, 'team.delete');
    assert.deepEqual((deletion.before as { endedKeyIds: unknown }).endedKeyIds, [key.id]);
    assert.equal(done(await getKey(postgres, { organizationId, keyId: key.id })).teamId, null);
  });
});

describe('members', () => {
  test('added by email, given roles, removed with their keys and team seats', async () => {
    const { organization, scope } = await makeTenant('acme');
    const organizationId = organization.id;
    const team = done(await createTeam(postgres, OPERATOR, { organizationId, slug: 'research' }));
    const teamScope = { organizationId, teamId: team.id };
    assert.equal(
      await refusal(addMember(postgres, OPERATOR, teamScope, { email: 'bo@acme.test', role: 'member' })),
      'not_found',
    );
    const bo = done(await addMember(postgres, OPERATOR, scope, { email: 'bo@acme.test', role: 'member' }));
    assert.equal(
      await refusal(addMember(postgres, OPERATOR, scope, { email: 'BO@acme.test', role: 'member' })),
      'conflict',
    );
    assert.equal(
      await refusal(addMember(postgres, OPERATOR, scope, { email: 'no\0body@x', role: 'member' })),
      'invalid',
    );
    done(await addMember(postgres, OPERATOR, teamScope, { email: 'bo@acme.test', role: 'admin' }));
    assert.equal(
      done(await setMemberRole(postgres, OPERATOR, scope, { userId: bo.userId, role: 'admin' })).role,
      'admin',
    );
    const key = done(await createKey(postgres, secrets, OPERATOR, { organizationId, name: 'bo', userId: bo.userId }));
    assert.deepEqual(done(await removeMember(postgres, OPERATOR, scope, bo.userId)), { removed: true, revokedKeys: 1 });
    assert.equal(await principalOf(key.secret), null);
    assert.deepEqual(done(await listMembers(postgres, teamScope)).items, []);
    assert.equal(await refusal(removeMember(postgres, OPERATOR, scope, bo.userId)), 'not_found');
  });

  test('named by their address in small letters, whether the account was there before or not', async () => {
    await makeTenant('acme');
    const { scope } = await makeTenant('other');
    const { email } = done(await addPlatformAdministrator(postgres, OPERATOR, 'Root@Platform.test'));
    assert.equal(email, 'root@platform.test');
    for (const [typed, shown] of [
      ['OWNER@Acme.test', 'owner@acme.test'],
      ['ROOT@platform.TEST', 'root@platform.test'],
      ['NOBODY@Acme.test', 'nobody@acme.test'],
    ] as const) {
      assert.equal(done(await addMember(postgres, OPERATOR, scope, { email: typed, role: 'member' })).email, shown);
    }
  });

  test('only owners, and who stands above, make and unmake owners', async () => {
    const { organization, scope, ownerId } = await makeTenant('acme');
    const admin = done(await addMember(postgres, OPERATOR, scope, { email: 'admin@acme.test', role: 'admin' }));
    const bo = done(await addMember(postgres, OPERATOR, scope, { email: 'bo@acme.test', role: 'member' }));
    const asAdmin = personOf(admin.userId);
    assert.equal(
      await refusal(setMemberRole(postgres, asAdmin, scope, { userId: bo.userId, role: 'owner' })),
      'permission_denied',
    );
    assert.equal(
      await refusal(setMemberRole(postgres, asAdmin, scope, { userId: ownerId, role: 'member' })),
      'permission_denied',
    );
    assert.equal(await refusal(removeMember(postgres, asAdmin, scope, ownerId)), 'permission_denied');
    assert.equal(
      await refusal(addMember(postgres, asAdmin, scope, { email: 'c@acme.test', role: 'owner' })),
      'permission_denied',
    );
    done(await setMemberRole(postgres, personOf(ownerId), scope, { userId: bo.userId, role: 'owner' }));
    // An admin of the organization stands above its teams.
    const team = done(await createTeam(postgres, asAdmin, { organizationId: organization.id, slug: 'research' }));
    done(await addMember(postgres, asAdmin, { ...scope, teamId: team.id }, { email: 'bo@acme.test', role: 'owner' }));
  });

  test('the last owner of an organization or team stays', async () => {
    const { organization, scope, ownerId } = await makeTenant('acme');
    const team = done(await createTeam(postgres, OPERATOR, { organizationId: organization.id, slug: 'research' }));
    const bo = done(await addMember(postgres, OPERATOR, scope, { email: 'bo@acme.test', role: 'member' }));
    const teamScope = { ...scope, teamId: team.id };
    done(await addMember(postgres, OPERATOR, teamScope, { email: 'bo@acme.test', role: 'owner' }));
    assert.equal(await refusal(removeMember(postgres, OPERATOR, scope, ownerId)), 'owner_floor');
    assert.equal(
      await refusal(setMemberRole(postgres, OPERATOR, scope, { userId: ownerId, role: 'admin' })),
      'owner_floor',
    );
    assert.equal(
      await refusal(setMemberRole(postgres, OPERATOR, teamScope, { userId: bo.userId, role: 'member' })),
      'owner_floor',
    );
    // Leaving the organization would leave the team without an owner.
    assert.equal(await refusal(removeMember(postgres, OPERATOR, scope, bo.userId)), 'owner_floor');
    assert.equal(done(await listMembers(postgres, scope)).items.length, 2);
    const { rows } = await postgres.query(
      `SELECT count(*)::int AS n FROM audit_log WHERE action IN ('member.remove', 'member.role')`,
    );
    assert.deepEqual(rows, [{ n: 0 }]);
  });

  test('owners who all leave at once: one stays', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { scope, ownerId } = await makeTenant(`round-${round}`);
      const owners = [ownerId];
      for (const name of ['b', 'c', 'd', 'e']) {
        owners.push(
          done(await addMember(postgres, OPERATOR, scope, { email: `${name}@round-${round}.test`, role: 'owner' }))
            .userId,
        );
      }
      const results = await Promise.all(
        owners.map((userId, index) =>
          index % 2 === 0
            ? removeMember(postgres, OPERATOR, scope, userId)
            : setMemberRole(postgres, OPERATOR, scope, { userId, role: 'member' }),
        ),
      );
      assert.equal(results.filter((result) => isRefused(result) && result.refused === 'owner_floor').length, 1);
      assert.equal(done(await listMembers(postgres, scope)).items.filter(({ role }) => role === 'owner').length, 1);
    }
  });
});

describe('keys', () => {
  test('made with team, user, payer and models; listed, changed, revoked', async () => {
    await addModels('m/a', 'm/b');
    const { organization, ownerId } = await makeTenant('acme');
    const organizationId = organization.id;
    const team = done(await createTeam(postgres, OPERATOR, { organizationId, slug: 'research' }));
    const order = {
      organizationId,
      name: 'ci',
      teamId: team.id,
      userId: ownerId,
      payer: 'user',
      allowedModels: { setBy: 'organization', models: ['m/a'] },
      expiresAtMs: 1_900_000_000_123,
    } as const;
    const made = done(await createKey(postgres, secrets, OPERATOR, order));
    assert.match(made.secret, /^tg-[\w-]{43}$/);
    const { secret, ...shown } = made;
    const name = { organizationId, keyId: made.id };
    assert.deepEqual(await getKey(postgres, name), shown);
    assert.deepEqual(done(await listKeys(postgres, { organizationId, teamId: team.id })).items, [shown]);
    assert.deepEqual(done(await listKeys(postgres, { organizationId, userId: randomUUID() })).items, []);
    assert.equal(await refusal(getKey(postgres, { ...name, userId: randomUUID() })), 'not_found');
    const principal = await principalOf(secret);
    const { rows } = await postgres.query<{ id: string }>('SELECT id FROM wallets WHERE user_id = $1', [ownerId]);
    assert.deepEqual(principal, {
      credential: 'key',
      apiKeyId: made.id,
      organizationId,
      teamId: team.id,
      userId: ownerId,
      walletId: rows[0]?.id,
      billed: true,
      permissions: ['inference', 'usage.read'],
      teamPermissions: new Map(),
      platformAdmin: false,
      allowedModels: new Set(['m/a']),
      hasOwnKeys: false,
      limits: [],
      expiresAtMs: 1_900_000_000_123,
    });
    assert.equal(await refusal(createKey(postgres, secrets, OPERATOR, order)), 'conflict');
    assert.equal(
      await refusal(createKey(postgres, secrets, OPERATOR, { organizationId, name: 'x', payer: 'user' })),
      'invalid',
    );
    assert.equal(
      await refusal(
        createKey(postgres, secrets, OPERATOR, {
          organizationId,
          name: 'x',
          allowedModels: { setBy: 'organization', models: ['m/none'] },
        }),
      ),
      'invalid',
    );
    assert.equal(
      await refusal(createKey(postgres, secrets, OPERATOR, { organizationId, name: 'x', userId: randomUUID() })),
      'not_found',
    );
    const every = { setBy: 'organization', models: null } as const;
    const changed = done(
      await updateKey(postgres, OPERATOR, name, { name: 'shell', allowedModels: every, expiresAtMs: null }),
    );
    const allowed = { allowedModels: null, allowedModelsSetBy: { platform: null, organization: null } };
    assert.deepEqual(changed, { ...shown, ...allowed, name: 'shell', expiresAtMs: null });
    assert.ok(done(await revokeKey(postgres, OPERATOR, name)).revokedAtMs);
    assert.equal(await principalOf(secret), null);
    done(await revokeKey(postgres, OPERATOR, name));
    assert.equal(await refusal(updateKey(postgres, OPERATOR, name, { name: 'y' })), 'conflict');
    assert.equal(await refusal(rotateKey(postgres, secrets, OPERATOR, name, { overlapSeconds: 0 })), 'conflict');
  });

  test('rotated: the old secret is good until the overlap ends, and no third one', async () => {
    const { organization } = await makeTenant('acme');
    const organizationId = organization.id;
    const first = done(await createKey(postgres, secrets, OPERATOR, { organizationId, name: 'ci' }));
    const name = { organizationId, keyId: first.id };
    const second = done(await rotateKey(postgres, secrets, OPERATOR, name, { overlapSeconds: 3600 }));
    assert.equal(second.id, first.id);
    const [old, present] = [await principalOf(first.secret), await principalOf(second.secret)];
    assert.equal(old?.apiKeyId, first.id);
    assert.equal(Math.floor(old.expiresAtMs ?? 0), second.previousSecretUntilMs);
    assert.deepEqual([present?.apiKeyId, present?.expiresAtMs], [first.id, null]);
    const third = done(await rotateKey(postgres, secrets, OPERATOR, name, { overlapSeconds: 0 }));
    assert.ok(await principalOf(third.secret));
    const { rows } = await postgres.query<{ good: number }>(
      'SELECT count(*)::int AS good FROM api_key_previous_secrets WHERE valid_until > now()',
    );
    assert.deepEqual(rows, [{ good: 0 }]);
    assert.equal(third.previousSecretUntilMs, null);
    done(await revokeKey(postgres, OPERATOR, name));
    for (const { secret } of [first, second, third]) assert.equal(await principalOf(secret), null);
    assert.equal(await refusal(rotateKey(postgres, secrets, OPERATOR, name, { overlapSeconds: -1 })), 'invalid');
  });

  test('what organization, team and key allow together', async () => {
    await addModels('m/a', 'm/b', 'm/c');
    const { organization } = await makeTenant('acme');
    const organizationId = organization.id;
    const team = done(await createTeam(postgres, OPERATOR, { organizationId, slug: 'research' }));
    const { id: keyId, secret } = done(
      await createKey(postgres, secrets, OPERATOR, { organizationId, name: 'ci', teamId: team.id }),
    );
    const allowed = async () => (await principalOf(secret))?.allowedModels ?? null;
    assert.equal(await allowed(), null);
    const set = async (scope: Parameters<typeof setModelAccess>[2], models: string[] | null) =>
      done(await setModelAccess(postgres, OPERATOR, scope, { setBy: 'platform', models }));
    await set({ kind: 'organization', organizationId }, ['m/a', 'm/b']);
    assert.deepEqual(await allowed(), new Set(['m/a', 'm/b']));
    await set({ kind: 'team', organizationId, teamId: team.id }, ['m/b', 'm/c']);
    assert.deepEqual(await allowed(), new Set(['m/b']));
    await set({ kind: 'key', organizationId, keyId }, ['m/c']);
    assert.deepEqual(await allowed(), new Set());
    await set({ kind: 'organization', organizationId }, null);
    assert.deepEqual(await allowed(), new Set(['m/c']));
    assert.deepEqual(await getModelAccess(postgres, { kind: 'key', organizationId, keyId }), {
      allowedModels: ['m/c'],
      allowedModelsSetBy: { platform: ['m/c'], organization: null },
    });
    assert.equal(
      await refusal(
        setModelAccess(
          postgres,
          OPERATOR,
          { kind: 'organization', organizationId },
          { setBy: 'platform', models: ['m/none'] },
        ),
      ),
      'invalid',
    );
  });
});

describe('tokens', () => {
  test('made, working in one organization after another, revoked', async () => {
    const acme = await makeTenant('acme');
    const other = await makeTenant('other');
    const organizationId = acme.organization.id;
    const team = done(await createTeam(postgres, OPERATOR, { organizationId, slug: 'research' }));
    done(
      await addMember(
        postgres,
        OPERATOR,
        { organizationId, teamId: team.id },
        { email: 'owner@acme.test', role: 'admin' },
      ),
    );
    const order = { userId: acme.ownerId, name: 'laptop', lifetimeSeconds: 3600 };
    const made = done(await createToken(postgres, secrets, OPERATOR, order));
    assert.match(made.secret, /^tgt-[\w-]{43}$/);
    const roaming = await principalOf(made.secret);
    assert.deepEqual(
      [roaming?.credential, roaming?.organizationId, roaming?.permissions, roaming?.platformAdmin],
      ['token', null, [], false],
    );
    const name = { tokenId: made.id, userId: acme.ownerId };
    assert.equal(await refusal(setActiveOrganization(postgres, OPERATOR, name, other.organization.id)), 'not_found');
    assert.equal(
      await refusal(
        setActiveOrganization(postgres, OPERATOR, { ...name, userId: other.ownerId }, other.organization.id),
      ),
      'not_found',
    );
    done(await setActiveOrganization(postgres, OPERATOR, name, organizationId));
    const settled = await principalOf(made.secret);
    assert.equal(settled?.organizationId, organizationId);
    assert.ok(settled.permissions.includes('org.admin') && !settled.permissions.includes('platform.admin'));
    assert.deepEqual(settled.teamPermissions, new Map([[team.id, 'admin']]));
    assert.deepEqual(
      done(await listTokens(postgres, { userId: acme.ownerId })).items.map(({ id }) => id),
      [made.id],
    );
    assert.equal(await refusal(revokeToken(postgres, OPERATOR, { ...name, userId: other.ownerId })), 'not_found');
    done(await revokeToken(postgres, OPERATOR, { ...name, userId: null }));
    assert.equal(await principalOf(made.secret), null);
    assert.equal(await refusal(createToken(postgres, secrets, OPERATOR, { ...order, lifetimeSeconds: 1 })), 'invalid');
    assert.equal(
      await refusal(createToken(postgres, secrets, OPERATOR, { ...order, organizationId: other.organization.id })),
      'not_found',
    );
  });

  test('a user who left is in no organization; a changed role is a changed principal', async () => {
    const { organization, scope } = await makeTenant('acme');
    const bo = done(await addMember(postgres, OPERATOR, scope, { email: 'bo@acme.test', role: 'admin' }));
    const { secret } = done(
      await createToken(postgres, secrets, OPERATOR, {
        userId: bo.userId,
        name: 't',
        lifetimeSeconds: 60,
        organizationId: organization.id,
      }),
    );
    assert.ok((await principalOf(secret))?.permissions.includes('org.admin'));
    done(await setMemberRole(postgres, OPERATOR, scope, { userId: bo.userId, role: 'member' }));
    assert.deepEqual((await principalOf(secret))?.permissions, ['inference', 'usage.read', 'org.usage.read']);
    done(await removeMember(postgres, OPERATOR, scope, bo.userId));
    assert.equal((await principalOf(secret))?.organizationId, null);
  });

  test('platform administrators work in any organization', async () => {
    const { organization } = await makeTenant('acme');
    const root = done(await addPlatformAdministrator(postgres, OPERATOR, 'root@platform.test'));
    assert.equal(await refusal(addPlatformAdministrator(postgres, OPERATOR, 'ROOT@platform.test')), 'conflict');
    assert.deepEqual(done(await listPlatformAdministrators(postgres, {})).items, [root]);
    const { secret } = done(
      await createToken(postgres, secrets, OPERATOR, {
        userId: root.userId,
        name: 't',
        lifetimeSeconds: 60,
        organizationId: organization.id,
      }),
    );
    const principal = await principalOf(secret);
    assert.ok(
      principal?.platformAdmin &&
        principal.permissions.includes('platform.admin') &&
        principal.permissions.includes('org.admin'),
    );
    done(await removePlatformAdministrator(postgres, OPERATOR, root.userId));
    const fallen = await principalOf(secret);
    assert.deepEqual([fallen?.platformAdmin, fallen?.organizationId, fallen?.permissions], [false, null, []]);
  });
});

describe('limits', () => {
  test('replaced as a whole, scope by scope', async () => {
    const { organization, ownerId } = await makeTenant('acme');
    const organizationId = organization.id;
    const ofOrganization = { kind: 'organization', organizationId } as const;
    const ofUser = { kind: 'user', organizationId, userId: ownerId } as const;
    const budget = { kind: 'budget', window: 'month', limit: picoUsd(10n ** 14n) } as const;
    done(
      await replaceLimits(
        postgres,
        OPERATOR,
        ofOrganization,
        byPlatform(budget, { kind: 'requests_per_minute', limit: 60n }),
      ),
    );
    done(await replaceLimits(postgres, OPERATOR, ofUser, byPlatform({ kind: 'concurrent_requests', limit: 2n })));
    done(await replaceLimits(postgres, OPERATOR, ofOrganization, byPlatform(budget)));
    assert.deepEqual(await listLimits(postgres, ofOrganization), { items: [{ ...budget, setBy: 'platform' }] });
    assert.deepEqual(await listLimits(postgres, ofUser), {
      items: [{ kind: 'concurrent_requests', limit: 2n, setBy: 'platform' }],
    });
    assert.equal(
      await refusal(replaceLimits(postgres, OPERATOR, ofOrganization, byPlatform(budget, budget))),
      'invalid',
    );
  });
});

describe('tenants', () => {
  test('everything of another organization looks absent', async () => {
    const acme = await makeTenant('acme');
    const { organization: foreign, ownerId } = await makeTenant('other');
    const organizationId = acme.organization.id;
    const { id: teamId } = done(await createTeam(postgres, OPERATOR, { organizationId: foreign.id, slug: 'theirs' }));
    const { id: keyId } = done(
      await createKey(postgres, secrets, OPERATOR, { organizationId: foreign.id, name: 'theirs' }),
    );
    const attempts = (team: string, key: string, user: string): readonly Promise<unknown>[] => [
      getTeam(postgres, { organizationId, teamId: team }),
      updateTeam(postgres, OPERATOR, { organizationId, teamId: team }, { slug: 'mine' }),
      deleteTeam(postgres, OPERATOR, { organizationId, teamId: team }),
      listMembers(postgres, { organizationId, teamId: team }),
      addMember(postgres, OPERATOR, { organizationId, teamId: team }, { email: 'owner@acme.test', role: 'member' }),
      setMemberRole(postgres, OPERATOR, acme.scope, { userId: user, role: 'member' }),
      removeMember(postgres, OPERATOR, acme.scope, user),
      getKey(postgres, { organizationId, keyId: key }),
      updateKey(postgres, OPERATOR, { organizationId, keyId: key }, { name: 'mine' }),
      revokeKey(postgres, OPERATOR, { organizationId, keyId: key }),
      rotateKey(postgres, secrets, OPERATOR, { organizationId, keyId: key }, { overlapSeconds: 0 }),
      createKey(postgres, secrets, OPERATOR, { organizationId, name: 'a', teamId: team }),
      createKey(postgres, secrets, OPERATOR, { organizationId, name: 'b', userId: user }),
      getModelAccess(postgres, { kind: 'team', organizationId, teamId: team }),
      setModelAccess(
        postgres,
        OPERATOR,
        { kind: 'key', organizationId, keyId: key },
        { setBy: 'platform', models: [] },
      ),
      listLimits(postgres, { kind: 'user', organizationId, userId: user }),
      replaceLimits(postgres, OPERATOR, { kind: 'key', organizationId, keyId: key }, byPlatform()),
      replaceLimits(postgres, OPERATOR, { kind: 'team', organizationId, teamId: team }, byPlatform()),
    ];
    const before = await postgres.query('SELECT count(*)::int AS n FROM audit_log');
    const foreignAnswers = await Promise.all(attempts(teamId, keyId, ownerId));
    assert.deepEqual(foreignAnswers, await Promise.all(attempts(randomUUID(), randomUUID(), randomUUID())));
    for (const answer of [...foreignAnswers, ...(await Promise.all(attempts("'; --", 'x', '\0')))])
      assert.ok(isRefused(answer) && answer.refused === 'not_found');
    assert.deepEqual((await postgres.query('SELECT count(*)::int AS n FROM audit_log')).rows, before.rows);
    assert.deepEqual(done(await listKeys(postgres, { organizationId })).items, []);
    assert.deepEqual(done(await listTeams(postgres, { organizationId })).items, []);
  });
});

/** All pages of a listing, with how many bytes each has. */
async function pagesOf<T>(read: (cursor: string | null) => Promise<Page<T>>): Promise<{ items: T[]; bytes: number[] }> {
  const items: T[] = [];
  const bytes: number[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<T> = await read(cursor);
    items.push(...page.items);
    bytes.push(JSON.stringify(page.items).length);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return { items, bytes };
}

const PAGE_BYTES_MAX = 524_288;

describe('audit log', () => {
  test('a page is bounded in bytes, and the next goes on behind it', async () => {
    const { organization } = await makeTenant('acme');
    const { id: organizationId } = organization;
    for (const size of [10, 200_000, 200_000, 900_000, 10, 300_000, 300_000]) {
      const target = { kind: 'organization', id: organizationId } as const;
      const change = { organizationId, action: 'organization.update', target, after: 'x'.repeat(size) } as const;
      await recordAudit(postgres, OPERATOR, change);
    }
    const { items, bytes } = await pagesOf(async (cursor) =>
      done(await listAudit(postgres, { organizationId, cursor })),
    );
    const sizes = items.flatMap(({ after: made }) => (typeof made === 'string' ? [made.length] : []));
    assert.deepEqual(sizes, [300_000, 300_000, 10, 900_000, 200_000, 200_000, 10]);
    assert.equal(items.length, sizes.length + 2, 'the two entries of the tenant itself');
    assert.deepEqual(
      bytes.map((size) => size <= PAGE_BYTES_MAX),
      [true, true, false, true],
    );
  });

  test('so is a page of keys', async () => {
    const { organization } = await makeTenant('acme');
    const { id: organizationId } = organization;
    const models = Array.from({ length: 300 }, (_, index) => `${index}`.padStart(200, 'm'));
    for (let index = 0; index < 12; index += 1)
      done(await createKey(postgres, secrets, OPERATOR, { organizationId, name: `k${index}` }));
    await postgres.query('UPDATE api_keys SET organization_allowed_models = $1', [models]);
    const { items, bytes } = await pagesOf(async (cursor) =>
      done(await listKeys(postgres, { organizationId, cursor })),
    );
    assert.deepEqual(
      items.map(({ name }) => name),
      Array.from({ length: 12 }, (_, index) => `k${index}`),
    );
    assert.ok(bytes.length > 1 && bytes.every((size) => size <= PAGE_BYTES_MAX), String(bytes));
  });

  test('every change, who and from what to what; no secret, no hash; append-only', async () => {
    const { organization, ownerId } = await makeTenant('acme');
    const organizationId = organization.id;
    const person = personOf(ownerId);
    const key = done(await createKey(postgres, secrets, person, { organizationId, name: 'ci' }));
    const rotated = done(
      await rotateKey(postgres, secrets, person, { organizationId, keyId: key.id }, { overlapSeconds: 60 }),
    );
    done(await updateKey(postgres, person, { organizationId, keyId: key.id }, { name: 'renamed' }));
    const token = done(
      await createToken(postgres, secrets, person, { userId: ownerId, name: 't', lifetimeSeconds: 60 }),
    );
    const page = done(await listAudit(postgres, { organizationId, limit: 2 }));
    const [update] = page.items;
    assert.deepEqual(
      [update?.action, update?.actor, update?.target],
      ['key.update', person, { kind: 'key', id: key.id }],
    );
    const nameOf = (value: unknown): unknown => (value as { name?: unknown } | undefined)?.name;
    assert.deepEqual([nameOf(update?.before), nameOf(update?.after)], ['ci', 'renamed']);
    const rest = done(await listAudit(postgres, { organizationId, cursor: page.nextCursor }));
    assert.deepEqual(
      [...page.items, ...rest.items].map(({ action }) => action),
      ['key.update', 'key.rotate', 'key.create', 'member.add', 'organization.create'],
    );
    assert.equal(done(await listAudit(postgres, { organizationId: null })).items[0]?.action, 'token.create');
    assert.deepEqual(done(await listAudit(postgres, { organizationId: randomUUID() })).items, []);
    const { rows } = await postgres.query<{ line: string }>(
      'SELECT row_to_json(audit_log)::text AS line FROM audit_log',
    );
    const written = rows.map(({ line }) => line).join('\n');
    for (const { secret } of [key, rotated, token]) {
      assert.ok(!written.includes(secret) && !written.includes(secret.slice(12)));
      const hash = hashCredential(pepper, secret);
      for (const encoding of ['hex', 'base64', 'base64url'] as const)
        assert.ok(!written.includes(hash.toString(encoding)));
    }
    for (const statement of ['UPDATE audit_log SET action = action', 'DELETE FROM audit_log', 'TRUNCATE audit_log']) {
      await assert.rejects(postgres.query(statement), /append-only/);
    }
  });
});
