// A generation request from its head to its end, on one screen and in the same order for every dialect (ARCHITECTURE, "The path of a request"):
//
//   authenticate -> receive and scan -> (route, where the virtual model is named ->) resolve model -> bound -> admit (hold) -> record -> relay -> meter and settle (in the relay's end)

import type { ScopedPrincipal } from '../domain/identity/principal.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Clock } from '../platform/clock.ts';
import { TurnWork } from '../platform/turn-end.ts';
import type { Admission } from './admission/admission.ts';
import { admit, type Gate } from './admission/admit.ts';
import { continueFrom } from './catalog/continuation.ts';
import { resolveModel } from './catalog/resolve-model.ts';
import type { SavedResponses } from './catalog/saved-responses.ts';
import type { Offer, ServedModel, ServingCatalog } from './catalog/serving-catalog.ts';
import type { Dialect, ReadRequest } from './dialects/dialect.ts';
import { readRequest } from './dialects/read-request.ts';
import type { Authenticator } from './identity/authenticate.ts';
import { readClientRequestId, readTags } from './metering/client-labels.ts';
import { Execution, type Metering } from './metering/execution.ts';
import type { StartParts } from './metering/record-text.ts';
import { type Intake, type ReceivedRequest, receiveRequest } from './relay/receive-request.ts';
import { relay } from './relay/relay.ts';
import type { RelayContext } from './relay/relay-question.ts';
import type { Routed, Router } from './routing/router.ts';
import { isRoutedApi } from './routing/routing-request.ts';

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
  readonly router: Router;
  readonly executionIdHeader: string;
  readonly routedModelHeader: string;
  readonly tagHeader: string;
}

export function serveGeneration(plane: DataPlane, dialect: Dialect): (exchange: Exchange) => void {
  return (exchange) => {
    const receivedAtMs = plane.clock.monotonicMs();
    const identified = plane.authenticator.authenticate(exchange.authorization, exchange.apiKey, 'inference', receivedAtMs);
    // A refusal that needs no look-up is answered before a byte of the body is taken in.
    if ('kind' in identified) return exchange.refuse(identified);
    receiveRequest(exchange, plane.intake, dialect.readForm !== undefined, (request) => {
      if ('kind' in request) exchange.refuse(request);
      else received.add(new Serving(plane, dialect, exchange, request, receivedAtMs, identified));
    });
  };
}

/** Requests that are here in whole: what becomes of them is decided once the sockets of the turn have been read. */
const received = new TurnWork<Serving>((serving) => serving.begin());

/** One request whose body is here, up to where the relay takes over: until then its slab is ours. */
class Serving {
  private readonly plane: DataPlane;
  private readonly dialect: Dialect;
  private readonly exchange: Exchange;
  private readonly request: ReceivedRequest;
  private readonly receivedAtMs: number;
  private readonly identified: Identified;

  constructor(plane: DataPlane, dialect: Dialect, exchange: Exchange, request: ReceivedRequest, receivedAtMs: number, identified: Identified) {
    this.plane = plane;
    this.dialect = dialect;
    this.exchange = exchange;
    this.request = request;
    this.receivedAtMs = receivedAtMs;
    this.identified = identified;
  }

  begin(): void {
    try {
      this.after(this.identified, (principal) => this.serve(principal));
    } catch (fault) {
      this.fail(fault);
    }
  }

  /** Goes on with what a step found, at once where that is here: a warm request waits for nothing and makes no promise. A refusal is the end. */
  private after<T extends object | null>(found: T | Refusal | Promise<T | Refusal>, next: (found: T) => void): void {
    if (found instanceof Promise) found.then((value) => this.after(value, next)).catch((fault: unknown) => this.fail(fault));
    else if (found !== null && 'kind' in found) this.refuse(found);
    else next(found as T);
  }

  private refuse(refusal: Refusal): void {
    this.plane.intake.slabs.release(this.request.slab);
    this.exchange.refuse(refusal);
  }

  private fail(fault: unknown): void {
    this.plane.intake.slabs.discard(this.request.slab);
    this.exchange.fail(fault);
  }

