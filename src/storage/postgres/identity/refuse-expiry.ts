// Refuses an expiry in the past, whoever sets it. Keys are ended by an operation of their own, which the audit log
// shows and which takes effect everywhere at once.

import type { Refused } from '../../../domain/refusals/refused.ts';
import type { PostgresClient } from '../pool.ts';
import { invalid } from './change.ts';

interface Expiry {
  /** null: no expiry; undefined: the expiry stays as it is. */
  readonly wantedMs: number | null | undefined;
  /** The stored expiry, which may be given again even if it is past. */
  readonly storedMs: number | null;
  /** What the caller should do to end the key now, for the message. */
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
