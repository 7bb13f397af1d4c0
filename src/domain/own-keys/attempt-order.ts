// Decides in which order own keys and the service's own deployments are tried for a request, and why a key is not
// tried.
//
//   own keys placed before, by position ─► the service's deployments, as catalogued ─► own keys placed after
//
// If any key for this caller and model does not allow the service to step in, the service's deployments are left out,
// whatever the key's state: no money is spent without permission.

import { type KeyAudience, type KeyState, type OwnKey, presentState } from './own-key.ts';

/** The most attempts of a request on own keys. */
const OWN_ATTEMPTS_MAX = 3;

/** The caller of a request; null: the request has no such id. */
export interface KeyCaller {
  readonly apiKeyId: string | null;
  readonly teamId: string | null;
  readonly userId: string | null;
}

export type NotTried =
  | 'kind_not_allowed'
  | 'other_models'
  | 'other_callers'
  | 'model_not_served'
  | 'mapped_model_without_price'
  | 'expired'
  | 'too_many_before'
  | 'provider_unknown'
  | 'quota_exhausted'
  | 'secret_needed'
  | Extract<KeyState, 'invalid' | 'disabled'>;

/**
 * A key and the deployment that it would call; `serves` null: its kind does not serve the model on the request's API.
 */
export interface KeyCandidate<Served> {
  readonly key: OwnKey;
  readonly serves: Served | null;
  /**
   * False: the catalog no longer has the key's provider. It is then unknown which models the key was for, so it counts
   * for all models that it does not exclude: the service must not begin to charge because a provider was renamed.
   */
  readonly isKnown: boolean;
  /** False: the platform's fee is a share of a price that is unknown. The key then counts but cannot be used. */
  readonly hasFeeBasis: boolean;
  /** The platform allows the organization keys of this kind. If not, the key counts but cannot be used. */
  readonly isOpen: boolean;
  /**
   * The provider has changed from the destination that the secret was given for. The key then counts but cannot be
   * used.
   */
  readonly needsSecret: boolean;
}

export interface OrderParams {
  readonly modelId: string;
  readonly caller: KeyCaller;
  /** Whether keys that `inherit` let the service step in. */
  readonly fallback: boolean;
  readonly nowMs: number;
}

export interface AttemptOrder<Served> {
  readonly before: readonly OwnAttempt<Served>[];
  /** The service's deployments are tried in between. */
  readonly usesService: boolean;
  readonly after: readonly OwnAttempt<Served>[];
  /** Some key is for this request, whether it can be used or not. */
  readonly concerns: boolean;
  readonly notTried: readonly { readonly key: OwnKey; readonly why: NotTried }[];
  /** The keys of `notTried` that are for this request and cannot be used. */
  readonly passedOver: readonly PassedOverKey[];
}

/** A key that was for a request and was not called for it. `reason` as records name it. */
export interface PassedOverKey {
  readonly keyId: string;
  readonly reason: string;
}

export interface OwnAttempt<Served> {
  readonly key: OwnKey;
  readonly serves: Served;
}

export function orderAttempts<Served>(
  candidates: readonly KeyCandidate<Served>[],
  params: OrderParams,
): AttemptOrder<Served> {
  const before: OwnAttempt<Served>[] = [];
  const after: OwnAttempt<Served>[] = [];
  const notTried: { key: OwnKey; why: NotTried }[] = [];
  const passedOver: PassedOverKey[] = [];
  let [usesService, concerns] = [true, false];
  for (const candidate of inOrder(candidates)) {
    const { key, serves } = candidate;
    const why = whyNotFor(candidate, params);
    if (why !== null) {
      notTried.push({ key, why });
      continue;
    }
    concerns = true;
    if (!allowsService(key, params.fallback)) usesService = false;
    const unusable = unusableFor(candidate) ?? whyUnusable(key, params.nowMs);
    if (unusable !== null || serves === null) {
      const reason = unusable ?? 'provider_unknown';
      notTried.push({ key, why: reason });
      passedOver.push({ keyId: key.id, reason });
    } else if (before.length + after.length >= OWN_ATTEMPTS_MAX) notTried.push({ key, why: 'too_many_before' });
    else (key.place === 'before' ? before : after).push({ key, serves });
  }
  return { before, usesService, after, concerns, notTried, passedOver };
}

/**
 * The keys placed before, then those placed after, each by position. Equal positions are ordered by id, so that every
 * process agrees.
 */
function inOrder<Served>(candidates: readonly KeyCandidate<Served>[]): readonly KeyCandidate<Served>[] {
  const rank = ({ key }: KeyCandidate<Served>): number => (key.place === 'before' ? 0 : 1);
  return candidates.toSorted(
    (one, other) =>
      rank(one) - rank(other) || one.key.position - other.key.position || (one.key.id < other.key.id ? -1 : 1),
  );
}

/** Why the key is not for the request; null: it is. A disabled key is for none. */
function whyNotFor(
  { key, serves, isKnown }: Pick<KeyCandidate<unknown>, 'key' | 'serves' | 'isKnown'>,
  { modelId, caller }: OrderParams,
): NotTried | null {
  if (key.state === 'disabled') return 'disabled';
  if (key.models !== null && !key.models.includes(modelId)) return 'other_models';
  if (!isFor(key, caller)) return 'other_callers';
  return serves === null && isKnown ? 'model_not_served' : null;
}

function isFor({ teams, apiKeys, users }: KeyAudience, { teamId, apiKeyId, userId }: KeyCaller): boolean {
  const has = (list: readonly string[] | null, id: string | null): boolean =>
    list === null || (id !== null && list.includes(id));
  return has(teams, teamId) && has(apiKeys, apiKeyId) && has(users, userId);
}

function allowsService({ fallback }: OwnKey, inherited: boolean): boolean {
  return fallback === 'inherit' ? inherited : fallback === 'on';
}

function unusableFor({ hasFeeBasis, isOpen, needsSecret }: KeyCandidate<unknown>): NotTried | null {
  if (!isOpen) return 'kind_not_allowed';
  if (needsSecret) return 'secret_needed';
  return hasFeeBasis ? null : 'mapped_model_without_price';
}

function whyUnusable(key: OwnKey, nowMs: number): NotTried | null {
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs) return 'expired';
  const state = presentState(key, nowMs);
  if (state === 'cooling_down') return 'quota_exhausted';
  return state === 'invalid' ? state : null;
}
