// The request to be routed, as the other files of routing read it: its candidates, its decision, the name of its turn,
// and the baseline of its cost.

import { hash } from 'node:crypto';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { RoutedApi } from '../../domain/models/apis.ts';
import type { Model } from '../../domain/models/catalog.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Baseline } from '../../domain/routing/baseline-cost.ts';
import type { PreparedConversation } from '../../domain/routing/conversation/prepared-conversation.ts';
import { sessionHash, sessionOf } from '../../domain/routing/conversation/session.ts';
import { sideAgentOf } from '../../domain/routing/conversation/side-requests.ts';
import { continueRoute, decideRoute, type Judgement, type RouteDecision } from '../../domain/routing/decide-route.ts';
import type { TurnHashes } from '../../domain/routing/model-route.ts';
import { type CandidateParams, RouteCandidates } from '../../domain/routing/route-candidates.ts';
import type { RoutingPolicy } from '../../domain/routing/routing-policy.ts';
import { pricedDeployments } from '../catalog/priced-deployments.ts';
import type { SavedResponses } from '../catalog/saved-responses.ts';
import type { ServingCatalog } from '../catalog/serving-catalog.ts';
import type { RequestBounds } from '../dialects/dialect.ts';
import type { TurnKey } from './turn-memory.ts';
import type { PreviousTurn } from './turn-store.ts';

export interface RoutingRequest {
  /** The fields of the principal that routing needs. */
  readonly principal: Pick<ScopedPrincipal, 'organizationId' | 'walletId' | 'billed' | 'allowedModels'>;
  readonly api: RoutedApi;
  readonly body: Buffer;
  readonly bounds: RequestBounds;
  /** The client's headers; names in lower case. */
  readonly header: (name: string) => string | null;
  /** The catalog snapshot that is used for the whole request. */
  readonly catalog: ServingCatalog;
  /** Whether none of a model's providers may be called now. Absent: it does not matter. */
  readonly isPaused?: (model: Model) => boolean;
}

/** The average of texts. If a conversation's size was reported, that is used instead. */
const BYTES_PER_TOKEN = 4;

/** null: the request continues no response that is known here. */
export async function findContinuation(
  request: RoutingRequest,
  policy: RoutingPolicy,
  savedResponses: SavedResponses,
): Promise<RouteDecision | Refusal | null> {
  const responseId = request.bounds.saved?.previousResponseId ?? null;
  if (responseId === null) return null;
  const saved = await savedResponses.find(request.principal, responseId);
  if (saved === 'unavailable') return { kind: 'routing_unavailable' };
  if (saved === 'unposted') return { kind: 'not_posted_yet' };
  if (saved === 'foreign') return { kind: 'response_not_found' };
  if (saved === 'unknown') return null;
  return continueRoute(policy, new RouteCandidates(candidateParams(request, policy)), {
    model: saved.model,
    tier: null,
  });
}

interface Known {
  readonly judgement: Judgement;
  readonly previous: PreviousTurn | null;
  /** null: the body could not be read in time. */
  readonly prepared: PreparedConversation | null;
}

export function decideFor(
  request: RoutingRequest,
  policy: RoutingPolicy,
  { judgement, previous, prepared }: Known,
): RouteDecision {
  const params = candidateParams(request, policy, { previous, prepared });
  return decideRoute({
    policy,
    candidates: new RouteCandidates(params),
    judgement,
    conversationTokens: params.conversationTokens,
    previous: previous === null ? null : { model: previous.decision.model, tier: previous.decision.tier },
    reasoning: prepared?.reasoning ?? 'none',
  });
}

/** The size that the previous turn reported is preferred to an estimate from bytes. */
export function candidateParams(
  { principal, api, body, bounds, catalog, isPaused }: RoutingRequest,
  policy: RoutingPolicy,
  { previous = null, prepared = null }: Partial<Pick<Known, 'previous' | 'prepared'>> = {},
): CandidateParams {
  return {
    policy,
    api,
    modelNamed: (name: string) => catalog.byName.get(name)?.model ?? null,
    allowedModels: principal.allowedModels,
    isBilled: principal.billed,
    canPrice: principal.billed ? canPrice(policy, api, bounds, catalog) : undefined,
    ownKeysFor: catalog.ownKeysFor === undefined ? undefined : (model) => catalog.ownKeysFor?.(model.id, api) ?? null,
    isPaused,
    conversationTokens: estimateTokens(body.length, prepared?.textBytes ?? body.length, previous),
    outputTokensMax: bounds.outputTokensMax,
  };
}

