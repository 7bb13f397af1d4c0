// Finds the model for a request that names the virtual one (spec 4.11): policy -> continuation -> conversation -> the turn's route, classified when it
// is new -> the record. Everything after that is a request for the chosen model like any other.

import { hash } from 'node:crypto';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Baseline } from '../../domain/routing/baseline-cost.ts';
import type { PreparedConversation, RoutedApi } from '../../domain/routing/conversation/prepared-conversation.ts';
import { sessionHash, sessionOf } from '../../domain/routing/conversation/session.ts';
import { continueRoute, decideRoute, type Judgement, type RouteDecision, repeatRoute } from '../../domain/routing/decide-route.ts';
import { type ClassifierCall, type ModelRoute, modelRouteOf, type TurnHashes } from '../../domain/routing/model-route.ts';
import { RouteCandidates } from '../../domain/routing/route-candidates.ts';
import type { RoutingPolicy } from '../../domain/routing/routing-policy.ts';
import type { SavedResponses } from '../catalog/saved-responses.ts';
import type { ServingCatalog } from '../catalog/serving-catalog.ts';
import type { RequestBounds } from '../dialects/dialect.ts';
import type { Classification, Classifier } from './classifier.ts';
import { type ConversationWorkers, prepareBody } from './prepare-body.ts';
import type { RoutingMetrics } from './routing-metrics.ts';
import type { SharedTurns } from './shared-turns.ts';
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

export interface RoutingRequest {
  readonly principal: ScopedPrincipal;
  readonly api: RoutedApi;
  readonly body: Buffer;
  readonly bounds: RequestBounds;
  /** The client's headers; names in lower case. */
  readonly header: (name: string) => string | null;
  /** The snapshot that the whole request goes by. */
  readonly catalog: ServingCatalog;
}

export interface Routed {
  /** Public id. */
  readonly model: string;
  readonly route: ModelRoute;
  readonly baseline: Baseline;
}

/** What a text takes on average; what a conversation has reported is better, and is used where it is known. */
const BYTES_PER_TOKEN = 4;

const ROUTED_APIS: Readonly<Record<RoutedApi, true>> = { chat_completions: true, responses: true, messages: true, count_tokens: true };

export function isRoutedApi(api: string): api is RoutedApi {
  return Object.hasOwn(ROUTED_APIS, api);
}

export class Router {
  readonly virtualModel: string;
  private readonly parts: RouterParts;

  constructor(parts: RouterParts) {
    this.virtualModel = parts.virtualModel;
    this.parts = parts;
  }

  async route(request: RoutingRequest): Promise<Routed | Refusal> {
    const policy = this.policyOf(request);
    if ('kind' in policy) return policy;
    return (await this.continue(request, policy)) ?? this.routeTurn(request, policy);
  }

  /** Spec 4.11: where auto routing is off, its model is an unknown one. */
  private policyOf({ principal, catalog: { routing } }: RoutingRequest): RoutingPolicy | Refusal {
    const name = routing.policyOf.get(principal.organizationId);
    if (name === undefined) return { kind: 'unknown_model', model: this.virtualModel };
    return routing.policies.get(name) ?? { kind: 'routing_unavailable' };
  }

  /** null: the request continues no response that is known here. */
  private async continue(request: RoutingRequest, policy: RoutingPolicy): Promise<Routed | Refusal | null> {
    const responseId = request.bounds.saved?.previousResponseId ?? null;
    if (responseId === null) return null;
    let saved: Awaited<ReturnType<SavedResponses['find']>>;
    try {
      saved = await this.parts.savedResponses.find(request.principal, responseId);
    } catch {
      return { kind: 'routing_unavailable' };
    }
    if (saved === 'foreign') return { kind: 'response_not_found' };
    if (saved === 'unknown') return null;
    const candidates = new RouteCandidates(candidateQuestion(request, policy, null));
    return this.routed(request, policy, { decision: continueRoute(policy, candidates, { model: saved.model, tier: null }), cached: false });
  }

