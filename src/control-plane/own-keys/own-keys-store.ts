// What the control plane needs of storage and of providers to manage organizations' own provider keys.

import type { PriceFields } from '../../domain/configuration/schema/price-schema.ts';
import type { Actor } from '../../domain/identity/actor.ts';
import type { Page, PageParams } from '../../domain/lists/page.ts';
import type { ApiName } from '../../domain/models/apis.ts';
import type { Catalog } from '../../domain/models/catalog.ts';
import type { KeyCaller } from '../../domain/own-keys/attempt-order.ts';
import type { ByokChoices, ByokGrant, ByokSettings } from '../../domain/own-keys/byok-settings.ts';
import type { ExplainedKeyUse } from '../../domain/own-keys/explain-key-use.ts';
import type {
  KeyOrder,
  KeyVerdict,
  NewOwnKey,
  OwnKeyChange,
  OwnKeyReference,
  RotatedSecret,
} from '../../domain/own-keys/key-changes.ts';
import type { OwnProvider } from '../../domain/own-keys/key-kinds.ts';
import type { OwnKey } from '../../domain/own-keys/own-key.ts';
import type { OwnKeyUsage } from '../../domain/own-keys/own-key-usage.ts';
import type { OwnModelPrice } from '../../domain/own-keys/own-model-price.ts';
import type { Answer } from '../identity/identity-store.ts';

interface OfOrganization {
  readonly organizationId: string;
}

export interface ExplainParams extends OfOrganization {
  readonly model: string;
  readonly api: ApiName;
  readonly caller: KeyCaller;
  /** Public ids of the models that the caller may see; null: every model. */
  readonly allowedModels: ReadonlySet<string> | null;
}

export interface OwnKeysStore {
  nowMs(): number;
  catalog(): Pick<Catalog, 'models'>;
  getSettings(organizationId: string): Answer<ByokSettings>;
  setGrant(actor: Actor, grant: Partial<ByokGrant> & OfOrganization): Answer<ByokSettings>;
  setChoices(actor: Actor, choices: Partial<ByokChoices> & OfOrganization): Answer<ByokSettings>;

  listKeys(params: PageParams & OfOrganization): Answer<Page<OwnKey>>;
  getKey(reference: OwnKeyReference): Answer<OwnKey>;
  createKey(actor: Actor, made: NewOwnKey): Answer<OwnKey>;
  updateKey(actor: Actor, reference: OwnKeyReference, changed: OwnKeyChange): Answer<OwnKey>;
  removeKey(actor: Actor, reference: OwnKeyReference): Answer<{ readonly removed: true }>;
  rotateKey(actor: Actor, reference: OwnKeyReference, rotated: RotatedSecret): Answer<OwnKey>;
  openKey(
    reference: OwnKeyReference,
  ): Answer<{ readonly key: OwnKey; readonly secret: string; readonly generation: number }>;
  recordVerdict(
    actor: Actor,
    reference: OwnKeyReference,
    found: { readonly verdict: KeyVerdict; readonly generation: number },
  ): Answer<OwnKey>;
  /**
   * Why the egress rules forbid the address, as the rest of a sentence that begins with "it"; null: nothing forbids it
   * that can be seen without calling.
   */
  addressProblem(own: OwnProvider): string | null;
  /** Asks the provider; null: it does not answer. */
  verify(own: OwnProvider, secret: string): Promise<KeyVerdict | null>;
  /** All keys, in the order in which they are tried. */
  getOrder(organizationId: string): Promise<readonly OwnKey[]>;
  setOrder(actor: Actor, organizationId: string, order: KeyOrder): Answer<readonly OwnKey[]>;
  explain(params: ExplainParams): Answer<ExplainedKeyUse>;
  readUsage(
    params: OfOrganization & { readonly fromMs: number; readonly untilMs: number },
  ): Answer<readonly OwnKeyUsage[]>;

  listPrices(organizationId: string): Promise<readonly OwnModelPrice[]>;
  getPrice(organizationId: string, model: string): Promise<OwnModelPrice | null>;
  putPrice(
    actor: Actor,
    price: { readonly organizationId: string; readonly model: string; readonly fields: PriceFields },
  ): Answer<OwnModelPrice>;
  removePrice(
    actor: Actor,
    price: { readonly organizationId: string; readonly model: string },
  ): Answer<{ readonly removed: true }>;
}
