// Writes and removes providers. Each function runs inside changeCatalog (change-catalog.ts).

import { isDeepStrictEqual } from 'node:util';
import type { ProviderChange } from '../../../domain/configuration/configuration.ts';
import type { RequestFields } from '../../../domain/configuration/schema/request-settings.ts';
import { destinationOf, otherDestination } from '../../../domain/models/key-destination.ts';
import type { Provider } from '../../../domain/models/provider.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { contradicts, invalid, NOT_FOUND } from '../identity/change.ts';
import { bindKeysOfProvider } from '../own-keys/bind-own-keys.ts';
import type { PostgresClient } from '../pool.ts';
import type { SecretBox } from '../secret-box.ts';
import { providerSecretName } from './catalog-store.ts';

export async function putProvider(
  client: PostgresClient,
  box: SecretBox,
  provider: ProviderChange,
): Promise<Refused | null> {
  const { rows } = await client.query<StoredProvider>(
    'SELECT base_url, api_key_sealed, auth, requests FROM providers WHERE id = $1',
    [provider.id],
  );
  const stored = rows[0];
  const problem = keptKeyProblem(provider, stored);
  if (problem !== null) return invalid(provider.requests?.token === undefined ? 'apiKey' : 'token', problem);
  if (stored !== undefined && stored.auth !== 'none')
    await bindKeysOfProvider(client, provider.id, destinationOf({ ...stored, baseUrl: stored.base_url }));
  await client.query(
    `INSERT INTO providers AS p (id, base_url, api_key_sealed, auth, on_disconnect, timeouts, stored_objects, requests)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (id) DO UPDATE
        SET (base_url, api_key_sealed, auth, on_disconnect, timeouts, stored_objects, requests)
          = (excluded.base_url, excluded.api_key_sealed, excluded.auth, excluded.on_disconnect, excluded.timeouts,
            excluded.stored_objects, excluded.requests)`,
    [
      provider.id,
      provider.baseUrl,
      sealKey(box, provider, stored?.api_key_sealed ?? null),
      provider.auth,
      provider.onDisconnect,
      provider.timeouts === undefined ? null : JSON.stringify(provider.timeouts),
      provider.storedObjects ?? null,
      provider.requests === null ? null : JSON.stringify(provider.requests),
    ],
  );
  return null;
}

interface StoredProvider extends Record<string, unknown> {
  readonly base_url: string;
  readonly api_key_sealed: Buffer;
  readonly auth: Provider['auth'];
  readonly requests: RequestFields | null;
}

/**
 * Why a stored secret cannot be kept; null: it can. A stored key may only be sent to the destination that it was given
 * for, and the secret of a token only to the account in its settings.
 */
function keptKeyProblem(provider: ProviderChange, stored: StoredProvider | undefined): string | null {
  if (secretOf(provider) !== null || provider.auth === 'none') return null;
  if (stored === undefined || stored.auth === 'none') return 'is needed: none is stored';
  const token = stored.requests?.token ?? null;
  const other = isDeepStrictEqual(provider.requests?.token ?? null, token)
    ? otherDestination(destinationOf({ ...stored, baseUrl: stored.base_url }), destinationOf(provider))
    : token === null
      ? 'no token'
      : 'another account';
  return other === null ? null : `is needed: the stored one is for ${other}`;
}

/** The key, or the secret for obtaining tokens, which is stored in its place. null: the stored one stays. */
function secretOf({ apiKey, tokenSecret }: ProviderChange): string | null {
  return tokenSecret === undefined ? apiKey : tokenSecret;
}

/** Sealing the same key again gives other bytes, so an unchanged key keeps its sealed form. */
function sealKey(box: SecretBox, provider: ProviderChange, stored: Buffer | null): Buffer {
  const { id, auth } = provider;
  const key = auth === 'none' ? '' : secretOf(provider);
  if (stored !== null && (key === null || opensTo(box, stored, id, key))) return stored;
  return box.seal(key ?? '', providerSecretName(id));
}

/** A key that was sealed under another master key cannot be opened and is sealed again. */
function opensTo(box: SecretBox, sealed: Buffer, id: string, key: string): boolean {
  try {
    return box.open(sealed, providerSecretName(id)) === key;
  } catch {
    return false;
  }
}

/** Refuses if the provider serves a model. */
export async function removeProvider(client: PostgresClient, id: string): Promise<Refused | null> {
  const { rows } = await client.query<{ model_id: string }>(
    'SELECT model_id FROM served_by WHERE provider_id = $1 ORDER BY model_id LIMIT 1',
    [id],
  );
  if (rows[0] !== undefined) return contradicts(`the model "${rows[0].model_id}" is served by it`);
  const { rowCount } = await client.query('DELETE FROM providers WHERE id = $1', [id]);
  return rowCount === 0 ? NOT_FOUND : null;
}
