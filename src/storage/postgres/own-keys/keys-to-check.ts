// Own keys about which their providers are to be asked: those that a request found refused, and, once an hour, those
// that are known to be invalid, which recover by themselves when their provider accepts them again.

import type { OwnKeyReference } from '../../../domain/own-keys/key-changes.ts';
import type { Postgres } from '../pool.ts';

export async function listKeysToCheck(postgres: Postgres, max: number): Promise<readonly OwnKeyReference[]> {
  const { rows } = await postgres.query<{ id: string; organization_id: string }>(
    `SELECT id, organization_id FROM own_keys
      WHERE removed_at IS NULL AND state <> 'disabled'
        AND (suspected_at IS NOT NULL OR (state = 'invalid' AND checked_at < now() - interval '1 hour'))
      ORDER BY checked_at NULLS FIRST LIMIT $1`,
    [max],
  );
  return rows.map(({ id, organization_id: organizationId }) => ({ organizationId, keyId: id }));
}

/** The provider was asked and has said nothing about the key: the key stays as it is. */
export async function recordNoVerdict(postgres: Postgres, { keyId }: OwnKeyReference): Promise<void> {
  await postgres.query('UPDATE own_keys SET checked_at = now(), suspected_at = NULL WHERE id = $1', [keyId]);
}
