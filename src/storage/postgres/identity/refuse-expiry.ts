// Refuses an expiry in the past, whoever sets it: what is to end now is ended by its own operation, which says so in
// the audit log and is heard everywhere at once.

import type { Refused } from '../../../domain/refusals/refused.ts';
import type { PostgresClient } from '../pool.ts';
import { invalid } from './change.ts';

interface Expiry {
  /** null: never. undefined: it stays as it is. */
  readonly wantedMs: number | null | undefined;
  /** What is stored may be said again. */
  readonly storedMs: number | null;
  /** How something ends now. */
  readonly instead: string;
}

export async function refuseExpiry(
  client: PostgresClient,
  { wantedMs, storedMs, instead }: Expiry,
): Promise<Refused | null> {
  if (wantedMs == null || wantedMs === storedMs) return null;
  const { rows } = await client.query<{ is_past: boolean }>(
    'SELECT to_timestamp($1::double precision / 1000) <= now() AS is_past',
    [wantedMs],
  );
  return rows[0]?.is_past === true ? invalid('expiresAt', `must be in the future; ${instead}`) : null;
}
