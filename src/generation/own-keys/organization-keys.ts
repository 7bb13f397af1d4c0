// One organization's own keys, ready for use: which of them, and whether the service's deployments, may serve a
// request, and in which order.

import type { ApiName } from '../../domain/models/apis.ts';
import type { Model } from '../../domain/models/catalog.ts';
import {
  type AttemptOrder,
  type KeyCaller,
  type KeyCandidate,
  type OwnAttempt,
  orderAttempts,
} from '../../domain/own-keys/attempt-order.ts';
import { type ByokSettings, ratingPrice } from '../../domain/own-keys/byok-settings.ts';
import {
  isKeyProblem,
  isOpen,
  type OwnProvider,
  ownProvider,
  secretNeededFor,
} from '../../domain/own-keys/key-kinds.ts';
import { findOwnDeployment, type OwnDeployment } from '../../domain/own-keys/own-deployment.ts';
import type { OwnKey } from '../../domain/own-keys/own-key.ts';
import { type Deployment, prepareDeployment } from '../catalog/serving-catalog.ts';
import type { OwnKeySet, SealedOwnKey } from './own-key-set.ts';

export interface AttemptParams {
  /** All models of the catalog. `model` is the requested one. */
  readonly models: readonly Model[];
  readonly model: Model;
  readonly api: ApiName;
  readonly caller: KeyCaller;
  /** Wall time. */
  readonly nowMs: number;
}

interface SealedDeployment {
  readonly sealed: SealedOwnKey;
  readonly deployment: OwnDeployment;
}

export class OrganizationKeys {
  readonly settings: ByokSettings;
  private readonly organizationId: string;
  private readonly set: OwnKeySet;
  /** The models of the catalog that the members below were made for; another catalog has other objects. */
  private models: readonly Model[] = [];
  private readonly providers = new Map<SealedOwnKey, OwnProvider | null>();
  /** By model and API. */
  private readonly candidates = new Map<string, readonly KeyCandidate<SealedDeployment>[]>();
  private readonly deployments = new Map<string, readonly Deployment[]>();

  constructor(organizationId: string, set: OwnKeySet) {
    this.organizationId = organizationId;
    this.set = set;
    this.settings = set.settings;
  }

  get isEmpty(): boolean {
    return this.set.keys.length === 0;
  }

  order(params: AttemptParams): AttemptOrder<readonly Deployment[]> {
    this.follow(params.models);
    const { model, caller, nowMs } = params;
    const { fallback } = this.settings;
    const found = orderAttempts(this.candidatesOf(params), { modelId: model.id, caller, fallback, nowMs });
    // Only here are secrets opened, so those of keys that are not tried stay sealed.
    const open = ({ key, serves }: OwnAttempt<SealedDeployment>): OwnAttempt<readonly Deployment[]> => {
      return { key, serves: this.deploymentsOf(serves.sealed, serves.deployment, params) };
    };
    return { ...found, before: found.before.map(open), after: found.after.map(open) };
  }

  /**
   * Each key's deployment for a model on an API, whoever asks. Kept, since an organization may have a thousand keys.
   */
  private candidatesOf(params: AttemptParams): readonly KeyCandidate<SealedDeployment>[] {
    const name = `${params.model.id}\0${params.api}`;
    let made = this.candidates.get(name);
    if (made === undefined) {
      made = this.set.keys.map((sealed) => {
        const { key } = sealed;
        const deployment = this.ownDeploymentOf(sealed, params);
        const isKnown = this.providerOf(sealed) !== null;
        const needsSecret = this.needsSecret(sealed);
        const isOfKind = this.settings.enabled && isOpen(key.kind, this.settings);
        const hasFeeBasis = deployment?.hasFeeBasis ?? true;
        const serves = deployment === null ? null : { sealed, deployment };
        return { key, serves, isKnown, hasFeeBasis, isOpen: isOfKind, needsSecret };
      });
      this.candidates.set(name, made);
    }
    return made;
  }

