// What a sign-in by an OpenID provider makes of people whom others knew before: what was given and taken by hand.
// Below HTTP, on a real Postgres.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Actor } from '../../src/domain/identity/actor.ts';
import type { Role } from '../../src/domain/identity/roles.ts';
import type { SignedInPerson, SignInProvider } from '../../src/domain/identity/sign-in-provider.ts';
import { createKey } from '../../src/storage/postgres/identity/keys/keys.ts';
import { replaceLimits } from '../../src/storage/postgres/identity/limits.ts';
import { addMember, listMembers, removeMember } from '../../src/storage/postgres/identity/members.ts';
import { createOrganization } from '../../src/storage/postgres/identity/organizations.ts';
import {
  addPlatformAdministrator,
  listPlatformAdministrators,
  removePlatformAdministrator,
} from '../../src/storage/postgres/identity/platform-administrators.ts';
import { createLink, forgetEndedSessions, openSessionByLink } from '../../src/storage/postgres/identity/sessions.ts';
import { signInPerson } from '../../src/storage/postgres/identity/sign-in-people.ts';
import { createTeam } from '../../src/storage/postgres/identity/teams.ts';
import { createToken, revokeToken } from '../../src/storage/postgres/identity/tokens.ts';
import { ensureWallet } from '../../src/storage/postgres/ledger/payer-wallets.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { done } from '../support/refused.ts';

const secrets = secretsOf(randomBytes(32));
const OPERATOR: Actor = { kind: 'cli', userId: null, label: 'test' };
const PROVIDER: SignInProvider = {
  id: 'okta',
  issuer: 'https://idp.test',
  client_id: 'tollgate',
  client_secret: 'secret',
  scopes: 'openid email groups',
  groups_claim: 'groups',
  link_by_email: false,
  platform_administrators: ['ops'],
  members: [
    { group: 'in-alpha', organization: 'alpha', role: 'member' },
    { group: 'in-research', organization: 'alpha', team: 'research', role: 'member' },
  ],
};

let server: TestPostgres;
let url: string;
let postgres: Postgres;
let alpha: string;
let beta: string;
let research: string;
before(async () => {
  server = await startTestPostgres();
});
after(() => server.stop());
beforeEach(async () => {
  url = await server.createDatabase();
  postgres = createPostgres({ url, log: silentLog });
  alpha = done(await createOrganization(postgres, OPERATOR, { slug: 'alpha', billing: 'none' })).id;
  beta = done(await createOrganization(postgres, OPERATOR, { slug: 'beta', billing: 'none' })).id;
  research = done(await createTeam(postgres, OPERATOR, { organizationId: alpha, slug: 'research' })).id;
});
afterEach(() => postgres.close());

const person = (name: string, groups: readonly string[]): SignedInPerson => ({
  issuer: PROVIDER.issuer,
  subject: name,
  email: `${name}@corp.test`,
  isEmailVerified: true,
  groups,
});

async function signIn(name: string, groups: readonly string[], provider = PROVIDER): Promise<string> {
  const found = await signInPerson(postgres, provider, person(name, groups));
  return 'problem' in found ? found.problem : found.userId;
}

const inside = (organizationId: string, teamId: string | null = null) => ({ organizationId, teamId });

async function addByHand(name: string, organizationId: string, role: Role, teamId: string | null = null) {
  const params = { email: `${name}@corp.test`, role };
  return done(await addMember(postgres, OPERATOR, inside(organizationId, teamId), params)).userId;
}

async function rolesOf(userId: string): Promise<readonly string[]> {
  const roles: string[] = [];
  for (const [where, scope] of [
    ['alpha', inside(alpha)],
    ['research', inside(alpha, research)],
    ['beta', inside(beta)],
  ] as const) {
    const { items } = done(await listMembers(postgres, { ...scope, limit: 100 }));
    for (const member of items) if (member.userId === userId) roles.push(`${where} ${member.role}`);
  }
  return roles;
}

test('the session begins where the groups are, whoever else took the person in before', async () => {
  const opensIn = async (groups: readonly string[]) => {
    const linking = { ...PROVIDER, link_by_email: true };
    const found = await signInPerson(postgres, linking, person('ada', groups));
    return 'problem' in found ? found.problem : found.organizationId;
  };
  await addByHand('ada', beta, 'member');
  assert.equal(await opensIn([]), null, 'nothing is given: openSession finds one');
  await addByHand('ada', alpha, 'member');
  assert.equal(await opensIn(['in-alpha']), alpha, 'what a group gives, was it there before or not');
  assert.equal(await opensIn(['in-research']), alpha);
});

