// Replays recorded requests under a draft policy: which tier and model would have served each request, and what its
// tokens would have cost there. The classifier's answers come from the records, so nothing is asked again; tiers are
// matched by name. Pure.

import { BoundedMap } from '../../platform/bounded-map.ts';
import type { RoutedApi } from '../models/apis.ts';
import type { Model } from '../models/catalog.ts';
import { type PicoUsd, picoUsd } from '../money/pico-usd.ts';
import { rateUsage } from '../settlement/rate-usage.ts';
import type { Usage } from '../usage/usage.ts';
import { continueRoute, decideRoute, type Judgement, type RouteDecision, repeatRoute } from './decide-route.ts';
import type { ModelRoute } from './model-route.ts';
import { RouteCandidates } from './route-candidates.ts';
import type { RoutingPolicy } from './routing-policy.ts';

/** A routed request, from its record and its usage. */
export interface RoutedRequest {
  readonly organizationId: string;
  readonly isBilled: boolean;
  readonly api: RoutedApi;
  /** The model that served. */
  readonly model: string;
  readonly route: ModelRoute;
  readonly requestBytes: number;
  /** null: not known. */
  readonly usage: Usage | null;
  readonly ratedCost: PicoUsd | null;
  /** From the record: set only when both prices were known (spec 2.4). */
  readonly baselineCost: PicoUsd | null;
}

export interface Draft {
  readonly policy: RoutingPolicy;
  readonly modelNamed: (name: string) => Model | null;
  /** Public ids; null: every model. When the request was made, its key or team may have allowed fewer. */
  readonly allowedModelsOf: (organizationId: string) => ReadonlySet<string> | null;
}

export interface ReplayReport {
  readonly requests: number;
  readonly replayed: number;
  /** How many of those continued an earlier response and so stayed on its model under any policy. */
  readonly continued: number;
  /** How many of those the draft would have sent to another model. */
  readonly moved: number;
  /** Why requests could not be replayed, and how many. */
  readonly unreplayed: ReadonlyMap<string, number>;
  /** Replayed requests by tier: the draft's tiers in its order, then others; '' is no tier. */
  readonly tiers: readonly { readonly tier: string; readonly was: number; readonly draft: number }[];
  /** How many replayed requests have a known cost both ways; the costs below are theirs. */
  readonly compared: number;
  readonly was: ReplayCosts;
  readonly draft: ReplayCosts;
}

export interface ReplayCosts {
  readonly cost: PicoUsd;
  /** The requests that have a baseline, their cost, and what the strongest tier would have cost. */
  readonly baselined: number;
  readonly baselinedCost: PicoUsd;
  readonly baselineCost: PicoUsd;
}

/** `requests` must be in the order of admission, since a turn's route depends on the previous turn's. */
export async function replayPolicy(
  draft: Draft,
  requests: AsyncIterable<RoutedRequest> | Iterable<RoutedRequest>,
): Promise<ReplayReport> {
  const replay = new Replay(draft);
  for await (const request of requests) replay.add(request);
  return replay.report();
}

/** The last turn of a conversation under the draft. */
interface ReplayedTurn {
  readonly turn: string;
  readonly decision: RouteDecision;
}

interface Outcome {
  readonly decision: RouteDecision;
  readonly continued: boolean;
}

/**
 * How many conversations' last turns are remembered; a conversation that returns after more others takes its previous
 * turn from the record.
 */
const CONVERSATIONS_MAX = 100_000;
const BYTES_PER_TOKEN = 4;

const NO_COSTS: ReplayCosts = {
  cost: picoUsd(0n),
  baselined: 0,
  baselinedCost: picoUsd(0n),
  baselineCost: picoUsd(0n),
};

class Replay {
  private readonly draft: Draft;
  private readonly turns = new BoundedMap<string, ReplayedTurn>(CONVERSATIONS_MAX);
  private readonly unreplayed = new Map<string, number>();
  private readonly tiers: Map<string, { was: number; draft: number }>;
  private requests = 0;
  private continued = 0;
  private moved = 0;
  private compared = 0;
  private was = NO_COSTS;
  private drafted = NO_COSTS;

  constructor(draft: Draft) {
    this.draft = draft;
    this.tiers = new Map(draft.policy.tiers.map(({ name }) => [name, { was: 0, draft: 0 }]));
  }

  add(request: RoutedRequest): void {
    this.requests += 1;
    const outcome = this.decide(request);
    if (typeof outcome === 'string') {
      this.unreplayed.set(outcome, (this.unreplayed.get(outcome) ?? 0) + 1);
      return;
    }
    const { decision } = outcome;
    if (outcome.continued) this.continued += 1;
    if (decision.model !== request.model) this.moved += 1;
    this.countTier(request.route.tier ?? '', 'was');
    this.countTier(decision.tier ?? '', 'draft');
    this.compare(request, decision);
  }

  report(): ReplayReport {
    const { requests, continued, moved, unreplayed, compared, was } = this;
    const missed = [...unreplayed.values()].reduce((sum, count) => sum + count, 0);
    const tiers = [...this.tiers].map(([tier, counts]) => ({ tier, ...counts }));
    return {
      requests,
      replayed: requests - missed,
      continued,
      moved,
      unreplayed,
      tiers,
      compared,
      was,
      draft: this.drafted,
    };
  }

