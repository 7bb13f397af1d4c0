// Tells whether the database has a secret, sealed or hashed, that the caller has in clear text.

import { hashCredential } from '../../../domain/identity/key-hash.ts';
import { providerSecretName } from '../catalog/catalog-store.ts';
import { findPrincipalByCredentialHash } from '../catalog/credentials.ts';
import type { InstallationSecrets } from '../installation-secrets.ts';
import type { Postgres, PostgresClient } from '../pool.ts';

/** Whether the secret was ever that of an inference key here. Revoked keys and rotated secrets count. */
export async function isKnownKey(
  client: PostgresClient,
  { pepper }: Pick<InstallationSecrets, 'pepper'>,
  secret: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `SELECT FROM api_keys WHERE key_hash = $1
     UNION ALL SELECT FROM api_key_previous_secrets WHERE key_hash = $1`,
    [hashCredential(pepper, secret)],
  );
  return rowCount > 0;
}

/** Whether the key would be accepted now. */
export async function isUsableKey(
  postgres: Postgres,
  { pepper }: Pick<InstallationSecrets, 'pepper'>,
  { secret, nowMs }: { readonly secret: string; readonly nowMs: number },
): Promise<boolean> {
  const principal = await findPrincipalByCredentialHash(postgres, hashCredential(pepper, secret));
  return principal !== null && (principal.expiresAtMs ?? Number.POSITIVE_INFINITY) > nowMs;
}

/** Whether calls to the provider carry this key. */
export async function isProviderKey(
  client: PostgresClient,
  { box }: Pick<InstallationSecrets, 'box'>,
  provider: { readonly id: string; readonly apiKey: string },
): Promise<boolean> {
  const { rows } = await client.query<{ sealed: Buffer }>(
    "SELECT api_key_sealed AS sealed FROM providers WHERE id = $1 AND auth <> 'none'",
    [provider.id],
  );
  const [row] = rows;
  return row !== undefined && box.open(row.sealed, providerSecretName(provider.id)) === provider.apiKey;
}