describe('an address that an account has already', () => {
  test('is a newcomer’s once nobody has the account in anything, and not before', async () => {
    const userId = await addByHand('ada', beta, 'member');
    await replaceLimits(
      postgres,
      OPERATOR,
      { kind: 'user', organizationId: beta, userId },
      { setBy: 'platform', limits: [{ kind: 'concurrent_requests', limit: 1n }] },
    );
    assert.equal(await signIn('ada', ['in-alpha']), 'email_taken');
    done(await removeMember(postgres, OPERATOR, inside(beta), userId));
    assert.equal(await signIn('ada', []), 'no_access');
    assert.equal(await signIn('ada', ['in-alpha']), userId);
    assert.deepEqual(await rolesOf(userId), ['alpha member']);
    const namesake = { ...person('ada', ['in-alpha']), subject: 'namesake' };
    assert.deepEqual(await signInPerson(postgres, PROVIDER, namesake), { problem: 'email_taken' });
  });

  test('is found free without reading a long audit log', async () => {
    const userId = await addByHand('ada', beta, 'member');
    done(await removeMember(postgres, OPERATOR, inside(beta), userId));
    await postgres.query(
      `INSERT INTO audit_log (actor_kind, actor_user_id, actor_label, action, target_kind, target_id)
       SELECT 'token', gen_random_uuid(), 'somebody', 'key.create', 'key', n::text FROM generate_series(1, 5000) n`,
    );
    await postgres.query('ANALYZE audit_log');
    // Each connection tells what it has read at its own time.
    const alone = createPostgres({ url, log: silentLog, max: 1 });
    try {
      const readRows = async () => {
        await alone.query('SELECT pg_stat_force_next_flush()');
        const { rows } = await alone.query("SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'audit_log'");
        return rows;
      };
      const before = await readRows();
      assert.deepEqual(await signInPerson(alone, PROVIDER, person('ada', ['in-alpha'])), {
        userId,
        organizationId: alpha,
      });
      assert.deepEqual(await readRows(), before);
    } finally {
      await alone.close();
    }
  });

  const past: Readonly<Record<string, (userId: string) => Promise<unknown>>> = {
    'administers the platform': () => addPlatformAdministrator(postgres, OPERATOR, 'ada@corp.test'),
    'had an access token': async (userId) => {
      const { id: tokenId } = done(
        await createToken(postgres, secrets, OPERATOR, { userId, name: 'laptop', lifetimeSeconds: 60 }),
      );
      return revokeToken(postgres, OPERATOR, { tokenId, userId });
    },
    'has a link to the console that nobody opened': (userId) =>
      createLink(postgres, secrets, OPERATOR, { userId, organizationId: null }),
    'had a session that is forgotten': async (userId) => {
      const { code } = await createLink(postgres, secrets, OPERATOR, { userId, organizationId: null });
      await openSessionByLink(postgres, secrets, code);
      await postgres.query("UPDATE access_tokens SET expires_at = now() - interval '1 year'");
      assert.equal(await forgetEndedSessions(postgres, 1), 2);
    },
    'had a key that the organization paid for': (userId) =>
      createKey(postgres, secrets, OPERATOR, { organizationId: beta, name: 'ci', userId }),
    'has a wallet': (userId) =>
      postgres.transaction((client) => ensureWallet(client, { organizationId: beta, userId })),
    'signed in by another provider': (userId) =>
      postgres.query("INSERT INTO user_identities (issuer, subject, user_id) VALUES ('https://b.test', 'b', $1)", [
        userId,
      ]),
  };
  for (const [what, happened] of Object.entries(past)) {
    test(`stays that of who ${what}`, async () => {
      const userId = await addByHand('ada', beta, 'member');
      await happened(userId);
      done(await removeMember(postgres, OPERATOR, inside(beta), userId));
      assert.equal(await signIn('ada', ['in-alpha']), 'email_taken');
      assert.deepEqual(await rolesOf(userId), []);
    });
  }
});

describe('what people gave by hand', () => {
  test('stays, also where a group had given it before and somebody had taken it', async () => {
    const userId = await signIn('ada', ['in-alpha', 'in-research']);
    assert.deepEqual(await rolesOf(userId), ['alpha member', 'research member']);
    done(await removeMember(postgres, OPERATOR, inside(alpha), userId));
    await addByHand('ada', alpha, 'admin');
    await addByHand('ada', alpha, 'admin', research);
    assert.equal(await signIn('ada', ['in-alpha', 'in-research']), userId);
    assert.deepEqual(await rolesOf(userId), ['alpha admin', 'research admin']);
    assert.equal(await signIn('ada', []), userId);
    assert.deepEqual(await rolesOf(userId), ['alpha admin', 'research admin']);
  });

  test('stays in a team that somebody had taken, where the rest is the groups’', async () => {
    const userId = await signIn('ada', ['in-alpha', 'in-research']);
    done(await removeMember(postgres, OPERATOR, inside(alpha, research), userId));
    await addByHand('ada', alpha, 'admin', research);
    assert.equal(await signIn('ada', ['in-alpha']), userId);
    assert.deepEqual(await rolesOf(userId), ['alpha member', 'research admin']);
    assert.equal(await signIn('ada', []), 'no_access');
    assert.deepEqual(await rolesOf(userId), []);
  });

  test('stays of the platform’s administration, too', async () => {
    const administrators = async () => done(await listPlatformAdministrators(postgres, { limit: 100 })).items.length;
    const userId = await signIn('ops', ['ops']);
    done(await removePlatformAdministrator(postgres, OPERATOR, userId));
    assert.equal(await administrators(), 0);
    done(await addPlatformAdministrator(postgres, OPERATOR, 'ops@corp.test'));
    assert.equal(await signIn('ops', []), userId);
    assert.equal(await administrators(), 1);
  });
});
