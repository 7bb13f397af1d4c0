// Inference keys of the console's playground: they live for a quarter of an hour. Those of before that have expired are
// revoked when the next is made, so that they do not add up to the most that a person may have.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Key, KeyWithSecret } from '../../../domain/identity/api-key.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import type { Postgres } from '../pool.ts';
import { createKey, type KeySecrets } from './keys.ts';

const PREFIX = 'playground ';

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
  { organizationId, userId, payer, isPlatformAdmin, expiresAtMs }: PlaygroundKeyParams,
): Promise<KeyWithSecret | Refused> {
  await postgres.query(
    `UPDATE api_keys SET revoked_at = now()
      WHERE organization_id = $1 AND revoked_at IS NULL AND expires_at < now() AND starts_with(name, $2)`,
    [organizationId, PREFIX],
  );
  const key = { organizationId, name: `${PREFIX}${new Date(expiresAtMs).toISOString()}`, expiresAtMs };
  const made = await createKey(postgres, secrets, actor, { ...key, userId, payer });
  // One who administers the platform need not be a member.
  const isForeign = isRefused(made) && made.refused === 'not_found' && isPlatformAdmin && userId !== null;
  return isForeign ? createKey(postgres, secrets, actor, key) : made;
}
