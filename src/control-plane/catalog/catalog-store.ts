// What the operations on the catalog need of storage; the composition root provides it. Expected refusals are returned
// as values, never thrown.

import type { ConfiguredModel, ProviderChange } from '../../domain/configuration/configuration.ts';
import type { CatalogKind, CatalogState } from '../../domain/configuration/difference.ts';
import type { CatalogEntry } from '../../domain/configuration/find-warnings.ts';
import type { PricesFields } from '../../domain/configuration/schema/price-schema.ts';
import type { Actor } from '../../domain/identity/actor.ts';
import type { PriceVersion } from '../../domain/models/price-version.ts';
import type { Answer } from '../identity/identity-store.ts';

/** The version that a change was made from; null: none is named. */
interface Based {
  readonly version: number | null;
}

export interface CatalogStore {
  list(kind: CatalogKind): Promise<readonly CatalogState[]>;
  get(target: { readonly kind: CatalogKind; readonly id: string }): Answer<CatalogState>;
  putProvider(actor: Actor, change: { readonly provider: ProviderChange } & Based): Answer<CatalogEntry>;
  putModel(actor: Actor, change: { readonly model: ConfiguredModel } & Based): Answer<CatalogEntry>;
  putPrice(
    actor: Actor,
    change: {
      readonly model: string;
      readonly provider: string;
      readonly providerModel: string | null;
      readonly price: PricesFields | null;
    } & Based,
  ): Answer<CatalogEntry>;
  listPrices(modelId: string): Promise<readonly PriceVersion[]>;
  remove(
    actor: Actor,
    target: { readonly kind: CatalogKind; readonly id: string } & Based,
  ): Answer<{ readonly removed: true }>;
}
