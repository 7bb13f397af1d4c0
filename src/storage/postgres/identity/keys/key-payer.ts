// Decides who may make or change a key that charges a wallet: a user's own wallet only that user or the operator, an
// organization's wallet its administrators.

import type { Actor } from '../../../../domain/identity/actor.ts';
import type { Key, KeyReference } from '../../../../domain/identity/api-key.ts';
import type { Refused } from '../../../../domain/refusals/refused.ts';
import type { PostgresClient } from '../../pool.ts';

const NOT_YOURS_TO_CHARGE: Refused = {
  refused: 'permission_denied',
  reason: 'a key that its user pays for is theirs to make and change, or the operator’s',
};
const NOT_YOURS_TO_CHANGE: Refused = {
  refused: 'permission_denied',
  reason: 'a key that the organization pays for is its administrators’ to change',
};

/**
 * null: the actor may let a key charge this payer. This is checked before anything is looked up, so that a refusal
 * reveals nothing.
 */
export async function refuseCharging(
  client: PostgresClient,
  actor: Actor,
  { payer, userId }: { payer: Key['payer']; userId: string | null },
): Promise<Refused | null> {
  // The command line, the holder of ADMIN_TOKEN and platform administrators act for the operator.
  if (payer === 'organization' || actor.kind !== 'token' || actor.userId === userId) return null;
  const { rowCount } = await client.query('SELECT FROM platform_administrators WHERE user_id = $1', [actor.userId]);
  return rowCount > 0 ? null : NOT_YOURS_TO_CHARGE;
}

/**
 * null: the actor may give the key another secret, a later expiry or more access. Revoking a key is not checked here,
 * since it charges nobody.
 */
export async function refuseKeyChange(
  client: PostgresClient,
  actor: Actor,
  { userId }: Pick<KeyReference, 'userId'>,
  key: Key,
): Promise<Refused | null> {
  if (userId !== undefined && key.payer === 'organization') return NOT_YOURS_TO_CHANGE;
  return refuseCharging(client, actor, key);
}
