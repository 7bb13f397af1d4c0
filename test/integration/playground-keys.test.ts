// Which keys a playground's next one ends: those of the same person that the playground made, once they have expired.
// Below HTTP, on a real Postgres.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Actor } from '../../src/domain/identity/actor.ts';
import { listAudit } from '../../src/storage/postgres/identity/audit.ts';
import { createKey, listKeys } from '../../src/storage/postgres/identity/keys/keys.ts';
import { createPlaygroundKey } from '../../src/storage/postgres/identity/keys/playground-keys.ts';
import { addMember } from '../../src/storage/postgres/identity/members.ts';
import { createOrganization } from '../../src/storage/postgres/identity/organizations.ts';
import { addPlatformAdministrator } from '../../src/storage/postgres/identity/platform-administrators.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { done } from '../support/refused.ts';

const secrets = secretsOf(randomBytes(32));
const OPERATOR: Actor = { kind: 'cli', userId: null, label: 'test' };
const personOf = (userId: string): Actor => ({ kind: 'token', userId, label: `person ${userId}` });
let server: TestPostgres;
let postgres: Postgres;
before(async () => {
  server = await startTestPostgres();
  postgres = createPostgres({ url: await server.createDatabase(), log: silentLog });
});
after(async () => {
  await postgres.close();
  await server.stop();
});

async function makePeople() {
  const { id: organizationId } = done(
    await createOrganization(postgres, OPERATOR, { slug: 'acme', billing: 'prepaid' }),
  );
  const member = async (name: string) =>
    done(await addMember(postgres, OPERATOR, { organizationId, teamId: null }, { email: name, role: 'member' })).userId;
  const platform = done(await addPlatformAdministrator(postgres, OPERATOR, 'root@platform.test')).userId;
  return { organizationId, ada: await member('ada@acme.test'), bob: await member('bob@acme.test'), platform };
}

test('a playground key ends the expired ones of the same person’s playground, in the audit log, and no other', async () => {
  const { organizationId, ada, bob, platform } = await makePeople();
  const play = async (userId: string, { expiresAtMs = Date.now() + 900_000, isPlatformAdmin = false } = {}) => {
    const payer = isPlatformAdmin ? 'organization' : 'user';
    const params = { organizationId, userId, payer, isPlatformAdmin, expiresAtMs } as const;
    return done(await createPlaygroundKey(postgres, secrets, personOf(userId), params));
  };
  const own = async (userId: string, name: string) => {
    const params = { organizationId, userId, name, payer: 'user', expiresAtMs: Date.now() + 900_000 } as const;
    return done(await createKey(postgres, secrets, personOf(userId), params));
  };
  const live = await play(ada);
  const extended = await play(ada, { expiresAtMs: Date.now() + 800_000 });
  const expired = await play(ada, { expiresAtMs: Date.now() + 700_000 });
  const ofBob = await play(bob);
  const ofPlatform = await play(platform, { isPlatformAdmin: true });
  assert.equal(ofPlatform.userId, null);
  const named = [
    await own(ada, 'playground of the summer school'),
    await own(ada, 'playground 2020-01-01T00:00:00.000Z'),
  ];
  const nobodys = done(await createKey(postgres, secrets, OPERATOR, { organizationId, name: 'playground of nobody' }));
  // Time passes: each expires a day earlier, and those of the playground are named by it.
  const ended = ({ id }: { readonly id: string }, isRenamed: boolean) =>
    postgres.query(
      `UPDATE api_keys SET expires_at = now() - interval '1 day', name = CASE WHEN $2 THEN 'playground ' || to_char(
         (now() - interval '1 day') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') ELSE name END
       WHERE id = $1`,
      [id, isRenamed],
    );
  for (const key of [expired, ofBob, ofPlatform]) await ended(key, true);
  for (const key of [extended, nobodys, ...named]) await ended(key, false);

  const revoked = async () => {
    const { items } = done(await listKeys(postgres, { organizationId, limit: 100 }));
    return items.filter((key) => key.revokedAtMs !== null).map(({ id }) => id);
  };
  assert.deepEqual(await revoked(), []);
  await play(ada);
  assert.deepEqual(await revoked(), [expired.id]);
  await play(platform, { isPlatformAdmin: true });
  assert.deepEqual((await revoked()).toSorted(), [expired.id, ofPlatform.id].toSorted());
  await play(bob);
  assert.deepEqual((await revoked()).toSorted(), [expired.id, ofPlatform.id, ofBob.id].toSorted());
  assert.ok(live.expiresAtMs !== null && live.expiresAtMs > Date.now());

  const { items } = done(await listAudit(postgres, { organizationId, limit: 200 }));
  const ends = items.filter(({ action }) => action === 'key.revoke');
  assert.deepEqual(Object.fromEntries(ends.map(({ actor, target }) => [target.id, actor.userId])), {
    [expired.id]: ada,
    [ofPlatform.id]: platform,
    [ofBob.id]: bob,
  });
  assert.equal(ends.length, 3);
});
