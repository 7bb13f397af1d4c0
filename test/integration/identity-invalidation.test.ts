// Which remembered credentials a change reaches: those it is about, in every process that listens, and nobody else's.
// Counted are the store's look-ups.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { Actor } from '../../src/domain/identity/actor.ts';
import { hashCredential } from '../../src/domain/identity/key-hash.ts';
import { followChanges } from '../../src/gateway/follow-changes.ts';
import type { HeldCatalog } from '../../src/gateway/generation/held-catalog.ts';
import type { HeldGuardrails } from '../../src/gateway/generation/held-guardrails.ts';
import type { PostingFence } from '../../src/gateway/generation/posting-fence.ts';
import type { QuotaLeases } from '../../src/generation/admission/leases/quota-leases.ts';
import { Authenticator } from '../../src/generation/identity/authenticate.ts';
import type { HeldOwnKeys } from '../../src/generation/own-keys/held-own-keys.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { findPrincipalByCredentialHash } from '../../src/storage/postgres/catalog/credentials.ts';
import { notifyCatalogChanged, notifyPrincipalsChanged } from '../../src/storage/postgres/changes.ts';
import { createKey, revokeKey, updateKey } from '../../src/storage/postgres/identity/keys/keys.ts';
import { rotateKey } from '../../src/storage/postgres/identity/keys/rotate-key.ts';
import { replaceLimits } from '../../src/storage/postgres/identity/limits.ts';
import { addMember, listMembers, removeMember, setMemberRole } from '../../src/storage/postgres/identity/members.ts';
import { setModelAccess } from '../../src/storage/postgres/identity/model-access.ts';
import { createOrganization, updateOrganization } from '../../src/storage/postgres/identity/organizations.ts';
import {
  addPlatformAdministrator,
  removePlatformAdministrator,
} from '../../src/storage/postgres/identity/platform-administrators.ts';
import { createTeam, updateTeam } from '../../src/storage/postgres/identity/teams.ts';
import { createToken, revokeToken, setActiveOrganization } from '../../src/storage/postgres/identity/tokens.ts';
import type { Listener } from '../../src/storage/postgres/listen.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { done } from '../support/refused.ts';
import { waitFor } from '../support/waiting.ts';

const secrets = secretsOf(randomBytes(32));
const { pepper } = secrets;
const OPERATOR: Actor = { kind: 'cli', userId: null, label: 'test' };
const LIMITS = { setBy: 'organization', limits: [{ kind: 'requests_per_minute', limit: 5n }] } as const;

/** Notes which ids it was told of. */
class HearingAuthenticator extends Authenticator {
  readonly heard: string[] = [];
  override forget(id: string): void {
    super.forget(id);
    this.heard.push(id);
  }
}

