// Makes inference keys for the console's playground, which live for a quarter of an hour. Making a key revokes the
// person's expired ones, so that they do not count towards the most keys that a person may have.

import type { Actor } from '../../../../domain/identity/actor.ts';
import type { Key, KeyWithSecret } from '../../../../domain/identity/api-key.ts';
import { isRefused, type Refused } from '../../../../domain/refusals/refused.ts';
import type { Postgres } from '../../pool.ts';
import { createKey, type KeySecrets, recordRevocations } from './keys.ts';

const PREFIX = 'playground ';
/**
 * Recognizes playground keys by their name, which contains the instant of their expiry. `$2`: the user. `$3`: whether
 * the user is a platform administrator, whose playground keys have no user.
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
  // A platform administrator who is not a member gets a key of the organization, without a user.
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
