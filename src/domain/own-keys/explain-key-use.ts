// Explains who would serve a request: the attempts in order, and why every other own key is not tried.

import type { ApiName } from '../models/apis.ts';
import type { Catalog, Model } from '../models/catalog.ts';
import type { Price } from '../models/price.ts';
import { type KeyCaller, type OwnAttempt, orderAttempts } from './attempt-order.ts';
import type { ByokSettings } from './byok-settings.ts';
import { isKeyProblem, isOpen, type OwnProvider, ownProvider, secretNeededFor } from './key-kinds.ts';
import { findOwnDeployment, type OwnDeployment } from './own-deployment.ts';
import type { OwnKey } from './own-key.ts';
import { OWN_REPLIES, type OwnReplyMeaning } from './own-reply.ts';

export interface KeyUseParams {
  readonly keys: readonly OwnKey[];
  readonly settings: ByokSettings;
  readonly catalog: Pick<Catalog, 'models'>;
  readonly model: Model;
  readonly api: ApiName;
  readonly ownPrice: Price | null;
  readonly caller: KeyCaller;
  readonly nowMs: number;
  /**
   * The meaning of the reply after which a key, or the key for one of its provider's models, is paused; null: it is
   * not.
   */
  readonly pauseOf: (key: OwnKey, providerModel: string) => OwnReplyMeaning | null;
}

export interface ExplainedAttempt {
  readonly source: 'own' | 'service';
  /** null: the service's own deployment. */
  readonly key: OwnKey | null;
  readonly provider: string;
  readonly providerModel: string;
}

export interface ExplainedKeyUse {
  readonly attempts: readonly ExplainedAttempt[];
  /** `why`: one of `NotTried`, or for a paused key the reason that records name. */
  readonly notTried: readonly { readonly key: OwnKey; readonly why: string }[];
  /**
   * Own keys are for the request, none can serve it, and the service may not. `upstream_cooldown`: all of them are
   * paused for their rate. null: the request is not refused for its keys.
   */
  readonly refusal: 'byok_key_unavailable' | 'upstream_cooldown' | null;
}

export function explainKeyUse(params: KeyUseParams): ExplainedKeyUse {
  const { keys, settings, model, api, caller, nowMs } = params;
  const candidates = keys.map((key) => {
    const found = ownProvider(params.catalog, key.kind, key);
    const isKnown = !isKeyProblem(found);
    const serves = isKnown ? ownDeploymentOf(key, found, params) : null;
    const hasFeeBasis = serves?.hasFeeBasis ?? true;
    const needsSecret = isKnown && secretNeededFor(key, found) !== null;
    return { key, serves, isKnown, hasFeeBasis, isOpen: isUsable(key, settings), needsSecret };
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
  const resting = [...order.before, ...order.after].flatMap((attempt) => {
    const meaning = restOf(attempt, params);
    return meaning === null ? [] : { key: attempt.key, meaning };
  });
  const isUp = ({ key }: OwnAttempt<OwnDeployment>): boolean => !resting.some((rest) => rest.key === key);
  const attempts = [...order.before.filter(isUp).map(own), ...service, ...order.after.filter(isUp).map(own)];
  const notTried = [
    ...order.notTried,
    ...resting.map(({ key, meaning }) => ({ key, why: OWN_REPLIES[meaning].reason })),
  ];
  if (!order.concerns || attempts.length > 0) return { attempts, notTried, refusal: null };
  const isRateOnly = resting.length > 0 && resting.every(({ meaning }) => meaning === 'rate');
  return { attempts, notTried, refusal: isRateOnly ? 'upstream_cooldown' : 'byok_key_unavailable' };
}

/** During a rotation's overlap the previous secret serves if the present one is refused, so the key is not paused. */
function restOf({ key, serves }: OwnAttempt<OwnDeployment>, { pauseOf, nowMs }: KeyUseParams): OwnReplyMeaning | null {
  const meaning = pauseOf(key, serves.providerModel);
  const hasPrevious = key.previousUntilMs !== null && key.previousUntilMs > nowMs;
  return meaning === 'key' && hasPrevious ? null : meaning;
}

function isUsable({ kind }: OwnKey, settings: ByokSettings): boolean {
  return settings.enabled && isOpen(kind, settings);
}

function ownDeploymentOf(
  key: OwnKey,
  { apis }: OwnProvider,
  { catalog, model, api, ownPrice, settings }: KeyUseParams,
): OwnDeployment | null {
  return findOwnDeployment(key, { ...catalog, model, api, apis, ownPrice, fee: settings.fee });
}
