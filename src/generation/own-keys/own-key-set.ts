// An organization's own provider keys as the data plane gets them: the keys with their secrets sealed, the
// organization's settings, and the prices it pays its providers.

import type { Price } from '../../domain/models/price.ts';
import type { ByokSettings } from '../../domain/own-keys/byok-settings.ts';
import type { OwnKey } from '../../domain/own-keys/own-key.ts';

export interface SealedOwnKey {
  readonly key: OwnKey;
  /** null: the secret cannot be opened, so the key cannot be used. */
  openSecret(): string | null;
  /** The secret before a rotation while it may still be tried; null: there is none. */
  openPreviousSecret(): string | null;
}

export interface OwnKeySet {
  readonly settings: ByokSettings;
  readonly keys: readonly SealedOwnKey[];
  /** By the model's public id. */
  readonly prices: ReadonlyMap<string, Price>;
}

/** Rejects when the store cannot be asked. */
export type FindOwnKeys = (organizationId: string) => Promise<OwnKeySet>;
