// Gives a key a new secret. The old one stays valid during the overlap, so that nobody has to switch at one instant.

import type { Actor } from '../../../../domain/identity/actor.ts';
import type { KeyReference, KeyWithSecret } from '../../../../domain/identity/api-key.ts';
import { generateKey } from '../../../../domain/identity/generate-credential.ts';
import { hashCredential, keyPrefix } from '../../../../domain/identity/key-hash.ts';
import { isRefused, type Refused } from '../../../../domain/refusals/refused.ts';
import type { Postgres } from '../../pool.ts';
import { change, invalid } from '../change.ts';
import { lockKeyToChange, recordKeyChange } from './key-changes.ts';
import type { KeySecrets } from './keys.ts';

const OVERLAP_SECONDS_MAX = 30 * 24 * 3600;

/**
 * With an overlap of 0 the old secret ends at once; the maximum is 30 days. Rotating again ends all secrets but the two
 * newest. `conflict`: the key is revoked.
 */
export async function rotateKey(
  postgres: Postgres,
  { pepper }: KeySecrets,
  actor: Actor,
  reference: KeyReference,
  { overlapSeconds }: { overlapSeconds: number },
): Promise<KeyWithSecret | Refused> {
  if (!Number.isInteger(overlapSeconds) || overlapSeconds < 0 || overlapSeconds > OVERLAP_SECONDS_MAX) {
    return invalid('overlapSeconds', `must be a whole number from 0 to ${OVERLAP_SECONDS_MAX}`);
  }
  const secret = generateKey();
  const hash = hashCredential(pepper, secret);
  return change(postgres, 'name', async (client) => {
    const before = await lockKeyToChange(client, actor, reference);
    if (isRefused(before)) return before;
    await client.query(
      'UPDATE api_key_previous_secrets SET valid_until = now() WHERE api_key_id = $1 AND valid_until > now()',
      [reference.keyId],
    );
    await client.query(
      `INSERT INTO api_key_previous_secrets (key_hash, api_key_id, valid_until)
        VALUES ($1, $2, now() + make_interval(secs => $3))`,
      [before.hash, reference.keyId, overlapSeconds],
    );
    await client.query('UPDATE api_keys SET key_hash = $3, key_prefix = $4 WHERE organization_id = $1 AND id = $2', [
      reference.organizationId,
      reference.keyId,
      hash,
      keyPrefix(secret),
    ]);
    const after = await recordKeyChange(client, actor, 'key.rotate', reference, before.key);
    return isRefused(after) ? after : { ...after, secret };
  });
}
