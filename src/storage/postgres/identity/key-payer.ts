// Whose will a key's payer needs: a user's own wallet is charged by keys of that user's making, or of the operator's;
// an organization's by its administrators'.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Key, KeyName } from '../../../domain/identity/api-key.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import type { PostgresClient } from '../pool.ts';

const NOT_YOURS_TO_CHARGE: Refused = {
  refused: 'permission_denied',
  reason: 'a key that its user pays for is theirs to make and change, or the operator’s',
};
const NOT_YOURS_TO_CHANGE: Refused = {
  refused: 'permission_denied',
  reason: 'a key that the organization pays for is its administrators’ to change',
};

/**
 * null: the actor may let a key charge this payer. Asked before anything is looked up, so that a refusal tells nothing.
 */
export async function refuseCharging(
  client: PostgresClient,
  actor: Actor,
  { payer, userId }: { payer: Key['payer']; userId: string | null },
): Promise<Refused | null> {
  // The command line and the holder of ADMIN_TOKEN speak for the operator, and so do platform administrators.
  if (payer === 'organization' || actor.kind !== 'token' || actor.userId === userId) return null;
  const { rowCount } = await client.query('SELECT FROM platform_administrators WHERE user_id = $1', [actor.userId]);
  return rowCount > 0 ? null : NOT_YOURS_TO_CHARGE;
}

/**
 * null: the actor may give the key another secret, or let it live longer or do more. Ending a key is not asked about
 * here: it charges nobody.
 */
export async function refuseKeyChange(
  client: PostgresClient,
  actor: Actor,
  { userId }: Pick<KeyName, 'userId'>,
  key: Key,
): Promise<Refused | null> {
  if (userId !== undefined && key.payer === 'organization') return NOT_YOURS_TO_CHANGE;
  return refuseCharging(client, actor, key);
}
