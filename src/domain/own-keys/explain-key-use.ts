// Says who would serve a request and why: the attempts in their order, and every own key that is not among them.

import type { ApiName } from '../models/apis.ts';
import type { Catalog, Model } from '../models/catalog.ts';
import type { Price } from '../models/price.ts';
import { type KeyCaller, type NotTried, type OwnAttempt, orderAttempts } from './attempt-order.ts';
import type { ByokSettings } from './byok-settings.ts';
import { isKeyProblem, isOpen, ownProvider } from './key-kinds.ts';
import { findOwnDeployment, type OwnDeployment } from './own-deployment.ts';
import type { OwnKey } from './own-key.ts';

export interface KeyUseParams {
  readonly keys: readonly OwnKey[];
  readonly settings: ByokSettings;
  readonly catalog: Pick<Catalog, 'models'>;
  readonly model: Model;
  readonly api: ApiName;
  readonly ownPrice: Price | null;
  readonly caller: KeyCaller;
  readonly nowMs: number;
}

export interface ExplainedAttempt {
  readonly source: 'own' | 'service';
  /** null: the service's. */
  readonly key: OwnKey | null;
  readonly provider: string;
  readonly providerModel: string;
}

export interface ExplainedKeyUse {
  readonly attempts: readonly ExplainedAttempt[];
  readonly notTried: readonly { readonly key: OwnKey; readonly why: NotTried }[];
  /** `byok_key_unavailable`: own keys are for the request, none can serve it, and the service may not. */
  readonly refusal: 'byok_key_unavailable' | null;
}

export function explainKeyUse(params: KeyUseParams): ExplainedKeyUse {
  const { keys, settings, model, api, caller, nowMs } = params;
  const candidates = keys.map((key) => {
    const serves = ownDeploymentOf(key, params);
    return { key, serves, hasFeeBasis: serves?.hasFeeBasis ?? true, isOpen: isUsable(key, settings) };
  });
  const order = orderAttempts(candidates, { modelId: model.id, caller, fallback: settings.fallback, nowMs });
  const own = ({ key, serves }: OwnAttempt<OwnDeployment>): ExplainedAttempt => ({
    source: 'own',
    key,
    provider: key.kind,
    providerModel: serves.providerModel,
  });
  const service = model.servedBy
    .filter(({ apis, via }) => order.usesService && via === undefined && apis.includes(api))
    .map(
      ({ provider, providerModel }): ExplainedAttempt => ({
        source: 'service',
        key: null,
        provider: provider.id,
        providerModel,
      }),
    );
  const attempts = [...order.before.map(own), ...service, ...order.after.map(own)];
  const isRefused = order.concerns && attempts.length === 0;
  return { attempts, notTried: order.notTried, refusal: isRefused ? 'byok_key_unavailable' : null };
}

function isUsable({ kind }: OwnKey, settings: ByokSettings): boolean {
  return settings.enabled && isOpen(kind, settings);
}

function ownDeploymentOf(key: OwnKey, { catalog, model, api, ownPrice, settings }: KeyUseParams): OwnDeployment | null {
  const found = ownProvider(catalog, key.kind, key);
  return isKeyProblem(found)
    ? null
    : findOwnDeployment(key, { ...catalog, model, api, apis: found.apis, ownPrice, fee: settings.fee });
}
