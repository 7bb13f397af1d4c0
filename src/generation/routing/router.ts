// Finds the model for a request that names the virtual one (spec 4.11): policy -> continuation -> conversation -> the
// turn's route, classified when it is new -> the record. From there on the request is one for the chosen model like any
// other.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Baseline } from '../../domain/routing/baseline-cost.ts';
import type { PreparedConversation } from '../../domain/routing/conversation/prepared-conversation.ts';
import { type Judgement, type RouteDecision, repeatRoute } from '../../domain/routing/decide-route.ts';
import {
  type ClassifierCall,
  type ModelRoute,
  modelRouteOf,
  type TurnHashes,
} from '../../domain/routing/model-route.ts';
import { RouteCandidates } from '../../domain/routing/route-candidates.ts';
import type { RoutingPolicy } from '../../domain/routing/routing-policy.ts';
import { socketsRead, withSocketsRead } from '../../platform/event-loop/tick.ts';
import { inTurnsOf } from '../../platform/worker-pool.ts';
import type { SavedResponses } from '../catalog/saved-responses.ts';
import type { Classification, Classifier } from './classifier.ts';
import { type ConversationWorkers, prepareBody } from './prepare-body.ts';
import type { RoutingMetrics } from './routing-metrics.ts';
import {
  baselineOf,
  candidateParams,
  decideFor,
  findContinuation,
  nameTurn,
  type RoutingRequest,
  refusalOfOwnKeys,
} from './routing-request.ts';
import type { SharedTurns, TurnDecider, TurnRoute } from './shared-turns.ts';
import type { TurnKey } from './turn-memory.ts';
import type { PreviousTurn } from './turn-store.ts';

export interface RouterParts {
  /** What a client names to be routed: `service/auto`. */
  readonly virtualModel: string;
  readonly workers: ConversationWorkers;
  readonly turns: SharedTurns;
  readonly classifier: Classifier;
  readonly savedResponses: SavedResponses;
  readonly metrics: RoutingMetrics;
}

export interface Routed {
  /** Public id. */
  readonly model: string;
  readonly route: ModelRoute;
  readonly baseline: Baseline;
}

interface DecidedTurn {
  readonly decision: RouteDecision;
  /** An earlier request of the turn decided it. */
  readonly cached: boolean;
  /** The call that this request made to the classifier. */
  readonly classifier: ClassifierCall | null;
}

/** A request that waits to be routed. */
export interface WaitingRequest extends RoutingRequest {
  /** The client has disconnected, so nothing more may be done for the request. */
  hasLeft(): boolean;
  /**
   * Admits the request for the first of these models for which it can be admitted; the exact admission follows once the
   * serving model is known. null: it is admitted.
   */
  admitProvisionally(models: readonly string[]): Promise<Refusal | null>;
  /**
   * The refusal if none of these models can serve, because the request names a stored object or response that none of
   * their providers may read. null: there is no such reason.
   */
  refusalOfStored(models: readonly string[]): Promise<Refusal | null>;
}

export class Router {
  readonly virtualModel: string;
  private readonly parts: RouterParts;

  constructor(parts: RouterParts) {
    this.virtualModel = parts.virtualModel;
    this.parts = parts;
  }

  /** null: the client has disconnected meanwhile. */
  async route(request: WaitingRequest): Promise<Routed | Refusal | null> {
    const policy = this.policyOf(request);
    if ('kind' in policy) return policy;
    const continued = await findContinuation(request, policy, this.parts.savedResponses);
    if (request.hasLeft()) return null;
    if (continued === null) return this.routeByConversation(request, policy);
    return 'kind' in continued ? continued : this.continueOn(request, policy, continued);
  }

