// Inference keys: made, found by name, revoked. A key is shown once, here; afterwards only its hash is known.

import { randomBytes } from 'node:crypto';
import { derivePepper, hashCredential, keyPrefix } from '../../domain/identity/key-hash.ts';
import { notifyKeysChanged } from './changes.ts';
import type { Postgres } from './pool.ts';

const KEY_BYTES = 32;

/** A new inference key: `tg-` and 43 characters. */
export function generateKey(): string {
  return `tg-${randomBytes(KEY_BYTES).toString('base64url')}`;
}

export interface KeyOrder {
  readonly organization: string;
  readonly name: string;
  readonly team?: string;
  readonly userEmail?: string;
  readonly expiresAtMs?: number;
}

export type CreateKeyResult =
  | { readonly ok: true; readonly id: string; readonly secret: string }
  | { readonly ok: false; readonly reason: 'unknown_organization' | 'unknown_team' | 'unknown_user' | 'name_taken' };

/** Makes a key for an organization, named by slug; the secret is in the answer and nowhere else. */
export async function createKey(postgres: Postgres, secrets: { masterKey: Buffer }, order: KeyOrder): Promise<CreateKeyResult> {
  const secret = generateKey();
  const hash = hashCredential(derivePepper(secrets.masterKey), secret);
  return postgres.transaction(async (client): Promise<CreateKeyResult> => {
    const { rows } = await client.query<{ organization_id: string; team_id: string | null; user_id: string | null }>(
      `SELECT o.id AS organization_id,
              (SELECT t.id FROM teams t WHERE t.organization_id = o.id AND t.slug = $2) AS team_id,
              (SELECT u.id FROM users u JOIN memberships m ON m.user_id = u.id
                WHERE m.organization_id = o.id AND lower(u.email) = lower($3) LIMIT 1) AS user_id
         FROM organizations o WHERE o.slug = $1`,
      [order.organization, order.team ?? null, order.userEmail ?? null],
    );
    const found = rows[0];
    if (found === undefined) return { ok: false, reason: 'unknown_organization' };
    if (order.team !== undefined && found.team_id === null) return { ok: false, reason: 'unknown_team' };
    if (order.userEmail !== undefined && found.user_id === null) return { ok: false, reason: 'unknown_user' };
    const inserted = await client.query<{ id: string }>(
      `INSERT INTO api_keys (organization_id, team_id, user_id, name, key_hash, key_prefix, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, to_timestamp($7::double precision / 1000))
       ON CONFLICT (organization_id, name) WHERE revoked_at IS NULL DO NOTHING RETURNING id`,
      [found.organization_id, found.team_id, found.user_id, order.name, hash, keyPrefix(secret), order.expiresAtMs ?? null],
    );
    const id = inserted.rows[0]?.id;
    if (id === undefined) return { ok: false, reason: 'name_taken' };
    await notifyKeysChanged(client, [hash]);
    return { ok: true, id, secret };
  });
}

/** Revokes a key by organization and name; false when there is no live key of that name. Every process hears of it at once. */
export async function revokeKey(postgres: Postgres, key: { organization: string; name: string }): Promise<boolean> {
  return postgres.transaction(async (client) => {
    const { rows } = await client.query<{ key_hash: Buffer }>(
      `UPDATE api_keys SET revoked_at = now()
        WHERE name = $2 AND revoked_at IS NULL AND organization_id = (SELECT id FROM organizations WHERE slug = $1)
        RETURNING key_hash`,
      [key.organization, key.name],
    );
    await notifyKeysChanged(
      client,
      rows.map((row) => row.key_hash),
    );
    return rows.length > 0;
  });
}
