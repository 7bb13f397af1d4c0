// Finds the model for a request that names the virtual one (spec 4.11): policy -> continuation -> conversation -> the
// turn's route, classified when it is new -> the record. Everything after that is a request for the chosen model like
// any other.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Baseline } from '../../domain/routing/baseline-cost.ts';
import { type Judgement, type RouteDecision, repeatRoute } from '../../domain/routing/decide-route.ts';
import {
  type ClassifierCall,
  type ModelRoute,
  modelRouteOf,
  type TurnHashes,
} from '../../domain/routing/model-route.ts';
import { RouteCandidates } from '../../domain/routing/route-candidates.ts';
import type { RoutingPolicy } from '../../domain/routing/routing-policy.ts';
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
} from './routing-request.ts';
import type { SharedTurns } from './shared-turns.ts';
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

/** A request that waits to be routed. */
export interface WaitingRequest extends RoutingRequest {
  /** Its client has left: nothing more is done for it. */
  hasLeft(): boolean;
  /**
   * Admits the request for the first of these models for which it can be admitted; the exact admission follows once the
   * serving model is known. null: it is admitted.
   */
  admitProvisionally(models: readonly string[]): Promise<Refusal | null>;
}

export class Router {
  readonly virtualModel: string;
  private readonly parts: RouterParts;

  constructor(parts: RouterParts) {
    this.virtualModel = parts.virtualModel;
    this.parts = parts;
  }

  /** null: the client has left meanwhile. */
  async route(request: WaitingRequest): Promise<Routed | Refusal | null> {
    const policy = this.policyOf(request);
    if ('kind' in policy) return policy;
    const continued = await findContinuation(request, policy, this.parts.savedResponses);
    if (request.hasLeft()) return null;
    if (continued === null) return this.routeTurn(request, policy);
    return 'kind' in continued ? continued : this.routed(request, policy, { decision: continued, cached: false });
  }

  /** Spec 4.11: where auto routing is off, its model is an unknown one. */
  private policyOf({ principal, catalog: { routing } }: RoutingRequest): RoutingPolicy | Refusal {
    const name = routing.policyOf.get(principal.organizationId);
    if (name === undefined) return { kind: 'unknown_model', model: this.virtualModel };
    return routing.policies.get(name) ?? { kind: 'routing_unavailable' };
  }

  private async routeTurn(request: WaitingRequest, policy: RoutingPolicy): Promise<Routed | Refusal | null> {
    const candidates = new RouteCandidates(candidateParams(request, policy, null));
    if (candidates.failure !== null)
      return { kind: candidates.failure === 'denied' ? 'routing_denied' : 'routing_unavailable' };
    // Before anything that costs: reading a big body in a worker, a claim in the store, a question that the operator
    // pays for.
    const refusal = await request.admitProvisionally(candidates.able);
    if (refusal !== null) return refusal;
    if (request.hasLeft()) return null;
    const preparing = prepareBody(request.api, request.body, this.parts.workers);
    const prepared = preparing instanceof Promise ? await preparing : preparing;
    const decide = (judgement: Judgement, previous: PreviousTurn | null): RouteDecision =>
      decideFor(request, policy, { judgement, previous, prepared });
    if (prepared === null)
      return this.routed(request, policy, { decision: decide('classifier_failed', null), cached: false });
    const named = nameTurn(request, prepared);
    const found = { named: named?.hashes ?? null };
    if (prepared.humanTexts.length === 0)
      return this.routed(request, policy, { ...found, decision: decide('no_request_text', null), cached: false });
    if (request.api === 'count_tokens') {
      const known = named === null ? null : await this.parts.turns.find(named.key);
      const decision = known === null ? decide('classifier_skipped', null) : repeatRoute(policy, candidates, known);
      return this.routed(request, policy, { ...found, decision, cached: known !== null });
    }
    let classification: Classification | null = null;
    const decider = {
      hasLeft: () => request.hasLeft(),
      classifierTimeoutMs: policy.classifier.timeoutMs,
      decideUnasked: (previous: PreviousTurn | null) => decide('classifier_failed', previous),
      decide: async (previous: PreviousTurn | null) => {
        const askCorrection = policy.followUp?.corrections === true && prepared.isFollowUp;
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
    if (request.hasLeft()) return null;
    const route =
      named === null
        ? { decision: await decider.decide(null), cached: false }
        : await this.parts.turns.routeOf(named.key, decider);
    if (route === null) return null;
    const decision = route.cached ? repeatRoute(policy, candidates, route.decision) : route.decision;
    const classifier = (classification as Classification | null)?.call ?? null;
    return this.routed(request, policy, { ...found, decision, cached: route.cached, classifier });
  }

  private routed(
    { api, catalog }: RoutingRequest,
    policy: RoutingPolicy,
    found: {
      readonly decision: RouteDecision;
      readonly cached: boolean;
      readonly classifier?: ClassifierCall | null;
      readonly named?: TurnHashes | null;
    },
  ): Routed {
    const { decision, cached, classifier = null, named = null } = found;
    this.parts.metrics.routed(decision.reason, cached);
    const route = modelRouteOf(decision, {
      requested: this.virtualModel,
      tiers: policy.tiers,
      cached,
      classifier,
      named,
    });
    return { model: decision.model, route, baseline: baselineOf(decision, api, catalog) };
  }
}
