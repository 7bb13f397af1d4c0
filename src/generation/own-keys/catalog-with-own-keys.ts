// Makes the catalog for a caller whose organization has provider keys of its own: each model's deployments are those of
// these keys and, where the organization lets the service step in, those of the service. Code that reads the catalog
// afterwards (routing, admission, relay) needs to know nothing of it.

import type { Principal } from '../../domain/identity/principal.ts';
import type { ApiName } from '../../domain/models/apis.ts';
import type { AttemptOrder, PassedOverKey } from '../../domain/own-keys/attempt-order.ts';
import { OWN_REPLIES } from '../../domain/own-keys/own-reply.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import {
  type ClassifierDeployment,
  type Deployment,
  isOwn,
  type ServedModel,
  type ServingCatalog,
  withDeployments,
} from '../catalog/serving-catalog.ts';
import type { KeyPauses, PausedKey } from './key-pauses.ts';
import type { OrganizationKeys } from './organization-keys.ts';

const EVALUATION = 'systemone';

export interface OwnKeysView {
  readonly keys: OrganizationKeys;
  readonly pauses: KeyPauses;
  readonly principal: Pick<Principal, 'apiKeyId' | 'teamId' | 'userId'>;
  /** The API of the request. */
  readonly api: ApiName;
  readonly nowMs: number;
  readonly monotonicMs: number;
}

export function catalogWithOwnKeys(catalog: ServingCatalog, view: OwnKeysView): ServingCatalog {
  if (view.keys.isEmpty) return catalog;
  const seen = new Map<ServedModel, ServedModel>();
  const get = (name: string): ServedModel | undefined => {
    const served = catalog.byName.get(name);
    if (served === undefined) return undefined;
    let own = seen.get(served);
    if (own === undefined) {
      own = servedWithOwnKeys(catalog, served, view);
      seen.set(served, own);
    }
    return own;
  };
  const ownKeysFor = (modelId: string, api: ApiName): 'serve' | 'refuse' | null => {
    const served = get(modelId);
    if (served?.refusals?.has(api) === true) return 'refuse';
    return served?.deployments.get(api)?.some(isOwn) === true ? 'serve' : null;
  };
  return { ...catalog, byName: { get }, ownKeysFor };
}

function servedWithOwnKeys(catalog: ServingCatalog, served: ServedModel, view: OwnKeysView): ServedModel {
  const { keys, pauses, api, principal, nowMs, monotonicMs } = view;
  const { model } = served;
  const caller = { apiKeyId: principal.apiKeyId, teamId: principal.teamId, userId: principal.userId };
  const asked = { models: catalog.models, model, caller, nowMs };
  const order = keys.order({ ...asked, api });
  const pauseOf = (deployment: Deployment): PausedKey | null => findPause(pauses, deployment, monotonicMs);
  const isFree = (deployment: Deployment): boolean => pauseOf(deployment) === null;
  const isOwnClassifier = keys.settings.classifier === 'own' && served.classifiers.length > 0;
  const known = isOwnClassifier
    ? { ...served, classifiers: ownClassifiers(keys.order({ ...asked, api: EVALUATION }), isFree) }
    : served;
  if (!order.concerns) return known;
  const attempts = (list: typeof order.before): Deployment[] => list.flatMap(({ serves }) => serves);
  const own = [...attempts(order.before), ...attempts(order.after)];
  const paused = own.flatMap((deployment) => pauseOf(deployment) ?? []);
  const passedOver = [
    ...order.passedOver,
    ...unreadable(order),
    ...own.flatMap((one) => showPaused(one, pauseOf(one))),
  ];
  const base = passedOver.length === 0 ? known : { ...known, passedOver };
  const service = order.usesService ? (base.deployments.get(api) ?? []) : [];
  const able = [...attempts(order.before).filter(isFree), ...service, ...attempts(order.after).filter(isFree)];
  const withOwn = withDeployments(base, api, able);
  if (able.length === 0) {
    const allRate = own.length > 0 && paused.length === own.length && paused.every(({ meaning }) => meaning === 'rate');
    const refusal: Refusal = allRate
      ? { kind: 'upstream_cooldown', retryAfterMs: Math.min(...paused.map(({ leftMs }) => leftMs)), passedOver }
      : { kind: 'byok_key_unavailable', passedOver };
    return { ...withOwn, refusals: new Map([[api, refusal]]) };
  }
  const alone = able.filter(isOwn);
  return alone.length === 0 || alone.length === able.length
    ? withOwn
    : { ...withOwn, ownOnly: withDeployments(base, api, alone) };
}

/** Keys whose secret cannot be opened: it was sealed under another master key, or for another row. */
function unreadable({ before, after }: AttemptOrder<readonly Deployment[]>): PassedOverKey[] {
  return [...before, ...after].flatMap(({ key, serves }) =>
    serves.length === 0 ? [{ keyId: key.id, reason: 'secret_unreadable' }] : [],
  );
}

function showPaused({ ownKey }: Deployment, pause: PausedKey | null): PassedOverKey[] {
  return ownKey === undefined || ownKey.isPrevious || pause === null
    ? []
    : [{ keyId: ownKey.keyId, reason: OWN_REPLIES[pause.meaning].reason }];
}

/**
 * With this setting the classifier is asked with own keys alone. If none of them can ask it, the service does not pay
 * for it.
 */
function ownClassifiers(
  { before, after }: AttemptOrder<readonly Deployment[]>,
  isFree: (deployment: Deployment) => boolean,
): readonly ClassifierDeployment[] {
  return [...before, ...after].flatMap(({ serves }) =>
    serves.filter(isFree).map((deployment) => ({ ...deployment, via: EVALUATION })),
  );
}

/**
 * The pause of a deployment's key. A refused secret does not pause the secret before the rotation, but a pause of their
 * account pauses both.
 */
export function findPause(pauses: KeyPauses, { ownKey, providerModel }: Deployment, nowMs: number): PausedKey | null {
  const pause = ownKey === undefined ? null : pauses.find({ ...ownKey, providerModel }, nowMs);
  return ownKey?.isPrevious === true && pause?.meaning === 'key' ? null : pause;
}