describe('what a change makes gateways ask again', () => {
  let server: TestPostgres;
  let postgres: Postgres;
  let listener: Listener;
  let authenticator: HearingAuthenticator;
  let reloads = 0;
  let guardrailReloads = 0;
  let isAway = false;
  /** What was told that changes may have been missed. */
  const inDoubt: string[] = [];
  let organizationId: string;
  let teamId: string;
  let userId: string;
  let credentials: Record<
    'teamKey' | 'plainKey' | 'ownerToken' | 'memberToken' | 'bystander',
    { id: string; secret: string }
  >;
  const lookUps = new Map<string, number>();

  before(async () => {
    server = await startTestPostgres();
    const url = await server.createDatabase();
    postgres = createPostgres({ url, log: silentLog });
    authenticator = new HearingAuthenticator(async (credential) => {
      lookUps.set(credential, (lookUps.get(credential) ?? 0) + 1);
      if (isAway) throw new Error('away');
      return findPrincipalByCredentialHash(postgres, hashCredential(pepper, credential));
    }, systemClock);
    const catalog = {
      mayHaveChanged: () => {
        reloads += 1;
      },
    } as unknown as HeldCatalog;
    listener = await followChanges({
      url,
      log: silentLog,
      catalog,
      guardrails: {
        changed: () => undefined,
        mayHaveChanged: () => {
          guardrailReloads += 1;
        },
      } as unknown as HeldGuardrails,
      authenticator,
      ownKeys: {
        forget: () => undefined,
        forgetAll: () => undefined,
        markAllUncertain: () => inDoubt.push('own keys'),
      } as unknown as HeldOwnKeys,
      ownKeyChecks: { start: () => undefined },
      leases: { renewAll: () => inDoubt.push('leases') } as unknown as QuotaLeases,
      postingFence: {} as PostingFence,
      epoch: 1,
    });

    organizationId = done(
      await createOrganization(postgres, OPERATOR, { slug: 'acme', billing: 'none', ownerEmail: 'owner@acme.test' }),
    ).id;
    const other = done(
      await createOrganization(postgres, OPERATOR, { slug: 'other', billing: 'none', ownerEmail: 'owner@other.test' }),
    );
    const scope = { organizationId, teamId: null };
    const ownerId = done(await listMembers(postgres, scope)).items[0]?.userId ?? '';
    userId = done(await addMember(postgres, OPERATOR, scope, { email: 'member@acme.test', role: 'member' })).userId;
    teamId = done(await createTeam(postgres, OPERATOR, { organizationId, slug: 'team' })).id;
    const tokenOf = async (ofUser: string) =>
      done(
        await createToken(postgres, secrets, OPERATOR, {
          userId: ofUser,
          name: 'token',
          lifetimeSeconds: 3_600,
          organizationId,
        }),
      );
    credentials = {
      teamKey: done(await createKey(postgres, secrets, OPERATOR, { organizationId, name: 'team', teamId, userId })),
      plainKey: done(await createKey(postgres, secrets, OPERATOR, { organizationId, name: 'plain' })),
      ownerToken: await tokenOf(ownerId),
      memberToken: await tokenOf(userId),
      bystander: done(await createKey(postgres, secrets, OPERATOR, { organizationId: other.id, name: 'bystander' })),
    };
  });
  after(async () => {
    await listener?.close();
    await postgres?.close();
    await server?.stop();
  });

  /** Whose credentials are looked up again, when everybody comes back after it. */
  async function askedAgainAfter(change: () => Promise<unknown>): Promise<string[]> {
    const everybody = Object.entries(credentials);
    const present = () =>
      Promise.all(everybody.map(async ([, { secret }]) => authenticator.identify(`Bearer ${secret}`, null)));
    await present();
    lookUps.clear();
    done((await change()) as object);
    // Notifications arrive in the order of their transactions.
    const marker = randomBytes(8).toString('hex');
    await notifyPrincipalsChanged(postgres, [marker]);
    while (!authenticator.heard.includes(marker)) await new Promise((resolve) => setTimeout(resolve, 2));
    await present();
    return everybody.filter(([, { secret }]) => lookUps.get(secret) !== undefined).map(([name]) => name);
  }

  const CHANGES: Readonly<Record<string, { change: () => Promise<unknown>; reaches: readonly string[] }>> = {
    'a key, a token, a team, a member and an organization are made': {
      change: async () => {
        for (let index = 0; index < 40; index += 1) {
          done(
            await createKey(postgres, secrets, OPERATOR, {
              organizationId,
              name: `made ${index}`,
              userId,
              payer: 'user',
            }),
          );
        }
        done(
          await createToken(postgres, secrets, OPERATOR, { userId, name: 'made', lifetimeSeconds: 60, organizationId }),
        );
        done(await createTeam(postgres, OPERATOR, { organizationId, slug: 'made' }));
        done(
          await addMember(
            postgres,
            OPERATOR,
            { organizationId, teamId: null },
            { email: 'made@acme.test', role: 'member' },
          ),
        );
        return createOrganization(postgres, OPERATOR, { slug: 'made', billing: 'none', ownerEmail: 'made@acme.test' });
      },
      reaches: [],
    },
    'the catalog changes': {
      change: async () => {
        await notifyCatalogChanged(postgres);
        return {};
      },
      reaches: [],
    },
    'a team is renamed': {
      change: () => updateTeam(postgres, OPERATOR, { organizationId, teamId }, { displayName: 'Renamed' }),
      reaches: [],
    },
    'a key is changed': {
      change: () => updateKey(postgres, OPERATOR, { organizationId, keyId: credentials.plainKey.id }, { name: 'new' }),
      reaches: ['plainKey'],
    },
    'a key is rotated': {
      change: () =>
        rotateKey(
          postgres,
          secrets,
          OPERATOR,
          { organizationId, keyId: credentials.plainKey.id },
          { overlapSeconds: 60 },
        ),
      reaches: ['plainKey'],
    },
    'a key’s limits are changed': {
      change: () =>
        replaceLimits(postgres, OPERATOR, { kind: 'key', organizationId, keyId: credentials.plainKey.id }, LIMITS),
      reaches: ['plainKey'],
    },
    'a team’s limits are changed': {
      change: () => replaceLimits(postgres, OPERATOR, { kind: 'team', organizationId, teamId }, LIMITS),
      reaches: ['teamKey'],
    },
    'a team’s models are changed': {
      change: () =>
        setModelAccess(
          postgres,
          OPERATOR,
          { kind: 'team', organizationId, teamId },
          { setBy: 'organization', models: null },
        ),
      reaches: ['teamKey'],
    },
    'a member’s limits are changed': {
      change: () => replaceLimits(postgres, OPERATOR, { kind: 'user', organizationId, userId }, LIMITS),
      reaches: ['teamKey', 'memberToken'],
    },
    'a member joins a team': {
      change: () =>
        addMember(postgres, OPERATOR, { organizationId, teamId }, { email: 'member@acme.test', role: 'member' }),
      reaches: ['teamKey', 'memberToken'],
    },
    'a member’s role is changed': {
      change: () => setMemberRole(postgres, OPERATOR, { organizationId, teamId: null }, { userId, role: 'admin' }),
      reaches: ['teamKey', 'memberToken'],
    },
    'a platform administrator is made': {
      change: () => addPlatformAdministrator(postgres, OPERATOR, 'member@acme.test'),
      reaches: ['teamKey', 'memberToken'],
    },
    'a platform administrator is unmade': {
      change: () => removePlatformAdministrator(postgres, OPERATOR, userId),
      reaches: ['teamKey', 'memberToken'],
    },
    'an organization’s limits are changed': {
      change: () => replaceLimits(postgres, OPERATOR, { kind: 'organization', organizationId }, LIMITS),
      reaches: ['teamKey', 'plainKey', 'ownerToken', 'memberToken'],
    },
    'an organization’s models are changed': {
      change: () =>
        setModelAccess(
          postgres,
          OPERATOR,
          { kind: 'organization', organizationId },
          { setBy: 'platform', models: null },
        ),
      reaches: ['teamKey', 'plainKey', 'ownerToken', 'memberToken'],
    },
    'an organization’s billing is changed': {
      change: () => updateOrganization(postgres, OPERATOR, organizationId, { billing: 'prepaid' }),
      reaches: ['teamKey', 'plainKey', 'ownerToken', 'memberToken'],
    },
    'a token works in no organization': {
      change: () =>
        setActiveOrganization(postgres, OPERATOR, { tokenId: credentials.ownerToken.id, userId: null }, null),
      reaches: ['ownerToken'],
    },
    'a token is revoked': {
      change: () => revokeToken(postgres, OPERATOR, { tokenId: credentials.ownerToken.id, userId: null }),
      reaches: ['ownerToken'],
    },
    // Who was refused is looked up at every request.
    'a key is revoked': {
      change: () => revokeKey(postgres, OPERATOR, { organizationId, keyId: credentials.plainKey.id }),
      reaches: ['plainKey', 'ownerToken'],
    },
    'a member leaves': {
      change: () => removeMember(postgres, OPERATOR, { organizationId, teamId: null }, userId),
      reaches: ['teamKey', 'plainKey', 'ownerToken', 'memberToken'],
    },
  };

  for (const [what, { change, reaches }] of Object.entries(CHANGES)) {
    test(what, async () => {
      assert.deepEqual(await askedAgainAfter(change), reaches);
    });
  }

  test('after all of it the bystander was never asked about again, who was revoked is refused, and the catalog was loaded once for a change', async () => {
    const refused = { kind: 'unauthorized' };
    for (const name of ['teamKey', 'plainKey', 'ownerToken'] as const) {
      assert.deepEqual(await authenticator.identify(`Bearer ${credentials[name].secret}`, null), refused, name);
    }
    assert.equal(lookUps.has(credentials.bystander.secret), false);
    // Once more when the gateway began to listen, for what was changed while it started.
    assert.equal(reloads, 2);
  });

  test('what another version of ours tells is taken for a change of everything', async () => {
    lookUps.clear();
    const before = [reloads, guardrailReloads];
    await postgres.query(`SELECT pg_notify('tollgate_changed', 'identity')`);
    const marker = randomBytes(8).toString('hex');
    await notifyPrincipalsChanged(postgres, [marker]);
    while (!authenticator.heard.includes(marker)) await new Promise((resolve) => setTimeout(resolve, 2));
    await authenticator.identify(`Bearer ${credentials.bystander.secret}`, null);
    assert.equal(lookUps.get(credentials.bystander.secret), 1);
    assert.deepEqual(
      [reloads, guardrailReloads],
      before.map((count) => count + 1),
    );
  });

  test('what was changed while nobody listened is looked up, and nothing is forgotten before', async () => {
    const credential = `Bearer ${credentials.bystander.secret}`;
    const principal = await authenticator.identify(credential, null);
    lookUps.clear();
    const before = [reloads, guardrailReloads];
    await postgres.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'tollgate listener'`,
    );
    await waitFor(
      'the connection to be made anew',
      () => inDoubt,
      ({ length }) => length > 0,
    );
    assert.deepEqual(inDoubt, ['own keys', 'leases']);
    assert.deepEqual(
      [reloads, guardrailReloads],
      before.map((count) => count + 1),
    );
    isAway = true;
    assert.deepEqual(await authenticator.identify(credential, null), principal);
    assert.equal(lookUps.get(credentials.bystander.secret), 1);
  });
});
