// How many keys, tokens, teams and members a tenant may have: the last one fits, the next one is refused with the
// count's name, also when both come at once.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Actor } from '../../src/domain/identity/actor.ts';
import { isRefused } from '../../src/domain/refusals/refused.ts';
import { createKey, revokeKey, updateKey } from '../../src/storage/postgres/identity/keys/keys.ts';
import { addMember, listMembers } from '../../src/storage/postgres/identity/members.ts';
import { createOrganization } from '../../src/storage/postgres/identity/organizations.ts';
import { createTeam } from '../../src/storage/postgres/identity/teams.ts';
import { createToken } from '../../src/storage/postgres/identity/tokens.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { done } from '../support/refused.ts';

const secrets = secretsOf(randomBytes(32));
const OPERATOR: Actor = { kind: 'cli', userId: null, label: 'test' };

describe('counts', () => {
  let server: TestPostgres;
  let postgres: Postgres;
  let organizationId: string;
  let ownerId: string;
  let owner: Actor;
  let made = 0;

  before(async () => {
    server = await startTestPostgres();
  });
  after(() => server.stop());
  beforeEach(async () => {
    postgres = createPostgres({ url: await server.createDatabase(), log: silentLog });
    organizationId = done(
      await createOrganization(postgres, OPERATOR, { slug: 'acme', billing: 'none', ownerEmail: 'owner@acme.test' }),
    ).id;
    ownerId = done(await listMembers(postgres, { organizationId, teamId: null })).items[0]?.userId ?? '';
    owner = { kind: 'token', userId: ownerId, label: 'test' };
  });
  afterEach(() => postgres.close());

  const fresh = (what: string) => `${what}-${(made += 1)}`;
  const makeKey = (actor = owner, userId: string | null = null) =>
    createKey(postgres, secrets, actor, { organizationId, name: fresh('key'), userId });
  const makeToken = (actor = owner) =>
    createToken(postgres, secrets, actor, { userId: ownerId, name: fresh('token'), lifetimeSeconds: 60 });
  const makeTeam = (actor = owner) => createTeam(postgres, actor, { organizationId, slug: fresh('team') });
  const makeMember = (actor = owner) =>
    addMember(postgres, actor, { organizationId, teamId: null }, { email: `${fresh('m')}@acme.test`, role: 'member' });

  const fillKeys = (count: number, userId: string | null, expired = false) =>
    postgres.query(
      `INSERT INTO api_keys (organization_id, user_id, name, key_hash, key_prefix, expires_at)
       SELECT $1::uuid, $2::uuid, 'filled ' || n || coalesce($2::uuid::text, ''),
         sha256(convert_to($1::uuid::text || coalesce($2::uuid::text, '') || n, 'UTF8')), 'tg-', CASE WHEN $4
           THEN now() END
         FROM generate_series(1, $3::integer) n`,
      [organizationId, userId, count, expired],
    );

  const CASES: Readonly<
    Record<string, { fill: () => Promise<unknown>; make: (actor?: Actor) => Promise<unknown>; words: string }>
  > = {
    'keys of an organization': {
      fill: () => fillKeys(4_999, null),
      make: (actor) => makeKey(actor),
      words: 'the organization has 5,000 inference keys',
    },
    'keys of a member': {
      fill: () => fillKeys(99, ownerId),
      make: (actor) => makeKey(actor, ownerId),
      words: 'the member has 100 inference keys',
    },
    'tokens of a user': {
      fill: () =>
        postgres.query(
          `INSERT INTO access_tokens (user_id, name, token_hash, token_prefix, expires_at)
           SELECT $1::uuid, 'filled', sha256(convert_to($1::uuid::text || n, 'UTF8')), 'tgt-',
             now() + interval '1 hour' FROM generate_series(1, 99) n`,
          [ownerId],
        ),
      make: makeToken,
      words: 'the user has 100 access tokens',
    },
    'teams of an organization': {
      fill: () =>
        postgres.query(
          `INSERT INTO teams (organization_id, slug) SELECT $1, 'filled-' || n FROM generate_series(1, 999) n`,
          [organizationId],
        ),
      make: makeTeam,
      words: 'the organization has 1,000 teams',
    },
    'members of an organization': {
      fill: () =>
        postgres.query(
          `WITH made AS (INSERT INTO users (email) SELECT n || '@filled.test' FROM generate_series(1, 9998) n
            RETURNING id)
           INSERT INTO memberships (organization_id, user_id, role) SELECT $1, id, 'member' FROM made`,
          [organizationId],
        ),
      make: makeMember,
      words: 'the organization has 10,000 members',
    },
  };

  for (const [what, { fill, make, words }] of Object.entries(CASES)) {
    test(`${what}: of eight who come at once for the last place one gets it; the operator may go beyond`, async () => {
      await fill();
      const answers = await Promise.all(Array.from({ length: 8 }, () => make()));
      const refusals = answers.filter(isRefused);
      assert.equal(refusals.length, 7, JSON.stringify(answers));
      for (const { refused, reason } of refusals)
        assert.deepEqual([refused, reason?.startsWith(words)], ['conflict', true], reason);
      done(await make(OPERATOR));
    });
  }

  test('a key that has expired counts, since it can be given more time; a revoked one makes room', async () => {
    await fillKeys(99, ownerId, true);
    const last = done(await makeKey(owner, ownerId));
    assert.ok(isRefused(await makeKey(owner, ownerId)));
    done(await updateKey(postgres, owner, { organizationId, keyId: last.id }, { expiresAtMs: null }));
    done(await revokeKey(postgres, owner, { organizationId, keyId: last.id }));
    done(await makeKey(owner, ownerId));
    done(await makeKey(owner));
  });
});
