// Limits how many keys, tokens, teams and members there may be. Without limits, one tenant could burden the lists,
// look-ups and backups of everybody. The operator, by command or ADMIN_TOKEN, may exceed the limits.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import type { PostgresClient } from '../pool.ts';

interface Count {
  readonly max: number;
  /** `$1`: the organization, or the person. `$2`: the person within it, or null. `$3`: where counting stops. */
  readonly statement: string;
  readonly words: string;
}

/** An expired key counts until it is revoked, since its expiry can be changed. */
const COUNTS = {
  keysOfOrganization: {
    max: 5_000,
    statement: `SELECT count(*)::integer AS count FROM (SELECT FROM api_keys
        WHERE organization_id = $1 AND $2::uuid IS NULL AND revoked_at IS NULL LIMIT $3) counted`,
    words: 'the organization has 5,000 inference keys that are not revoked',
  },
  keysOfMember: {
    max: 100,
    statement: `SELECT count(*)::integer AS count FROM (SELECT FROM api_keys
        WHERE organization_id = $1 AND user_id = $2 AND revoked_at IS NULL LIMIT $3) counted`,
    words: 'the member has 100 inference keys in the organization that are not revoked',
  },
  tokensOfUser: {
    max: 100,
    statement: `SELECT count(*)::integer AS count FROM (SELECT FROM access_tokens
        WHERE user_id = $1 AND $2::uuid IS NULL AND kind = 'token' AND revoked_at IS NULL AND expires_at > now()
        LIMIT $3) counted`,
    words: 'the user has 100 access tokens that are neither revoked nor expired',
  },
  teamsOfOrganization: {
    max: 1_000,
    statement: `SELECT count(*)::integer AS count FROM (SELECT FROM teams
        WHERE organization_id = $1 AND $2::uuid IS NULL LIMIT $3) counted`,
    words: 'the organization has 1,000 teams',
  },
  membersOfOrganization: {
    max: 10_000,
    statement: `SELECT count(*)::integer AS count FROM (SELECT FROM memberships
        WHERE organization_id = $1 AND $2::uuid IS NULL AND team_id IS NULL LIMIT $3) counted`,
    words: 'the organization has 10,000 members',
  },
} as const satisfies Record<string, Count>;

/**
 * null: one more may be added. A lock keeps others from adding one until the end of the transaction, so that two
 * transactions cannot both add the last. Must be called before the first write.
 */
export async function refuseCount(
  client: PostgresClient,
  actor: Actor,
  name: keyof typeof COUNTS,
  ownerId: string,
  userId?: string,
): Promise<Refused | null> {
  if (actor.kind !== 'token') return null;
  const { max, statement, words } = COUNTS[name];
  const values = [ownerId, userId ?? null];
  await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${name} ${values.join(' ')}`]);
  const { rows } = await client.query<{ count: number }>(statement, [...values, max]);
  return (rows[0]?.count ?? 0) < max ? null : { refused: 'conflict', reason: `${words}, which is the maximum` };
}
