// Inference keys of the console's playground: they live for a quarter of an hour. Those of the same person that have
// expired are revoked when the next is made, so that they do not add up to the most that a person may have.

import type { Actor } from '../../../../domain/identity/actor.ts';
import type { Key, KeyWithSecret } from '../../../../domain/identity/api-key.ts';
import { isRefused, type Refused } from '../../../../domain/refusals/refused.ts';
import type { Postgres } from '../../pool.ts';
import { createKey, type KeySecrets, recordRevocations } from './keys.ts';

const PREFIX = 'playground ';
/**
 * By the name that only the playground gives: with the instant at which the key expires. `$2`: whose; keys of nobody
 * are those of the platform's administrators, `$3`.
 */
const REVOKE_EXPIRED = `UPDATE api_keys SET revoked_at = now()
  WHERE organization_id = $1 AND (user_id = $2 OR ($3 AND user_id IS NULL)) AND revoked_at IS NULL
    AND expires_at < now()
    AND name = '${PREFIX}' || to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  RETURNING id`;

export interface PlaygroundKeyParams {
  readonly organizationId: string;
  /** null: an administrator of the platform, for whom the organization's own key is made. */
  readonly userId: string | null;
  readonly payer: Key['payer'];
  readonly isPlatformAdmin: boolean;
  readonly expiresAtMs: number;
}

export async function createPlaygroundKey(
  postgres: Postgres,
  secrets: KeySecrets,
  actor: Actor,
  params: PlaygroundKeyParams,
): Promise<KeyWithSecret | Refused> {
  const { organizationId, userId, payer, isPlatformAdmin, expiresAtMs } = params;
  await revokeExpired(postgres, actor, params);
  const key = { organizationId, name: `${PREFIX}${new Date(expiresAtMs).toISOString()}`, expiresAtMs };
  const made = await createKey(postgres, secrets, actor, { ...key, userId, payer });
  // One who administers the platform need not be a member.
  const isForeign = isRefused(made) && made.refused === 'not_found' && isPlatformAdmin && userId !== null;
  return isForeign ? createKey(postgres, secrets, actor, key) : made;
}

async function revokeExpired(
  postgres: Postgres,
  actor: Actor,
  { organizationId, userId, isPlatformAdmin }: PlaygroundKeyParams,
): Promise<void> {
  await postgres.transaction(async (client) => {
    const { rows } = await client.query<{ id: string }>(REVOKE_EXPIRED, [organizationId, userId, isPlatformAdmin]);
    await recordRevocations(
      client,
      actor,
      organizationId,
      rows.map(({ id }) => id),
    );
  });
}
