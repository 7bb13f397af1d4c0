// A generation request from its head to its end, on one screen and in the same order for every dialect (ARCHITECTURE, "The path of a request"):
//
//   authenticate -> receive and scan -> resolve model -> bound -> admit (hold) -> record -> relay -> meter and settle (in the relay's end)

import type { ExecutionStart } from '../domain/executions/execution-record.ts';
import type { ScopedPrincipal } from '../domain/identity/principal.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Clock } from '../platform/clock.ts';
import { admit, type Gate } from './admission/admit.ts';
import { continueFrom } from './catalog/continuation.ts';
import { resolveModel } from './catalog/resolve-model.ts';
import type { SavedResponses } from './catalog/saved-responses.ts';
import type { Offer, ServingCatalog } from './catalog/serving-catalog.ts';
import type { Dialect } from './dialects/dialect.ts';
import { readRequest } from './dialects/read-request.ts';
import type { Authenticator } from './identity/authenticate.ts';
import { readClientRequestId, readTags } from './metering/client-labels.ts';
import { Execution, type Metering } from './metering/execution.ts';
import { type Intake, type ReceivedRequest, receiveRequest } from './relay/receive-request.ts';
import { type RelayContext, relay } from './relay/relay.ts';

/** What the data plane of one process is made of; built once by the gateway. */
export interface DataPlane {
  readonly authenticator: Authenticator;
  readonly catalog: () => ServingCatalog;
  readonly intake: Intake;
  readonly gate: Gate;
  readonly savedResponses: SavedResponses;
  readonly metering: Metering;
  readonly relay: RelayContext;
  readonly clock: Clock;
  readonly nextExecutionId: () => string;
  /** False stops admission before anything is sent: the spool does not take records. */
  readonly canRecord: () => boolean;
  readonly executionIdHeader: string;
  readonly tagHeader: string;
}

export function serveGeneration(plane: DataPlane, dialect: Dialect): (exchange: Exchange) => Promise<void> {
  return async (exchange) => {
    const receivedAtMs = plane.clock.monotonicMs();
    const identified = plane.authenticator.authenticate(exchange.authorization, exchange.apiKey, 'inference');
    // A refusal that needs no look-up is answered before a byte of the body is taken in.
    if ('kind' in identified) return exchange.refuse(identified);

    const receiving = receiveRequest(exchange, plane.intake, dialect.readForm !== undefined);
    const principal = identified instanceof Promise ? await identified : identified;
    const request = await receiving;
    if (request === null) return;
    if ('kind' in request) return exchange.refuse(request);

    let relayed = false;
    try {
      const refusal = 'kind' in principal ? principal : await admitAndRelay(plane, dialect, exchange, principal, request, receivedAtMs);
      relayed = refusal === null;
      if (refusal !== null) exchange.refuse(refusal);
    } finally {
      // From here on the slab is the relay's, or nobody's.
      if (!relayed) plane.intake.slabs.release(request.slab);
    }
  };
}

/** The second half of the path: null once the relay has taken over, else the refusal; then nothing was sent and nothing is held. */
async function admitAndRelay(
  plane: DataPlane,
  dialect: Dialect,
  exchange: Exchange,
  principal: ScopedPrincipal,
  request: ReceivedRequest,
  receivedAtMs: number,
): Promise<Refusal | null> {
  const read = readRequest(dialect, request);
  if ('kind' in read) return read;
  const resolved = resolveModel(plane.catalog(), dialect.api, read.requestedModel, principal.allowedModels);
  if ('kind' in resolved) return resolved;
  const continuing = continueFrom(plane, principal, read.bounds, resolved.offers);
  const continuation = continuing instanceof Promise ? await continuing : continuing;
  if ('kind' in continuation) return continuation;
  const offers = plane.relay.cooldowns.filter(continuation.offers, receivedAtMs);
  if ('kind' in offers) return offers;
  const fault = dialect.check === undefined ? null : await dialect.check(request.body, plane.relay.workers);
  if (fault !== null) return fault;
  if (!plane.canRecord()) return { kind: 'billing_unavailable' };

  const { served } = resolved;
  const { bounds, requestedModel } = read;
  const measure = { bytes: request.body.length, attachments: request.scanned?.attachments ?? 0, carriedTokens: continuation.carriedTokens };
  const admitting = admit({ principal, dialect, served, bounds, measure, request }, plane.gate);
  const admission = admitting instanceof Promise ? await admitting : admitting;
  if ('kind' in admission) return admission;

  const offer = offers[0] as Offer;
  const start: ExecutionStart = {
    id: plane.nextExecutionId(),
    admittedAtMs: plane.clock.nowMs(),
    organizationId: principal.organizationId,
    teamId: principal.teamId,
    userId: principal.userId,
    apiKeyId: principal.apiKeyId,
    walletId: admission.walletId,
    api: dialect.api,
    requestedModel,
    model: served.model.id,
    provider: offer.provider.id,
    providerModel: offer.providerModel,
    priceVersion: offer.price?.version ?? null,
    streamed: bounds.streamed,
    clientRequestId: readClientRequestId(exchange),
    tags: readTags(exchange, plane.tagHeader),
    authorizedAmount: admission.hold === null ? null : admission.hold.toString(),
    requestBytes: request.body.length,
    ...(admission.budgets.length === 0 ? {} : { budgets: admission.budgets }),
  };
  const execution = await Execution.begin(start, offer, admission, receivedAtMs, plane.metering);
  if (execution === null) return { kind: 'billing_unavailable' };
  const ownHeaders = [plane.executionIdHeader, execution.id];
  relay({ exchange, dialect, request, read, execution, offers, tokenizer: served.model.tokenizer, ownHeaders }, plane.relay);
  return null;
}