  /**
   * A request with a person's text is a follow-up. Any other request belongs to the turn of the response it continues.
   */
  private async continueOn(
    request: WaitingRequest,
    policy: RoutingPolicy,
    continued: RouteDecision,
  ): Promise<Routed | Refusal | null> {
    // Admitted first, so that no worker's time is spent on a request that is refused.
    const refusal = await request.admitProvisionally([continued.model]);
    if (refusal !== null) return refusal;
    if (request.hasLeft()) return null;
    const prepared = await this.prepare(request);
    const turnHashes = prepared === null ? null : (nameTurn(request, prepared)?.hashes ?? null);
    const isFollowUp = prepared === null || prepared.humanTexts.length > 0;
    const decision = isFollowUp ? continued : { ...continued, previous: null };
    return this.routed(request, policy, { decision, turnHashes, cached: !isFollowUp });
  }

  private prepare({ api, body, principal }: RoutingRequest): ReturnType<typeof prepareBody> {
    return prepareBody(api, body, inTurnsOf(this.parts.workers, principal.organizationId));
  }

  /** Spec 4.11: where auto routing is off, the virtual model does not exist. */
  private policyOf({ principal, catalog: { routing } }: RoutingRequest): RoutingPolicy | Refusal {
    const name = routing.policyOf.get(principal.organizationId);
    if (name === undefined) return { kind: 'unknown_model', model: this.virtualModel };
    return routing.policies.get(name) ?? { kind: 'routing_unavailable' };
  }

  private async routeByConversation(request: WaitingRequest, policy: RoutingPolicy): Promise<Routed | Refusal | null> {
    const candidates = new RouteCandidates(candidateParams(request, policy));
    if (candidates.failure === 'denied') return { kind: 'routing_denied' };
    if (candidates.failure === 'unavailable')
      return refusalOfOwnKeys(request, candidates) ?? { kind: 'routing_unavailable' };
    // The request is admitted before it costs anything: a worker's time for a big body, a claim in Postgres, a
    // classifier call that the operator pays for.
    const refusal = await request.admitProvisionally(candidates.able);
    if (refusal !== null) return refusal;
    if (request.hasLeft()) return null;
    const preparing = this.prepare(request);
    const prepared = preparing instanceof Promise ? await preparing : preparing;
    const decideUnclassified = (judgement: Judgement): RouteDecision =>
      decideFor(request, policy, { judgement, previous: null, prepared });
    if (prepared === null)
      return this.routed(request, policy, { decision: decideUnclassified('classifier_failed'), cached: false });
    const named = nameTurn(request, prepared);
    const found = { turnHashes: named?.hashes ?? null };
    if (candidates.isTooLarge && (await this.isTooLarge(request, policy, prepared, named?.key ?? null)))
      return { kind: 'routing_too_large' };
    if (request.hasLeft()) return null;
    if (prepared.humanTexts.length === 0) {
      // A tool's result for a history that the provider keeps, or that was compacted, belongs to the latest turn.
      const latest = named === null ? null : await this.parts.turns.previousOf(named.key);
      if (latest === null || named === null)
        return this.routed(request, policy, {
          ...found,
          decision: decideUnclassified('no_request_text'),
          cached: false,
        });
      return this.routed(request, policy, {
        turnHashes: { ...named.hashes, turn: latest.turn },
        decision: repeatRoute(policy, candidates, latest.decision),
        cached: true,
      });
    }
    if (request.api === 'count_tokens') {
      const known = named === null ? null : await this.parts.turns.find(named.key);
      const decision =
        known === null ? decideUnclassified('classifier_skipped') : repeatRoute(policy, candidates, known);
      return this.routed(request, policy, { ...found, decision, cached: known !== null });
    }
    // Here a classifier may be asked, which the operator pays for.
    const unreadable = await this.refusalUnlessKnownTurn(request, candidates, named?.key ?? null);
    if (unreadable !== null) return unreadable;
    if (request.hasLeft()) return null;
    const decided = await this.decideTurn(request, policy, prepared, named?.key ?? null);
    if (decided === null) return null;
    const decision = decided.cached ? repeatRoute(policy, candidates, decided.decision) : decided.decision;
    return this.routed(request, policy, { ...found, ...decided, decision });
  }

