// The routing decision record of a request (spec 2.4), as it is stored and shown. Names and forms are the spec's;
// fields that do not apply are absent.

import { formatUsdString } from '../money/format.ts';
import type { PicoUsd } from '../money/pico-usd.ts';
import type { RouteDecision, RouteReason } from './decide-route.ts';
import type { PickedBy, Rejection } from './route-candidates.ts';

/** One call of the classifier. The operator pays for it: its cost is recorded and charged to nobody. */
export interface ClassifierCall {
  /** The name that the policy uses for it. */
  readonly model: string;
  /** null: not reported. */
  readonly inputTokens: number | null;
  /** null: no catalog price, or no tokens reported. */
  readonly cost: PicoUsd | null;
  readonly latencyMs: number;
}

/** `baseline_cost_usd` is added when the execution is posted, since it depends on the usage. */
export interface ModelRoute {
  readonly requested: string;
  readonly tier?: string;
  readonly classified_tier?: string;
  readonly reason: RouteReason;
  readonly confidence?: number;
  readonly cached: boolean;
  readonly task?: string;
  readonly picked_by?: PickedBy;
  readonly correction: boolean;
  readonly previous_model?: string;
  readonly previous_tier?: string;
  readonly sticky: boolean;
  readonly baseline_model?: string;
  readonly baseline_cost_usd?: string;
  // The fields below are not in the spec.
  readonly policy: string;
  readonly policy_version: number;
  /** 0 is the cheapest; absent where the model is in no tier. */
  readonly tier_rank?: number;
  /** Whether the tier is above the one that the classifier chose. */
  readonly escalated: boolean;
  /** At most `REJECTED_LISTED_MAX`, the first that were passed over. */
  readonly rejected: readonly Rejection[];
  /** How many more were passed over. */
  readonly rejected_more?: number;
  readonly distribution?: Readonly<Record<string, number>>;
  readonly correction_probability?: number;
  /** Present only on the request that made the call. */
  readonly classifier?: {
    readonly model: string;
    readonly input_tokens: number | null;
    readonly cost_usd: string | null;
    readonly latency_ms: number;
  };
  /**
   * Hashes, so that they reveal nothing: the session; within it, the payer's conversation, or a side request of its
   * agent; the human turn.
   */
  readonly session?: string;
  readonly conversation?: string;
  readonly turn?: string;
  readonly safety?: 'signed_reasoning';
}

/** A policy may name thousands of models; without a bound, the record of each request could list all of them. */
export const REJECTED_LISTED_MAX = 64;

export interface RouteCircumstances {
  /** Name of the virtual model. */
  readonly requested: string;
  /** Names of the policy's tiers, cheapest first. */
  readonly tiers: readonly { readonly name: string }[];
  readonly cached: boolean;
  readonly classifier: ClassifierCall | null;
  /** null: no conversation was recognized. */
  readonly turnHashes: TurnHashes | null;
}

export interface TurnHashes {
  readonly session: string;
  readonly conversation: string;
  readonly turn: string;
}

export function modelRouteOf(decision: RouteDecision, circumstances: RouteCircumstances): ModelRoute {
  const {
    previous,
    classifiedTier,
    confidence,
    distribution,
    task,
    pickedBy,
    correctionProbability,
    baselineModel,
    safety,
    tier,
  } = decision;
  const { requested, tiers, cached, classifier, turnHashes } = circumstances;
  const rank = tiers.findIndex(({ name }) => name === tier);
  const classifiedRank = tiers.findIndex(({ name }) => name === classifiedTier);
  return {
    requested,
    ...(tier === null ? {} : { tier }),
    ...(classifiedTier === null ? {} : { classified_tier: classifiedTier }),
    reason: decision.reason,
    ...(confidence === null ? {} : { confidence }),
    cached,
    ...(task === null ? {} : { task }),
    ...(pickedBy === null ? {} : { picked_by: pickedBy }),
    correction: decision.correction,
    ...(previous === null
      ? {}
      : { previous_model: previous.model, ...(previous.tier === null ? {} : { previous_tier: previous.tier }) }),
    sticky: decision.sticky,
    ...(baselineModel === null ? {} : { baseline_model: baselineModel }),
    policy: decision.policy,
    policy_version: decision.policyVersion,
    ...(rank === -1 ? {} : { tier_rank: rank }),
    escalated: classifiedRank !== -1 && rank > classifiedRank && ESCALATIONS.has(decision.reason),
    ...listed(decision.rejected),
    ...(distribution === null ? {} : { distribution }),
    ...(correctionProbability === null ? {} : { correction_probability: correctionProbability }),
    ...(classifier === null ? {} : { classifier: renderCall(classifier) }),
    ...(turnHashes === null
      ? {}
      : { session: turnHashes.session, conversation: turnHashes.conversation, turn: turnHashes.turn }),
    ...(safety === null ? {} : { safety }),
  };
}

function listed(rejected: readonly Rejection[]): Pick<ModelRoute, 'rejected' | 'rejected_more'> {
  if (rejected.length <= REJECTED_LISTED_MAX) return { rejected };
  return { rejected: rejected.slice(0, REJECTED_LISTED_MAX), rejected_more: rejected.length - REJECTED_LISTED_MAX };
}

const ESCALATIONS: ReadonlySet<RouteReason> = new Set(['low_confidence_escalated', 'correction_escalated']);

function renderCall({ model, inputTokens, cost, latencyMs }: ClassifierCall): NonNullable<ModelRoute['classifier']> {
  return {
    model,
    input_tokens: inputTokens,
    cost_usd: cost === null ? null : formatUsdString(cost),
    latency_ms: latencyMs,
  };
}
