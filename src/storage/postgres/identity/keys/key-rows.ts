// Reads rows of api_keys for all operations on keys: finds a key in its organization, and turns a row into a key.

import type { Key, KeyReference } from '../../../../domain/identity/api-key.ts';
import { areUuids } from '../../../../domain/identity/names.ts';
import type { Refused } from '../../../../domain/refusals/refused.ts';
import type { PostgresClient } from '../../pool.ts';
import { NOT_FOUND } from '../change.ts';
import { MODEL_ACCESS_COLUMNS, type ModelAccessRow, toModelAccess } from '../model-access-rows.ts';
import { createdAtMs, PAGE_COLUMNS } from '../page.ts';

export interface KeyRow extends ModelAccessRow {
  readonly id: string;
  readonly created_us: string;
  readonly name: string;
  readonly key_prefix: string;
  readonly key_hash: Buffer;
  readonly team_id: string | null;
  readonly user_id: string | null;
  readonly user_pays: boolean;
  readonly from_configuration: boolean;
  readonly expires_at_ms: number | null;
  readonly revoked_at_ms: number | null;
  readonly previous_until_ms: number | null;
}

export const KEY_COLUMNS = `${PAGE_COLUMNS}, t.name, t.key_prefix, t.key_hash, t.team_id, t.user_id,
  ${MODEL_ACCESS_COLUMNS}, (w.user_id IS NOT NULL) AS user_pays,
  t.from_configuration,
  (extract(epoch FROM t.expires_at) * 1000)::double precision AS expires_at_ms,
  floor(extract(epoch FROM t.revoked_at) * 1000)::double precision AS revoked_at_ms,
  (SELECT floor(extract(epoch FROM max(valid_until)) * 1000)::double precision FROM api_key_previous_secrets p
    WHERE p.api_key_id = t.id AND p.valid_until > now()) AS previous_until_ms`;
export const KEY_SOURCE = 'api_keys t LEFT JOIN wallets w ON w.id = t.wallet_id';

const FIND_KEY = `SELECT ${KEY_COLUMNS} FROM ${KEY_SOURCE} WHERE t.organization_id = $1 AND t.id = $2
  AND ($3::uuid IS NULL OR t.user_id = $3)`;
const LOCK_KEY = `${FIND_KEY} FOR UPDATE OF t`;

export interface FoundKey {
  readonly key: Key;
  readonly hash: Buffer;
  readonly fromConfiguration: boolean;
}

/** `lock`: nobody else can change the key until the end of the transaction. */
export async function findKey(
  client: PostgresClient,
  { organizationId, keyId, userId }: KeyReference,
  lock?: 'lock',
): Promise<FoundKey | Refused> {
  if (!areUuids(organizationId, keyId, ...(userId === undefined ? [] : [userId]))) return NOT_FOUND;
  const { rows } = await client.query<KeyRow>(lock === undefined ? FIND_KEY : LOCK_KEY, [
    organizationId,
    keyId,
    userId ?? null,
  ]);
  return rows[0] === undefined
    ? NOT_FOUND
    : { key: toKey(rows[0]), hash: rows[0].key_hash, fromConfiguration: rows[0].from_configuration };
}

export function toKey(row: KeyRow): Key {
  return {
    id: row.id,
    name: row.name,
    prefix: row.key_prefix,
    teamId: row.team_id,
    userId: row.user_id,
    payer: row.user_pays ? 'user' : 'organization',
    ...toModelAccess(row),
    createdAtMs: createdAtMs(row),
    expiresAtMs: row.expires_at_ms,
    revokedAtMs: row.revoked_at_ms,
    previousSecretUntilMs: row.previous_until_ms,
  };
}