  /**
   * The deployments of the key that a saved response was made with; none: the key is gone, or cannot be used any more.
   */
  deploymentsWith(keyId: string, params: Omit<AttemptParams, 'caller'>): readonly Deployment[] {
    this.follow(params.models);
    const sealed = this.set.keys.find(({ key }) => key.id === keyId);
    if (sealed === undefined || this.needsSecret(sealed) || !this.isUsable(sealed.key, params.nowMs)) return [];
    const own = this.ownDeploymentOf(sealed, params);
    return own?.hasFeeBasis !== true ? [] : this.deploymentsOf(sealed, own, params);
  }

  private isUsable({ kind, state, expiresAtMs }: OwnKey, nowMs: number): boolean {
    if (!this.settings.enabled || !isOpen(kind, this.settings)) return false;
    return state !== 'disabled' && state !== 'invalid' && (expiresAtMs === null || expiresAtMs > nowMs);
  }

  private follow(models: readonly Model[]): void {
    if (models === this.models) return;
    this.models = models;
    this.providers.clear();
    this.candidates.clear();
    this.deployments.clear();
  }

  /** The key's provider in the present catalog; null: it is not there. */
  private providerOf(sealed: SealedOwnKey): OwnProvider | null {
    let provider = this.providers.get(sealed);
    if (provider === undefined) {
      const found = ownProvider({ models: this.models }, sealed.key.kind, sealed.key);
      provider = isKeyProblem(found) ? null : found;
      this.providers.set(sealed, provider);
    }
    return provider;
  }

  private needsSecret(sealed: SealedOwnKey): boolean {
    const provider = this.providerOf(sealed);
    return provider !== null && secretNeededFor(sealed.key, provider) !== null;
  }

  private ownDeploymentOf(
    sealed: SealedOwnKey,
    { models, model, api }: Omit<AttemptParams, 'caller'>,
  ): OwnDeployment | null {
    const provider = this.providerOf(sealed);
    if (provider === null) return null;
    const ownPrice = ratingPrice(this.settings.fee, this.set.prices.get(model.id) ?? null);
    return findOwnDeployment(sealed.key, { models, model, api, apis: provider.apis, ownPrice, fee: this.settings.fee });
  }

  /** One deployment; none if the secret cannot be opened; two while the secret before a rotation may still be tried. */
  private deploymentsOf(
    sealed: SealedOwnKey,
    own: OwnDeployment,
    params: Pick<AttemptParams, 'model' | 'api' | 'nowMs'>,
  ): readonly Deployment[] {
    const made = this.madeDeployments(sealed, own, params);
    const { previousUntilMs } = sealed.key;
    // Held keys may outlive the overlap of a rotation.
    return previousUntilMs !== null && previousUntilMs <= params.nowMs
      ? made.filter(({ ownKey }) => ownKey?.isPrevious !== true)
      : made;
  }

  private madeDeployments(
    sealed: SealedOwnKey,
    own: OwnDeployment,
    { model, api }: Pick<AttemptParams, 'model' | 'api'>,
  ): readonly Deployment[] {
    const name = `${sealed.key.id}\0${model.id}\0${api}`;
    let made = this.deployments.get(name);
    if (made === undefined) {
      const previous = sealed.openPreviousSecret();
      const ofSecret = (secret: string | null, isPrevious: boolean): Deployment[] =>
        secret === null ? [] : [this.deployment(sealed, own, { secret, isPrevious, api })];
      made = [...ofSecret(sealed.openSecret(), false), ...ofSecret(previous, true)];
      this.deployments.set(name, made);
    }
    return made;
  }

  private deployment(
    sealed: SealedOwnKey,
    { providerModel, price, streamUsage }: OwnDeployment,
    { secret, isPrevious, api }: { secret: string; isPrevious: boolean; api: ApiName },
  ): Deployment {
    const { id: keyId, fingerprint } = sealed.key;
    const { provider, isGuarded } = this.providerOf(sealed) as OwnProvider;
    const { organizationId, settings } = this;
    const prepared = prepareDeployment(
      {
        provider: { ...provider, apiKey: secret, own: { keyId, isGuarded } },
        providerModel,
        price,
        apis: [api],
        ...(streamUsage === undefined ? {} : { streamUsage }),
      },
      api,
    );
    const { fee, budgets } = settings;
    return { ...prepared, ownKey: { keyId, organizationId, fingerprint, fee, budgets, isPrevious } };
  }
}