  /**
   * A turn that has its model already goes on with it, at whichever provider; stored objects are judged after its
   * route.
   */
  private async refusalUnlessKnownTurn(
    request: WaitingRequest,
    candidates: RouteCandidates,
    turn: TurnKey | null,
  ): Promise<Refusal | null> {
    const refusal = await request.refusalOfStored(candidates.all.map(({ model }) => model));
    if (refusal === null || turn === null) return refusal;
    return (await this.parts.turns.find(turn)) === null ? refusal : null;
  }

  /**
   * Whether the request is too long for every candidate. Always false if an earlier request of its turn has a model,
   * and for a token count, by which a client may find out how long the request is.
   */
  private async isTooLarge(
    request: WaitingRequest,
    policy: RoutingPolicy,
    prepared: PreparedConversation,
    turn: TurnKey | null,
  ): Promise<boolean> {
    const isTooLargeAfter = (previous: PreviousTurn | null): boolean =>
      new RouteCandidates(candidateParams(request, policy, { previous, prepared })).isTooLarge;
    if (request.api === 'count_tokens' || !isTooLargeAfter(null)) return false;
    if (turn === null) return true;
    const { turns } = this.parts;
    return (await turns.find(turn)) === null && isTooLargeAfter(await turns.previousOf(turn));
  }

  /** The turn's route, decided now or by an earlier request of the turn. null: the client has disconnected. */
  private async decideTurn(
    request: WaitingRequest,
    policy: RoutingPolicy,
    prepared: PreparedConversation,
    turn: TurnKey | null,
  ): Promise<DecidedTurn | null> {
    const decide = (judgement: Judgement, previous: PreviousTurn | null): RouteDecision =>
      decideFor(request, policy, { judgement, previous, prepared });
    let classification: Classification | null = null;
    const decider: TurnDecider = {
      hasLeft: () => request.hasLeft(),
      classifierTimeoutMs: policy.classifier.timeoutMs,
      decideUnasked: (previous: PreviousTurn | null) => decide('classifier_failed', previous),
      decide: async (previous: PreviousTurn | null) => {
        const askCorrection = policy.followUp?.corrections === true && (prepared.isFollowUp || previous !== null);
        const { organizationId } = request.principal;
        const params = {
          catalog: request.catalog,
          policy,
          organizationId,
          humanTexts: prepared.humanTexts,
          askCorrection,
        };
        classification = await this.parts.classifier.classify(params);
        return decide(classification.answer ?? 'classifier_failed', previous);
      },
    };
    const route = turn === null ? await decideAlone(decider) : await this.parts.turns.routeOf(turn, decider);
    if (route === null) return null;
    const classifier = (classification as Classification | null)?.call ?? null;
    return { decision: route.decision, cached: route.cached, classifier };
  }

  private routed(
    { api, catalog }: RoutingRequest,
    policy: RoutingPolicy,
    found: {
      readonly decision: RouteDecision;
      readonly cached: boolean;
      readonly classifier?: ClassifierCall | null;
      readonly turnHashes?: TurnHashes | null;
    },
  ): Routed {
    const { decision, cached, classifier = null, turnHashes = null } = found;
    this.parts.metrics.routed(decision.reason, cached);
    const route = modelRouteOf(decision, {
      requested: this.virtualModel,
      tiers: policy.tiers,
      cached,
      classifier,
      turnHashes,
    });
    return { model: decision.model, route, baseline: baselineOf(decision, api, catalog) };
  }
}

/** A turn that no other request can belong to. null: the client has disconnected. */
async function decideAlone(decider: TurnDecider): Promise<TurnRoute | null> {
  // The classifier is not asked for a client that left while credit was leased.
  await socketsRead();
  if (decider.hasLeft()) return null;
  return { decision: await withSocketsRead(decider.decide(null)), cached: false };
}
