// Finds the own keys that must be verified with their providers: keys that were refused in a request, and once an hour
// invalid keys, which recover by themselves when their provider accepts them again.

import type { OwnKeyReference } from '../../../domain/own-keys/key-changes.ts';
import type { PostgresClient } from '../pool.ts';

/** Notifies gateways that keys are due for verification. */
export const OWN_KEYS_DUE_CHANNEL = 'tollgate_own_keys_due';

/**
 * A claimed key is due again after half a minute, since the process that claimed it may have died. The half minute also
 * bounds how often a provider is asked that accepts a key in a verification and refuses it in requests.
 */
const DUE = `removed_at IS NULL AND state <> 'disabled'
  AND (suspected_at IS NOT NULL AND (checked_at IS NULL OR checked_at < now() - interval '30 seconds')
    OR state = 'invalid' AND checked_at < now() - interval '1 hour')`;

/** Notifies the gateways if keys are due. Returns how many are. */
export async function announceKeysDue(postgres: PostgresClient): Promise<number> {
  const { rows } = await postgres.query<{ count: number }>(
    `WITH due AS MATERIALIZED (SELECT count(*)::integer AS count FROM own_keys WHERE ${DUE})
     SELECT count, CASE WHEN count > 0 THEN pg_notify($1, '') END FROM due`,
    [OWN_KEYS_DUE_CHANNEL],
  );
  return rows[0]?.count ?? 0;
}

/**
 * Claims due keys that no other process has claimed. The first key of each organization comes before any second one,
 * and an organization gets at most `shareMax` keys. Otherwise, an organization whose providers do not answer would
 * delay the keys of all others.
 */
export async function claimKeysToCheck(
  postgres: PostgresClient,
  { max, shareMax }: { readonly max: number; readonly shareMax: number },
): Promise<readonly OwnKeyReference[]> {
  const { rows } = await postgres.query<{ id: string; organization_id: string }>(
    `WITH first AS MATERIALIZED (
       SELECT id
         FROM (SELECT id, checked_at,
                      row_number() OVER (PARTITION BY organization_id ORDER BY checked_at NULLS FIRST, id) AS place
                 FROM own_keys WHERE ${DUE}) AS due
        WHERE place <= $2 ORDER BY place, checked_at NULLS FIRST LIMIT $1),
     claimed AS MATERIALIZED (
       SELECT id FROM own_keys WHERE id IN (SELECT id FROM first) AND ${DUE} FOR UPDATE SKIP LOCKED)
     UPDATE own_keys AS t SET checked_at = now() FROM claimed WHERE t.id = claimed.id
     RETURNING t.id, t.organization_id`,
    [max, shareMax],
  );
  return rows.map(({ id, organization_id: organizationId }) => ({ organizationId, keyId: id }));
}

/** Records a verification in which the provider said nothing about the key. The key's state stays as it is. */
export async function recordNoVerdict(postgres: PostgresClient, { keyId }: OwnKeyReference): Promise<void> {
  await postgres.query('UPDATE own_keys SET checked_at = now(), suspected_at = NULL WHERE id = $1', [keyId]);
}
