// Gives a key a new secret. The old one stays valid during the overlap, so that nobody has to switch at one instant.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { KeyReference, KeyWithSecret } from '../../../domain/identity/api-key.ts';
import { generateKey } from '../../../domain/identity/generate-credential.ts';
import { derivePepper, hashCredential, keyPrefix } from '../../../domain/identity/key-hash.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { notifyPrincipalsChanged } from '../changes.ts';
import type { Postgres } from '../pool.ts';
import { recordAudit } from './audit.ts';
import { change, conflict, invalid } from './change.ts';
import { refuseKeyChange } from './key-payer.ts';
import { findKey } from './key-rows.ts';
import type { KeySecrets } from './keys.ts';

const OVERLAP_SECONDS_MAX = 30 * 24 * 3600;

/**
 * With an overlap of 0 the old secret ends at once; the maximum is 30 days. Rotating again ends all secrets but the two
 * newest. `conflict`: the key is revoked.
 */
export async function rotateKey(
  postgres: Postgres,
  { masterKey }: KeySecrets,
  actor: Actor,
  reference: KeyReference,
  { overlapSeconds }: { overlapSeconds: number },
): Promise<KeyWithSecret | Refused> {
  if (!Number.isInteger(overlapSeconds) || overlapSeconds < 0 || overlapSeconds > OVERLAP_SECONDS_MAX) {
    return invalid('overlapSeconds', `must be a whole number from 0 to ${OVERLAP_SECONDS_MAX}`);
  }
  const secret = generateKey();
  const hash = hashCredential(derivePepper(masterKey), secret);
  return change(postgres, 'name', async (client) => {
    const before = await findKey(client, reference, 'lock');
    if (isRefused(before)) return before;
    const refused = await refuseKeyChange(client, actor, reference, before.key);
    if (refused !== null) return refused;
    if (before.key.revokedAtMs !== null) return conflict('key', 'is revoked');
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
    const after = await findKey(client, reference);
    if (isRefused(after)) return after;
    const { organizationId, keyId } = reference;
    await recordAudit(client, actor, {
      organizationId,
      action: 'key.rotate',
      target: { kind: 'key', id: keyId },
      before: before.key,
      after: after.key,
    });
    // All secrets of a key have the same principal, and its id invalidates them all.
    await notifyPrincipalsChanged(client, [reference.keyId]);
    return { ...after.key, secret };
  });
}