  private serve(principal: ScopedPrincipal): void {
    const { plane, dialect } = this;
    const read = readRequest(dialect, this.request);
    if ('kind' in read) return this.refuse(read);
    const catalog = plane.catalog();
    if (read.requestedModel !== plane.router.virtualModel) this.admit({ principal, read, catalog, routed: null });
    else this.after(this.route(principal, read, catalog), (routed) => this.admit({ principal, read, catalog, routed }));
  }

  /** Spec 4.11: on the text APIs alone; elsewhere the virtual model is one that the endpoint does not serve. */
  private route(principal: ScopedPrincipal, { bounds, requestedModel }: ReadRequest, catalog: ServingCatalog): Promise<Routed | Refusal> | Refusal {
    const { api } = this.dialect;
    const { exchange, request } = this;
    if (isRoutedApi(api)) return this.plane.router.route({ principal, api, body: request.body, bounds, header: (name) => exchange.header(name), catalog });
    const isOn = catalog.routing.policyOf.has(principal.organizationId);
    return isOn ? { kind: 'api_not_supported', model: requestedModel, api } : { kind: 'unknown_model', model: requestedModel };
  }

  /** Nothing is sent and nothing held before this grants it. */
  private admit({ principal, read, catalog, routed }: Read): void {
    const { plane, dialect, request } = this;
    const resolved = resolveModel(catalog, dialect.api, routed?.model ?? read.requestedModel, principal.allowedModels);
    if ('kind' in resolved) return this.refuse(resolved);
    this.after(continueFrom(plane, principal, read.bounds, resolved.offers), (continuation) => {
      const offers = plane.relay.cooldowns.filter(continuation.offers, this.receivedAtMs);
      if ('kind' in offers) return this.refuse(offers);
      this.after(dialect.check === undefined ? null : dialect.check(request.body, plane.relay.workers), () => {
        if (!plane.canRecord()) return this.refuse({ kind: 'billing_unavailable' });
        const { served } = resolved;
        const measure = { bytes: request.body.length, attachments: request.scanned?.attachments ?? 0, carriedTokens: continuation.carriedTokens };
        const admitting = admit({ principal, dialect, served, bounds: read.bounds, measure, request }, plane.gate);
        this.after(admitting, (admission) => this.record({ principal, read, routed, served, offers, admission }));
      });
    });
  }

  /** What is admitted is recorded, then sent. */
  private record({ principal, read, routed, served, offers, admission }: Admitted): void {
    const { plane, dialect, exchange, request } = this;
    const start: StartParts = {
      id: plane.nextExecutionId(),
      admittedAtMs: plane.clock.nowMs(),
      principal,
      walletId: admission.walletId,
      api: dialect.api,
      requestedModel: read.requestedModel,
      model: served.model.id,
      offer: offers[0] as Offer,
      streamed: read.bounds.streamed,
      clientRequestId: readClientRequestId(exchange),
      tags: readTags(exchange, plane.tagHeader),
      authorizedAmount: admission.hold,
      budgets: admission.budgets,
      route: routed?.route ?? null,
      requestBytes: request.body.length,
    };
    const execution = new Execution(start, admission, this.receivedAtMs, plane.metering, routed?.baseline ?? null);
    const ownHeaders = [plane.executionIdHeader, start.id];
    if (routed !== null) ownHeaders.push(plane.routedModelHeader, served.model.id);
    execution.begin(
      () => relay({ exchange, dialect, request, read, execution, offers, tokenizer: served.model.tokenizer, ownHeaders }, plane.relay),
      () => this.refuse({ kind: 'billing_unavailable' }),
    );
  }
}

type Identified = ScopedPrincipal | Promise<ScopedPrincipal | Refusal>;

interface Read {
  readonly principal: ScopedPrincipal;
  readonly read: ReadRequest;
  readonly catalog: ServingCatalog;
  /** null: the client named its model. */
  readonly routed: Routed | null;
}

interface Admitted extends Omit<Read, 'catalog'> {
  readonly served: ServedModel;
  readonly offers: readonly Offer[];
  readonly admission: Admission;
}
