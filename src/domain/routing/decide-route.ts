// Decides the route of a turn (spec 3.2, 4.11): which tier and model serve it, and why. Pure: the classification and
// the remembered route are parameters.

import { assert } from '../../platform/assert.ts';
import type { ClassifierAnswer } from './classifier-questions.ts';
import type { PickedBy, Rejection, RouteCandidates } from './route-candidates.ts';
import type { RoutingPolicy } from './routing-policy.ts';

/** Why the route is as it is (spec 3.2). */
export const ROUTE_REASONS = [
  'classified',
  'tier_not_permitted',
  'low_confidence_escalated',
  'correction_escalated',
  'classifier_failed',
  'no_request_text',
  'classifier_skipped',
  'continuation',
] as const;
export type RouteReason = (typeof ROUTE_REASONS)[number];

/** The classifier's answer, or the reason why there is none. */
export type Judgement = ClassifierAnswer | 'classifier_failed' | 'no_request_text' | 'classifier_skipped';

/** The route of the conversation's previous turn. */
export interface PreviousRoute {
  readonly model: string;
  /** null: its model was in no tier. */
  readonly tier: string | null;
}

export interface RouteParams {
  readonly policy: RoutingPolicy;
  /** Candidates of the same policy, at least one of which can serve. */
  readonly candidates: RouteCandidates;
  readonly judgement: Judgement;
  readonly conversationTokens: number;
  /** null: this is the first turn, or nothing is remembered. */
  readonly previous: PreviousRoute | null;
  readonly reasoning: 'none' | 'signed';
}

/** The route of a turn as plain data; it is remembered for the turn's other requests. */
export interface RouteDecision {
  readonly policy: string;
  readonly policyVersion: number;
  /** null: a continuation of a model that is in no tier. */
  readonly tier: string | null;
  /** Public id. */
  readonly model: string;
  readonly reason: RouteReason;
  /** null: nothing was classified. */
  readonly classifiedTier: string | null;
  readonly confidence: number | null;
  readonly distribution: Readonly<Record<string, number>> | null;
  readonly task: string | null;
  readonly pickedBy: PickedBy | null;
  /** The turn corrects the previous turn's answer. */
  readonly correction: boolean;
  readonly correctionProbability: number | null;
  readonly previous: PreviousRoute | null;
  readonly sticky: boolean;
  /** Set when the model was kept because only it can read the reasoning in the history. */
  readonly safety: 'signed_reasoning' | null;
  readonly baselineModel: string | null;
  readonly rejected: readonly Rejection[];
}

export function decideRoute(params: RouteParams): RouteDecision {
  const { policy, candidates, judgement, previous } = params;
  const answer = typeof judgement === 'string' ? null : judgement;
  const task = answer?.task ?? null;
  const correctionProbability = answer?.correctionProbability ?? null;
  const correction =
    correctionProbability !== null && policy.followUp !== null && correctionProbability >= policy.followUp.threshold;
  const wanted = wantTier(params, correction);
  const stays = stickyRank(params, wanted);
  const chosen =
    stays !== null && previous !== null ? keep(previous.model, stays) : pick(candidates, wanted.rank, task);
  const safe = keepSigned(params, chosen) ?? chosen;
  return {
    policy: policy.name,
    policyVersion: policy.version,
    tier: safe.rank === null ? (previous?.tier ?? null) : (policy.tiers[safe.rank]?.name ?? null),
    model: safe.model,
    reason: stays === null && safe === chosen ? reasonOf(wanted, candidates) : wanted.reason,
    classifiedTier: answer?.tier ?? null,
    confidence: answer?.confidence ?? null,
    distribution: answer?.distribution ?? null,
    task,
    pickedBy: safe.pickedBy,
    correction,
    correctionProbability,
    previous,
    sticky: stays !== null && safe === chosen,
    safety: safe === chosen ? null : 'signed_reasoning',
    baselineModel: baselineOf(policy, candidates, { rank: safe.rank, model: safe.model, task }),
    rejected: safe.rejected,
  };
}

interface Chosen {
  /** null: in no tier of the policy. */
  readonly rank: number | null;
  readonly model: string;
  readonly pickedBy: PickedBy | null;
  readonly rejected: readonly Rejection[];
}

function pick(candidates: RouteCandidates, rank: number, task: string | null): Chosen {
  const picked = candidates.pick(rank, task);
  assert(picked !== null, 'a route is decided only where some candidate can serve');
  return { ...picked, model: picked.model.id };
}

function keep(model: string, rank: number | null): Chosen {
  return { rank, model, pickedBy: null, rejected: [] };
}

interface Wanted {
  readonly rank: number;
  readonly reason: RouteReason;
}

function wantTier({ policy, candidates, judgement, previous }: RouteParams, correction: boolean): Wanted {
  if (typeof judgement === 'string') return { rank: rankOfTier(policy, policy.fallbackTier), reason: judgement };
  const strongest = policy.tiers.length - 1;
  const classified = rankOfTier(policy, judgement.tier);
  const isSure = judgement.confidence >= policy.classifier.confidenceFloor;
  const wanted: Wanted = isSure
    ? { rank: classified, reason: 'classified' }
    : { rank: Math.min(classified + 1, strongest), reason: 'low_confidence_escalated' };
  if (!correction || previous === null) return wanted;
  const answered = rankOfPrevious(policy, candidates, previous);
  const above = answered === null ? 0 : Math.min(answered + 1, strongest);
  return above > wanted.rank ? { rank: above, reason: 'correction_escalated' } : wanted;
}