  /** A string says why the request cannot be replayed. */
  private decide(request: RoutedRequest): Outcome | string {
    const { policy } = this.draft;
    const { route } = request;
    const candidates = this.candidatesFor(request);
    if (route.reason === 'continuation')
      return this.served(request, {
        decision: continueRoute(policy, candidates, { model: request.model, tier: null }),
        continued: true,
      });
    const { failure } = candidates;
    if (failure !== null)
      return failure === 'denied'
        ? 'the organization may use none of the draft’s models'
        : 'no model of the draft can serve it';
    const judgement = judgementOf(route, policy);
    if (judgement === null)
      return (
        `the classifier chose the tier ${JSON.stringify(route.classified_tier ?? '')}, which the draft does ` +
        `not have`
      );
    const known = this.turns.get(route.conversation ?? '');
    if (known !== undefined && known.turn === route.turn)
      return this.served(request, { decision: repeatRoute(policy, candidates, known.decision), continued: false });
    const decision = decideRoute({
      policy,
      candidates,
      judgement,
      conversationTokens: tokensOf(request),
      previous: known?.decision ?? previousIn(route),
      reasoning: route.safety === 'signed_reasoning' ? 'signed' : 'none',
    });
    // A token count decides no turn, and a request without human text is not one.
    if (typeof judgement !== 'string' || judgement === 'classifier_failed') this.remember(route, decision);
    return this.served(request, { decision, continued: false });
  }

  private served({ api }: RoutedRequest, outcome: Outcome): Outcome | string {
    const model = this.draft.modelNamed(outcome.decision.model);
    if (model === null) return `the model ${JSON.stringify(outcome.decision.model)} is no longer there`;
    return model.servedBy.some(({ apis }) => apis.includes(api))
      ? outcome
      : `the draft sends it to ${JSON.stringify(model.id)}, which is not served on ${api}`;
  }

  private remember({ conversation, turn }: ModelRoute, decision: RouteDecision): void {
    if (conversation === undefined || turn === undefined) return;
    this.turns.set(conversation, { turn, decision });
  }

  private candidatesFor(request: RoutedRequest): RouteCandidates {
    const { policy, modelNamed, allowedModelsOf } = this.draft;
    const { api, isBilled, organizationId } = request;
    const allowedModels = allowedModelsOf(organizationId);
    return new RouteCandidates({
      policy,
      api,
      modelNamed,
      allowedModels,
      isBilled,
      conversationTokens: tokensOf(request),
      outputTokensMax: null,
    });
  }

  private countTier(tier: string, side: 'was' | 'draft'): void {
    const counts = this.tiers.get(tier) ?? { was: 0, draft: 0 };
    counts[side] += 1;
    this.tiers.set(tier, counts);
  }

  private compare(request: RoutedRequest, decision: RouteDecision): void {
    const cost = this.costAt(decision.model, request);
    if (request.ratedCost === null || cost === null) return;
    this.compared += 1;
    this.was = added(this.was, request.ratedCost, request.baselineCost);
    // A record without a comparable cost has no baseline under the draft either.
    const baseline =
      request.baselineCost === null || decision.baselineModel === null
        ? null
        : this.costAt(decision.baselineModel, request);
    this.drafted = added(this.drafted, cost, baseline);
  }

  /**
   * The recorded cost at the model that served; at another model, its present price for the same tokens. A token count
   * is free at any model.
   */
  private costAt(modelId: string, { model, ratedCost, usage, api }: RoutedRequest): PicoUsd | null {
    if (modelId === model || api === 'count_tokens') return ratedCost;
    const price = this.draft.modelNamed(modelId)?.servedBy.find(({ apis }) => apis.includes(api))?.price ?? null;
    return price === null || usage === null ? null : rateUsage(usage, price);
  }
}

function added(sums: ReplayCosts, cost: PicoUsd, baseline: PicoUsd | null): ReplayCosts {
  const all = { ...sums, cost: picoUsd(sums.cost + cost) };
  if (baseline === null) return all;
  return {
    ...all,
    baselined: sums.baselined + 1,
    baselinedCost: picoUsd(sums.baselinedCost + cost),
    baselineCost: picoUsd(sums.baselineCost + baseline),
  };
}

/** null: the classifier chose a tier that the draft does not have. */
function judgementOf(route: ModelRoute, policy: RoutingPolicy): Judgement | null {
  const { reason, classified_tier: tier = '' } = route;
  if (reason === 'classifier_failed' || reason === 'no_request_text' || reason === 'classifier_skipped') return reason;
  if (!policy.tiers.some(({ name }) => name === tier)) return null;
  return {
    tier,
    confidence: route.confidence ?? 0,
    distribution: route.distribution ?? {},
    task: route.task ?? null,
    correctionProbability: route.correction_probability ?? null,
  };
}

/** The previous turn from the record, used when the draft has not seen the conversation yet. */
function previousIn({
  previous_model: model,
  previous_tier: tier,
}: ModelRoute): { model: string; tier: string | null } | null {
  return model === undefined ? null : { model, tier: tier ?? null };
}

function tokensOf({ usage, requestBytes }: RoutedRequest): number {
  return usage?.inputTokens ?? Math.ceil(requestBytes / BYTES_PER_TOKEN);
}
