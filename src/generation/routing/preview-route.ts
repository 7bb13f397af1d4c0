// A dry run of auto routing: how a policy would route a request. Only the classifier is called. Nothing is remembered
// or charged.

import type { RoutedApi } from '../../domain/models/apis.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { PreparedConversation } from '../../domain/routing/conversation/prepared-conversation.ts';
import type { Judgement, RouteDecision } from '../../domain/routing/decide-route.ts';
import { modelRouteOf, type TurnHashes } from '../../domain/routing/model-route.ts';
import { RouteCandidates } from '../../domain/routing/route-candidates.ts';
import type { RoutePreview } from '../../domain/routing/route-preview.ts';
import type { RoutingPolicy } from '../../domain/routing/routing-policy.ts';
import { assert } from '../../platform/assert.ts';
import { inTurnsOf } from '../../platform/worker-pool.ts';
import type { ServingCatalog } from '../catalog/serving-catalog.ts';
import { ALL_DIALECTS } from '../dialects/all-dialects.ts';
import type { PreviewedRequest } from '../guardrails/screen-preview.ts';
import { refuseScan } from '../request/read-request.ts';
import type { RequestScanner } from '../request/scan/request-scanner.ts';
import type { Classification } from './classifier.ts';
import { prepareBody } from './prepare-body.ts';
import type { RouterParts } from './router.ts';
import { candidateParams, decideFor, findContinuation, nameTurn, type RoutingRequest } from './routing-request.ts';
import type { PreviousTurn } from './turn-store.ts';

export interface PreviewParams {
  readonly caller: RoutingRequest['principal'];
  readonly api: RoutedApi;
  readonly body: Buffer;
  readonly header: RoutingRequest['header'];
  readonly policy: RoutingPolicy;
  readonly catalog: ServingCatalog;
}

/** Screens the request: the body that goes on, or the refusal. */
export type ScreenPreviewed = (request: PreviewedRequest) => Promise<Buffer | Refusal>;

export class RoutePreviewer {
  private readonly parts: RouterParts;
  private readonly scanner: RequestScanner;
  private readonly screen: ScreenPreviewed;

  constructor(parts: RouterParts, scanner: RequestScanner, screen: ScreenPreviewed) {
    this.parts = parts;
    this.scanner = scanner;
    this.screen = screen;
  }

  /** Routes the request as the first one of its turn, ignoring an earlier decision for that turn. */
  async preview(params: PreviewParams): Promise<RoutePreview | Refusal> {
    const { caller, api, header, policy, catalog } = params;
    const dialect = ALL_DIALECTS.find((candidate) => candidate.api === api);
    assert(dialect !== undefined, 'an API of text models has a dialect');
    const refused = refuseScan(this.scanner.scan(params.body));
    if (refused !== null) return refused;
    const body = await this.screen({ organizationId: caller.organizationId, dialect, body: params.body });
    if ('kind' in body) return body;
    const scanned = this.scanner.scan(body);
    const bounds = refuseScan(scanned) ?? dialect.readBounds(scanned, body);
    if ('kind' in bounds) return bounds;
    const request: RoutingRequest = { principal: caller, api, body, bounds, header, catalog };
    const continued = await findContinuation(request, policy, this.parts.savedResponses);
    if (continued !== null && 'kind' in continued) return continued;
    const prepared = await prepareBody(api, body, inTurnsOf(this.parts.workers, caller.organizationId));
    return continued === null
      ? this.previewTurn(request, policy, prepared)
      : this.show(request, policy, { decision: continued, prepared });
  }

  private async previewTurn(
    request: RoutingRequest,
    policy: RoutingPolicy,
    prepared: PreparedConversation | null,
  ): Promise<RoutePreview> {
    const { failure } = new RouteCandidates(candidateParams(request, policy));
    if (failure !== null) return { ...this.show(request, policy, { decision: null, prepared }), outcome: failure };
    const named = prepared === null ? null : nameTurn(request, prepared);
    const previous = named === null ? null : await this.parts.turns.previousOf(named.key);
    const sizes = [null, previous].map((known) => candidateParams(request, policy, { previous: known, prepared }));
    if (request.api !== 'count_tokens' && sizes.every((params) => new RouteCandidates(params).isTooLarge))
      return { ...this.show(request, policy, { decision: null, prepared, previous }), outcome: 'unavailable' };
    const isFollowUp = previous !== null || (prepared?.isFollowUp ?? false);
    const classification = prepared === null ? null : await this.classify(request, policy, { ...prepared, isFollowUp });
    const judgement = judgementOf(request, prepared, classification);
    const decision = decideFor(request, policy, { judgement, previous, prepared });
    return this.show(request, policy, {
      decision,
      prepared,
      previous,
      classification,
      turnHashes: named?.hashes ?? null,
    });
  }

  /** null: there is no text to classify. */
  private async classify(
    { api, catalog, principal }: RoutingRequest,
    policy: RoutingPolicy,
    prepared: PreparedConversation,
  ): Promise<Classification | null> {
    const { humanTexts, isFollowUp } = prepared;
    if (humanTexts.length === 0 || api === 'count_tokens') return null;
    const askCorrection = policy.followUp?.corrections === true && isFollowUp;
    return this.parts.classifier.classify({
      catalog,
      policy,
      organizationId: principal.organizationId,
      humanTexts,
      askCorrection,
    });
  }

  private show(request: RoutingRequest, policy: RoutingPolicy, found: Found): RoutePreview {
    const { decision, prepared, previous = null, classification = null, turnHashes = null } = found;
    const params = candidateParams(request, policy, { previous, prepared });
    const circumstances = {
      requested: this.parts.virtualModel,
      tiers: policy.tiers,
      cached: false,
      classifier: classification?.call ?? null,
      turnHashes,
    };
    return {
      outcome: 'routed',
      model: decision?.model ?? null,
      route: decision === null ? null : modelRouteOf(decision, circumstances),
      classifierResult: classification?.result ?? null,
      humanTexts: prepared?.humanTexts ?? [],
      conversationTokens: params.conversationTokens,
      candidates: new RouteCandidates(params).all,
    };
  }
}

interface Found {
  /** null: no candidate can serve. */
  readonly decision: RouteDecision | null;
  /** null: the body could not be read in time. */
  readonly prepared: PreparedConversation | null;
  readonly previous?: PreviousTurn | null;
  readonly classification?: Classification | null;
  readonly turnHashes?: TurnHashes | null;
}

function judgementOf(
  { api }: RoutingRequest,
  prepared: PreparedConversation | null,
  classification: Classification | null,
): Judgement {
  if (prepared === null) return 'classifier_failed';
  if (prepared.humanTexts.length === 0) return 'no_request_text';
  return api === 'count_tokens' ? 'classifier_skipped' : (classification?.answer ?? 'classifier_failed');
}