/**
 * The refusal of a request that has no candidate because an own key cannot serve and the service may not serve in its
 * place (spec 5.6); null: there is another reason.
 */
export function refusalOfOwnKeys({ api, catalog }: RoutingRequest, candidates: RouteCandidates): Refusal | null {
  const kept = candidates.all.find(({ rejection }) => rejection === 'credential_unavailable');
  const refusal = kept === undefined ? undefined : catalog.byName.get(kept.model)?.refusals?.get(api);
  return refusal?.kind === 'byok_key_unavailable' ? refusal : null;
}

/**
 * Which models have a price for what the request names. undefined: it names nothing, or no candidate has a price, in
 * which case admission refuses it and says why.
 */
function canPrice(
  policy: RoutingPolicy,
  api: RoutedApi,
  { namedCosts }: RequestBounds,
  catalog: ServingCatalog,
): ((model: Model) => boolean) | undefined {
  if (namedCosts === undefined) return undefined;
  const prices = (model: Model): boolean => {
    const deployments = catalog.byName.get(model.id)?.deployments.get(api);
    // A model that does not serve the called API fails as if the client had named it (spec 4.11).
    return deployments === undefined || !('kind' in pricedDeployments(deployments, namedCosts));
  };
  const models = policy.tiers.flatMap((tier) => tier.models.map(({ id }) => catalog.byName.get(id)?.model));
  return models.some((model) => model !== undefined && prices(model)) ? prices : undefined;
}

/**
 * The size that the last turn reported plus an estimate from bytes for what came since. If the history was cut since,
 * the reported size is reduced in proportion to the bytes that are left.
 */
function estimateTokens(bodyBytes: number, textBytes: number, previous: PreviousTurn | null): number {
  const tokens = previous?.inputTokens ?? null;
  const bytes = previous?.requestBytes ?? null;
  if (tokens === null || bytes === null) return Math.ceil(textBytes / BYTES_PER_TOKEN);
  if (bodyBytes < bytes) return Math.ceil((tokens * bodyBytes) / bytes);
  return tokens + Math.ceil(Math.min(textBytes, bodyBytes - bytes) / BYTES_PER_TOKEN);
}

/**
 * The key of a request's turn. A conversation is recognized by payer and session. An agent's side requests share its
 * session and form another conversation. null: there is no session.
 */
export function nameTurn(
  { principal, api, header }: RoutingRequest,
  prepared: PreparedConversation,
): { key: TurnKey; hashes: TurnHashes } | null {
  const found = sessionOf(header, prepared);
  if (found === null) return null;
  const session = sessionHash(principal.organizationId, found);
  const side = sideAgentOf(header) ?? (prepared.isSideRequest ? prepared.firstMessage : '');
  const conversation = hash('sha256', JSON.stringify([session, principal.walletId, side]), 'base64url');
  const { offersTools, instructions } = prepared;
  const [turn, otherwise] = turnNames(prepared.turn, offersTools);
  const key: TurnKey = {
    conversation,
    turn,
    // An agent may withdraw its tools for a turn's last request, and count tokens without them.
    alsoNamed: (prepared.isInToolLoop && !offersTools) || api === 'count_tokens' ? otherwise : null,
    previousTurns: prepared.previousTurn === null ? [] : turnNames(prepared.previousTurn, offersTools),
    offersTools,
    instructions,
    organizationId: principal.organizationId,
  };
  return { key, hashes: { session, conversation, turn } };
}

/** The name of a turn by whether this request offers tools, and the name that it would have otherwise. */
function turnNames(turn: string, offersTools: boolean): readonly [own: string, otherwise: string] {
  const withTools = `${turn}+tools`;
  return offersTools ? [withTools, turn] : [turn, withTools];
}

export function baselineOf({ model, baselineModel }: RouteDecision, api: RoutedApi, catalog: ServingCatalog): Baseline {
  if (baselineModel === null) return null;
  if (baselineModel === model) return 'own';
  const served = catalog.byName.get(baselineModel);
  return (
    served?.deployments.get(api)?.[0]?.price ??
    served?.model.servedBy.find(({ price }) => price !== null)?.price ??
    null
  );
}