  private async routeTurn(request: RoutingRequest, policy: RoutingPolicy): Promise<Routed | Refusal> {
    const candidates = new RouteCandidates(candidateQuestion(request, policy, null));
    if (candidates.failure !== null) return { kind: candidates.failure === 'denied' ? 'routing_denied' : 'routing_unavailable' };
    const preparing = prepareBody(request.api, request.body, this.parts.workers);
    const prepared = preparing instanceof Promise ? await preparing : preparing;
    const decide = (judgement: Judgement, previous: PreviousTurn | null): RouteDecision => decideFor(request, policy, { judgement, previous, prepared });
    if (prepared === null) return this.routed(request, policy, { decision: decide('classifier_failed', null), cached: false });
    const named = nameTurn(request, prepared);
    const found = { named: named?.hashes ?? null };
    if (prepared.humanTexts.length === 0) return this.routed(request, policy, { ...found, decision: decide('no_request_text', null), cached: false });
    if (request.api === 'count_tokens') {
      const known = named === null ? null : await this.parts.turns.find(named.key);
      const decision = known === null ? decide('classifier_skipped', null) : repeatRoute(policy, candidates, known);
      return this.routed(request, policy, { ...found, decision, cached: known !== null });
    }
    let classification: Classification | null = null;
    const decider = {
      classifierTimeoutMs: policy.classifier.timeoutMs,
      decideUnasked: (previous: PreviousTurn | null) => decide('classifier_failed', previous),
      decide: async (previous: PreviousTurn | null) => {
        const askCorrection = policy.followUp?.corrections === true && prepared.isFollowUp;
        classification = await this.parts.classifier.classify({ catalog: request.catalog, policy, humanTexts: prepared.humanTexts, askCorrection });
        return decide(classification.answer ?? 'classifier_failed', previous);
      },
    };
    const route = named === null ? { decision: await decider.decide(null), cached: false } : await this.parts.turns.routeOf(named.key, decider);
    const decision = route.cached ? repeatRoute(policy, candidates, route.decision) : route.decision;
    const classifier = (classification as Classification | null)?.call ?? null;
    return this.routed(request, policy, { ...found, decision, cached: route.cached, classifier });
  }

  private routed(
    { api, catalog }: RoutingRequest,
    policy: RoutingPolicy,
    found: { readonly decision: RouteDecision; readonly cached: boolean; readonly classifier?: ClassifierCall | null; readonly named?: TurnHashes | null },
  ): Routed {
    const { decision, cached, classifier = null, named = null } = found;
    this.parts.metrics.routed(decision.reason, cached);
    const route = modelRouteOf(decision, { requested: this.virtualModel, tiers: policy.tiers, cached, classifier, named });
    return { model: decision.model, route, baseline: baselineOf(decision, api, catalog) };
  }
}

interface Known {
  readonly judgement: Judgement;
  readonly previous: PreviousTurn | null;
  /** null: the body could not be read in time. */
  readonly prepared: PreparedConversation | null;
}

function decideFor(request: RoutingRequest, policy: RoutingPolicy, { judgement, previous, prepared }: Known): RouteDecision {
  const question = candidateQuestion(request, policy, previous);
  return decideRoute({
    policy,
    candidates: new RouteCandidates(question),
    judgement,
    conversationTokens: question.conversationTokens,
    previous: previous === null ? null : { model: previous.decision.model, tier: previous.decision.tier },
    reasoning: prepared?.reasoning ?? 'none',
  });
}

function candidateQuestion({ principal, api, body, bounds, catalog }: RoutingRequest, policy: RoutingPolicy, previous: PreviousTurn | null) {
  return {
    policy,
    api,
    modelNamed: (name: string) => catalog.byName.get(name)?.model ?? null,
    allowedModels: principal.allowedModels,
    isBilled: principal.billed,
    conversationTokens: estimateTokens(body.length, previous),
    outputTokensMax: bounds.outputTokensMax,
  };
}

/** What the conversation's last turn reported, and for what came since, its bytes. */
function estimateTokens(bodyBytes: number, previous: PreviousTurn | null): number {
  const known = previous !== null && previous.inputTokens !== null && previous.requestBytes !== null;
  const base = known ? { tokens: previous.inputTokens, bytes: previous.requestBytes } : { tokens: 0, bytes: 0 };
  return base.tokens + Math.ceil(Math.max(0, bodyBytes - base.bytes) / BYTES_PER_TOKEN);
}

/** A remembered turn belongs to who pays, the session and the first human message: side requests of an agent share its session. null: no session. */
function nameTurn({ principal, header }: RoutingRequest, prepared: PreparedConversation): { key: TurnKey; hashes: TurnHashes } | null {
  const found = sessionOf(header, prepared);
  if (found === null) return null;
  const session = sessionHash(principal.organizationId, found);
  const conversation = hash('sha256', JSON.stringify([session, principal.walletId, prepared.firstMessage]), 'base64url');
  const { turn, humanMessages } = prepared;
  return { key: { conversation, turn, humanMessages, organizationId: principal.organizationId }, hashes: { session, conversation, turn } };
}

function baselineOf({ model, baselineModel }: RouteDecision, api: RoutedApi, catalog: ServingCatalog): Baseline {
  if (baselineModel === null) return null;
  if (baselineModel === model) return 'own';
  const served = catalog.byName.get(baselineModel);
  return served?.offers.get(api)?.[0]?.price ?? served?.model.servedBy.find(({ price }) => price !== null)?.price ?? null;
}
