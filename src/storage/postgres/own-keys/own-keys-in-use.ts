// Reads an organization's own provider keys for the data plane: all that are not removed, with their sealed secrets,
// which are opened on demand.

import type { Price } from '../../../domain/models/price.ts';
import type { ByokSettings } from '../../../domain/own-keys/byok-settings.ts';
import type { OwnKey } from '../../../domain/own-keys/own-key.ts';
import type { Postgres } from '../pool.ts';
import type { SecretBox } from '../secret-box.ts';
import { readByokSettings } from './byok-settings.ts';
import { OWN_KEY_COLUMNS, type OwnKeyRow, ownKeySecretName, previousSecretName, toOwnKey } from './own-key-rows.ts';
import { listOwnPrices } from './own-prices.ts';

interface OwnKeyInUse {
  readonly key: OwnKey;
  /** null: the secret was sealed under another master key or for another row, so it cannot be opened. */
  openSecret(): string | null;
  /** The secret before a rotation, while its overlap lasts; null: there is none, or it cannot be opened. */
  openPreviousSecret(): string | null;
}

interface OwnKeysInUse {
  readonly settings: ByokSettings;
  readonly keys: readonly OwnKeyInUse[];
  /** By public id of the model. */
  readonly prices: ReadonlyMap<string, Price>;
}

interface SealedRow extends OwnKeyRow {
  readonly secret_sealed: Buffer;
  readonly previous_sealed: Buffer | null;
}

const IN_USE = {
  name: 'own_keys_in_use',
  text: `SELECT ${OWN_KEY_COLUMNS}, t.secret_sealed,
      CASE WHEN t.previous_until > now() THEN t.previous_sealed END AS previous_sealed
    FROM own_keys t WHERE t.organization_id = $1 AND t.removed_at IS NULL`,
};

export async function readOwnKeysInUse(
  postgres: Pick<Postgres, 'query'>,
  { box, onUnreadable }: { readonly box: SecretBox; readonly onUnreadable: (keyId: string, fault: unknown) => void },
  organizationId: string,
): Promise<OwnKeysInUse> {
  // A request waits for all three, so they run at the same time.
  const [{ rows }, prices, settings] = await Promise.all([
    postgres.query<SealedRow>(IN_USE, [organizationId]),
    listOwnPrices(postgres, organizationId),
    readByokSettings(postgres, organizationId),
  ]);
  const open = (key: OwnKey, sealed: Buffer | null, bindTo: string): string | null => {
    if (sealed === null) return null;
    try {
      return box.open(sealed, bindTo);
    } catch (fault) {
      onUnreadable(key.id, fault);
      return null;
    }
  };
  const keys = rows.map((row): OwnKeyInUse => {
    const key = toOwnKey(row);
    return {
      key,
      openSecret: () => open(key, row.secret_sealed, ownKeySecretName(key, row.generation)),
      openPreviousSecret: () => open(key, row.previous_sealed, previousSecretName(key, row.generation)),
    };
  });
  return {
    settings,
    keys,
    prices: new Map(prices.map(({ model, price }) => [model, price])),
  };
}