/** The classifier's choice did not serve where access policy allows none of its models. */
function reasonOf({ reason, rank }: Wanted, candidates: RouteCandidates): RouteReason {
  return reason === 'classified' && candidates.isDenied(rank) ? 'tier_not_permitted' : reason;
}

/** The rank of the tier that answered; if the policy no longer has that tier, of the tier that has its model now. */
function rankOfPrevious(
  policy: RoutingPolicy,
  candidates: RouteCandidates,
  { model, tier }: PreviousRoute,
): number | null {
  const named = policy.tiers.findIndex(({ name }) => name === tier);
  return named === -1 ? candidates.rankOf(model, tier) : named;
}

/** A tier that the policy no longer has counts as the strongest, so that a turn never gets less than was meant. */
function rankOfTier(policy: RoutingPolicy, name: string): number {
  const rank = policy.tiers.findIndex((tier) => tier.name === name);
  return rank === -1 ? policy.tiers.length - 1 : rank;
}

/**
 * A long conversation stays on its model for the sake of the prompt cache, if the turn needs that model's tier or a
 * cheaper one: this returns the rank of the previous model, or null if it need not stay. A turn that was not classified
 * belongs to the fallback tier (spec 3.2), so it stays only within that tier.
 */
function stickyRank(
  { policy, candidates, conversationTokens, previous, judgement }: RouteParams,
  wanted: Wanted,
): number | null {
  if (policy.sticky === null || previous === null || conversationTokens < policy.sticky.minTokens) return null;
  const rank = candidates.rankOf(previous.model, previous.tier);
  if (rank === null) return null;
  return typeof judgement === 'string' ? (rank === wanted.rank ? rank : null) : wanted.rank <= rank ? rank : null;
}

/**
 * Signed thinking and encrypted reasoning can be read back only by the model that produced them, and routing edits no
 * body, so the turn stays on that model. null: nothing requires it, or the model can no longer be called.
 */
function keepSigned({ policy, candidates, previous, reasoning }: RouteParams, chosen: Chosen): Chosen | null {
  if (reasoning !== 'signed' || previous === null || previous.model === chosen.model) return null;
  if (candidates.rejectionOf(previous.model) !== null) return null;
  const tier = chosen.rank === null ? '' : (policy.tiers[chosen.rank]?.name ?? '');
  const passedOver: Rejection = { model: chosen.model, tier, reason: 'signed_reasoning' };
  return {
    ...keep(previous.model, rankOfPrevious(policy, candidates, previous)),
    rejected: [...chosen.rejected, passedOver],
  };
}

/** The model that served is its own baseline when the strongest tier served. */
function baselineOf(
  policy: RoutingPolicy,
  candidates: RouteCandidates,
  served: { readonly rank: number | null; readonly model: string; readonly task: string | null },
): string | null {
  if (served.rank === policy.tiers.length - 1) return served.model;
  return candidates.strongest(served.task)?.model.id ?? null;
}

/** Spec 4.11: a request with previous_response_id stays on the model that produced that response. */
export function continueRoute(
  policy: RoutingPolicy,
  candidates: RouteCandidates,
  previous: PreviousRoute,
): RouteDecision {
  const rank = rankOfPrevious(policy, candidates, previous);
  const tier = rank === null ? null : (policy.tiers[rank]?.name ?? null);
  return {
    policy: policy.name,
    policyVersion: policy.version,
    tier,
    model: previous.model,
    reason: 'continuation',
    classifiedTier: null,
    confidence: null,
    distribution: null,
    task: null,
    pickedBy: null,
    correction: false,
    correctionProbability: null,
    previous: { model: previous.model, tier: previous.tier ?? tier },
    sticky: false,
    safety: null,
    baselineModel: baselineOf(policy, candidates, { rank, model: previous.model, task: null }),
    rejected: [],
  };
}

/**
 * The route of a further request of a turn: the same model, or the nearest candidate if this caller cannot call that
 * model.
 */
export function repeatRoute(policy: RoutingPolicy, candidates: RouteCandidates, decided: RouteDecision): RouteDecision {
  const reason = candidates.rejectionOf(decided.model);
  if (reason === null) return { ...decided, rejected: [] };
  const rank = rankOfTier(policy, decided.tier ?? policy.fallbackTier);
  const chosen = pick(candidates, rank, decided.task);
  return {
    ...decided,
    reason: reasonOf({ reason: decided.reason, rank }, candidates),
    tier: chosen.rank === null ? null : (policy.tiers[chosen.rank]?.name ?? null),
    model: chosen.model,
    pickedBy: chosen.pickedBy,
    sticky: false,
    safety: null,
    baselineModel: baselineOf(policy, candidates, { rank: chosen.rank, model: chosen.model, task: decided.task }),
    rejected: [{ model: decided.model, tier: decided.tier ?? '', reason }, ...chosen.rejected],
  };
}
