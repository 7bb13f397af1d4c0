// An organization's own provider keys as the data plane gets them: the keys with their secrets still sealed, what may
// be done with them, and what the organization pays its providers.

import type { Price } from '../../domain/models/price.ts';
import type { ByokSettings } from '../../domain/own-keys/byok-settings.ts';
import type { OwnKey } from '../../domain/own-keys/own-key.ts';

export interface SealedOwnKey {
  readonly key: OwnKey;
  /** null: it cannot be opened, and so not used. */
  openSecret(): string | null;
  /** The secret before a rotation, while that may still be tried; null: there is none. */
  openPreviousSecret(): string | null;
}

export interface OwnKeySet {
  readonly settings: ByokSettings;
  readonly keys: readonly SealedOwnKey[];
  /** By public id of the model. */
  readonly prices: ReadonlyMap<string, Price>;
}

/** Throws when the store cannot be asked. */
export type FindOwnKeys = (organizationId: string) => Promise<OwnKeySet>;
