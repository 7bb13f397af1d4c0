// One organization's own keys, ready to be called with: which of them, and which of the service's deployments, may
// serve a request, in their order.

import type { ApiName } from '../../domain/models/apis.ts';
import type { Model } from '../../domain/models/catalog.ts';
import { type AttemptOrder, type KeyCaller, orderAttempts } from '../../domain/own-keys/attempt-order.ts';
import { type ByokSettings, ratingPrice } from '../../domain/own-keys/byok-settings.ts';
import { isKeyProblem, isOpen, type OwnProvider, ownProvider } from '../../domain/own-keys/key-kinds.ts';
import type { OwnKey } from '../../domain/own-keys/own-key.ts';
import { findOffer, type OwnOffer } from '../../domain/own-keys/own-offer.ts';
import { type Deployment, prepareDeployment } from '../catalog/serving-catalog.ts';
import type { OwnKeySet, SealedOwnKey } from './own-key-set.ts';

export interface OfferParams {
  /** All models of the catalog, and the one that is asked for. */
  readonly models: readonly Model[];
  readonly model: Model;
  readonly api: ApiName;
  readonly caller: KeyCaller;
  /** Since 1970. */
  readonly nowMs: number;
}

export class OrganizationKeys {
  readonly settings: ByokSettings;
  private readonly organizationId: string;
  private readonly set: OwnKeySet;
  /** Of the catalog that the deployments below were made for; another one has other objects. */
  private models: readonly Model[] = [];
  private readonly providers = new Map<SealedOwnKey, OwnProvider | null>();
  private readonly deployments = new Map<string, readonly Deployment[]>();

  constructor(organizationId: string, set: OwnKeySet) {
    this.organizationId = organizationId;
    this.set = set;
    this.settings = set.settings;
  }

  get isEmpty(): boolean {
    return this.set.keys.length === 0;
  }

  get keyIds(): readonly string[] {
    return this.set.keys.map(({ key }) => key.id);
  }

  order(params: OfferParams): AttemptOrder<readonly Deployment[]> {
    this.follow(params.models);
    const { settings, set } = this;
    const candidates = set.keys.map((sealed) => {
      const offer = this.offerOf(sealed, params);
      return {
        key: sealed.key,
        offer: offer === null ? null : this.deploymentsOf(sealed, offer, params),
        isOpen: settings.enabled && isOpen(sealed.key.kind, settings),
      };
    });
    const { model, caller, nowMs } = params;
    return orderAttempts(candidates, { modelId: model.id, caller, fallback: settings.fallback, nowMs });
  }

  /** Of the key with which a saved response was made; null: it is gone, or cannot be used any more. */
  deploymentOf(keyId: string, params: Omit<OfferParams, 'caller'>): Deployment | null {
    this.follow(params.models);
    const sealed = this.set.keys.find(({ key }) => key.id === keyId);
    if (sealed === undefined || !this.isUsable(sealed.key, params.nowMs)) return null;
    const offer = this.offerOf(sealed, params);
    return offer === null ? null : (this.deploymentsOf(sealed, offer, params)[0] ?? null);
  }

  private isUsable({ kind, state, expiresAtMs }: OwnKey, nowMs: number): boolean {
    if (!this.settings.enabled || !isOpen(kind, this.settings)) return false;
    return state !== 'disabled' && state !== 'invalid' && (expiresAtMs === null || expiresAtMs > nowMs);
  }

  private follow(models: readonly Model[]): void {
    if (models === this.models) return;
    this.models = models;
    this.providers.clear();
    this.deployments.clear();
  }

  private offerOf(sealed: SealedOwnKey, { models, model, api }: Omit<OfferParams, 'caller'>): OwnOffer | null {
    let provider = this.providers.get(sealed);
    if (provider === undefined) {
      const found = ownProvider({ models }, sealed.key.kind, sealed.key);
      provider = isKeyProblem(found) ? null : found;
      this.providers.set(sealed, provider);
    }
    if (provider === null) return null;
    const ownPrice = ratingPrice(this.settings.fee, this.set.prices.get(model.id) ?? null);
    return findOffer(sealed.key, { model, api, apis: provider.apis, ownPrice });
  }

  /** None where the secret cannot be opened; with the secret before a rotation, while that may be tried, two. */
  private deploymentsOf(
    sealed: SealedOwnKey,
    offer: OwnOffer,
    { model, api }: Pick<OfferParams, 'model' | 'api'>,
  ): readonly Deployment[] {
    const name = `${sealed.key.id}\0${model.id}\0${api}`;
    let made = this.deployments.get(name);
    if (made === undefined) {
      const previous = sealed.openPreviousSecret();
      const ofSecret = (secret: string | null, isPrevious: boolean): Deployment[] =>
        secret === null ? [] : [this.deployment(sealed, offer, { secret, isPrevious, api })];
      made = [...ofSecret(sealed.openSecret(), false), ...ofSecret(previous, true)];
      this.deployments.set(name, made);
    }
    return made;
  }

  private deployment(
    sealed: SealedOwnKey,
    { providerModel, price, asksForUsage }: OwnOffer,
    { secret, isPrevious, api }: { secret: string; isPrevious: boolean; api: ApiName },
  ): Deployment {
    const { id: keyId } = sealed.key;
    const { provider, isGuarded } = this.providers.get(sealed) as OwnProvider;
    const { organizationId, settings } = this;
    const prepared = prepareDeployment(
      {
        provider: { ...provider, apiKey: secret, own: { keyId, isGuarded } },
        providerModel,
        price,
        apis: [api],
        ...(asksForUsage ? { streamUsage: 'request' as const } : {}),
      },
      api,
    );
    const { fee, budgets } = settings;
    return { ...prepared, ownKey: { keyId, organizationId, fee, budgets, isPrevious } };
  }
}
