// A generation request from its head to its end, on one screen and in the same order for every dialect (ARCHITECTURE,
// "The path of a request"):
//
//   authenticate -> receive and scan -> (route, where the virtual model is named ->) resolve model -> bound -> admit (hold) -> record -> relay -> meter and settle (in the relay's end)
//
// Whatever a step waits for, a client that has left meanwhile is let go of when the wait ends: nothing is sent or
// recorded, and what was drawn goes back.

import type { ScopedPrincipal } from '../domain/identity/principal.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Clock } from '../platform/clock.ts';
import { TickWork } from '../platform/tick.ts';
import { type ForwardedHeaders, forwardedHeaders } from '../upstream/header-policy.ts';
import { Admission } from './admission/admission.ts';
import { admit, type Gate } from './admission/admit.ts';
import { admitFirst } from './admission/admit-first.ts';
import type { AdmissionParams } from './admission/plan-draws.ts';
import { type Continuation, continueFrom } from './catalog/continuation.ts';
import { resolveModel } from './catalog/resolve-model.ts';
import type { SavedResponses } from './catalog/saved-responses.ts';
import type { Deployment, ServedModel, ServingCatalog } from './catalog/serving-catalog.ts';
import { referencesIn } from './catalog/stored-objects.ts';
import type { Dialect, ReadRequest } from './dialects/dialect.ts';
import { readClientRequestId, readTags } from './execution/client-labels.ts';
import { type AdmittedRequest, Execution, type ExecutionOwner, type Metering } from './execution/execution.ts';
import type { RefusedRequests } from './execution/refused-requests.ts';
import type { Authenticator } from './identity/authenticate.ts';
import { relay } from './reply/relay.ts';
import type { RelayContext, RelayParams } from './reply/relay-params.ts';
import { readRequest, withHeaders } from './request/read-request.ts';
import { type Intake, type ReceivedRequest, type RequestReceiver, receiveRequest } from './request/receive.ts';
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
  readonly refusedRequests: RefusedRequests;
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
    const identified = plane.authenticator.authenticateKey(
      exchange.authorization,
      exchange.apiKey,
      receivedAtMs,
      exchange,
    );
    // A refusal that needs no look-up is answered before a byte of the body is taken in.
    if ('kind' in identified) return exchange.refuse(identified);
    receiveRequest(
      new GenerationRequest(plane, dialect, exchange, receivedAtMs, identified),
      plane.intake,
      dialect.readForm !== undefined,
    );
  };
}

/** Requests that are here in whole: what becomes of them is decided once the sockets of the tick have been read. */
const received = new TickWork<GenerationRequest>((generation) => generation.begin());

/**
 * One request until the relay takes over. Until then this object owns the request's pooled buffer and its
 * admission, and releases both exactly once: `release` is the end of whatever does not reach the relay. Each step leaves its
 * result here for the next steps and the relay. On the warm path no step makes a promise or a function.
 */
class GenerationRequest implements RequestReceiver, ExecutionOwner, RelayParams {
  readonly dialect: Dialect;
  readonly exchange: Exchange;
  request!: ReceivedRequest;
  headers!: ForwardedHeaders;
  read!: ReadRequest;
  deployments: readonly Deployment[] = NO_OFFERS;
  execution!: Execution;
  ownHeaders!: readonly string[];
  private readonly plane: DataPlane;
  private readonly receivedAtMs: number;
  readonly identified: Identified;
  private principal!: ScopedPrincipal;
  /** `principal` and `read` are set: a refusal from here on is recorded. */
  private isRead = false;
  private catalog!: ServingCatalog;
  /** null: the client named its model. */
  private routed: Routed | null = null;
  private served!: ServedModel;
  private carriedTokens: number | null = null;
  /**
   * Provisional until the model and the carried tokens are known, then exact. null: nothing is held, or the execution
   * owns it.
   */
  private admission: Admission | null = null;
  private isReleased = false;

  /** Steps that follow one which may have to wait. */
  private static readonly step = {
    serve: (generation: GenerationRequest, principal: ScopedPrincipal): void => generation.serve(principal),
    resolve: (generation: GenerationRequest, routed: Routed | null): void => generation.resolve(routed),
    continue: (generation: GenerationRequest): void => generation.continue(),
    check: (generation: GenerationRequest, continuation: Continuation): void => generation.check(continuation),
    admit: (generation: GenerationRequest): void => generation.admit(),
    record: (generation: GenerationRequest, admission: Admission): void => generation.record(admission),
  };

  constructor(plane: DataPlane, dialect: Dialect, exchange: Exchange, receivedAtMs: number, identified: Identified) {
    this.plane = plane;
    this.dialect = dialect;
    this.exchange = exchange;
    this.receivedAtMs = receivedAtMs;
    this.identified = identified;
  }

  onReceived(request: ReceivedRequest): void {
    this.request = request;
    received.add(this);
  }

  onRefused(refusal: Refusal): void {
    this.exchange.refuse(refusal);
  }

  begin(): void {
    try {
      this.proceed(this.identified, GenerationRequest.step.serve);
    } catch (fault) {
      this.fail(fault);
    }
  }

  /**
   * Calls the next step with what this one found: at once unless that is a promise. A refusal ends the request, and so
   * does a client that has left.
   */
  private proceed<T extends object | null>(
    found: T | Refusal | Promise<T | Refusal>,
    next: (generation: GenerationRequest, found: T) => void,
  ): void {
    if (found instanceof Promise)
      found.then((value) => this.proceed(value, next)).catch((fault: unknown) => this.fail(fault));
    else if (this.exchange.closed) this.abandon(found);
    else if (found !== null && 'kind' in found) this.refuse(found);
    else next(this, found as T);
  }

  /** The client has left while this was found. */
  private abandon(found: object | null): void {
    if (found instanceof Admission) found.release('refused');
    this.release();
  }

  /** The one way in which a request that was taken in whole is refused. */
  private refuse(refusal: Refusal): void {
    const recordedAs = this.recordRefused(refusal);
    this.release();
    this.exchange.refuse(refusal, recordedAs === null ? [] : [this.plane.executionIdHeader, recordedAs]);
  }

  /** The id of the record; null where there is none. */
  private recordRefused(refusal: Refusal): string | null {
    const { plane, dialect, exchange, principal, read } = this;
    if (!this.isRead) return null;
    return plane.refusedRequests.record({
      principal,
      api: dialect.api,
      requestedModel: read.requestedModel,
      model: this.served?.model.id ?? null,
      streamed: read.bounds.streamed,
      clientRequestId: readClientRequestId(exchange),
      tags: readTags(exchange, plane.tagHeader),
      requestBytes: this.request.body.length,
      receivedAtMs: this.receivedAtMs,
      refusal,
    });
  }

  private fail(fault: unknown): void {
    this.release();
    this.exchange.fail(fault);
  }

  private release(): void {
    if (this.isReleased) return;
    this.isReleased = true;
    this.releaseAdmission();
    this.plane.intake.buffers.release(this.request.pooled);
  }

  private releaseAdmission(): void {
    this.admission?.release('refused');
    this.admission = null;
  }

  private serve(principal: ScopedPrincipal): void {
    const { plane } = this;
    const headers = forwardedHeaders(this.exchange.headers);
    if ('kind' in headers) return this.refuse(headers);
    this.headers = headers;
    const read = readRequest(this.dialect, this.request);
    if ('kind' in read) return this.refuse(read);
    this.principal = principal;
    this.read = withHeaders(this.dialect, read, this.exchange);
    this.isRead = true;
    this.catalog = plane.catalog();
    if (read.requestedModel !== plane.router.virtualModel) this.resolve(null);
    else this.proceed(this.route(read), GenerationRequest.step.resolve);
  }

  /** Spec 4.11: on the text APIs alone; elsewhere the virtual model is one that the endpoint does not serve. */
  private route({ bounds, requestedModel }: ReadRequest): Promise<Routed | Refusal | null> | Refusal {
    const { exchange, request, principal, catalog } = this;
    const { api } = this.dialect;
    if (isRoutedApi(api)) {
      const carriedTokens = this.looksUp || bounds.saved?.conversationId != null ? null : 0;
      return this.plane.router.route({
        principal,
        api,
        body: request.body,
        bounds,
        catalog,
        header: (name) => exchange.header(name),
        hasLeft: () => exchange.closed,
        admitProvisionally: (models) => this.admitProvisionally(models, carriedTokens),
      });
    }
    const isOn = catalog.routing.policyOf.has(principal.organizationId);
    return isOn
      ? { kind: 'api_not_supported', model: requestedModel, api }
      : { kind: 'unknown_model', model: requestedModel };
  }

  private resolve(routed: Routed | null): void {
    const { principal, read } = this;
    const resolved = resolveModel(
      this.catalog,
      this.dialect.api,
      routed?.model ?? read.requestedModel,
      principal.allowedModels,
    );
    if ('kind' in resolved) return this.refuse(resolved);
    this.routed = routed;
    this.served = resolved.served;
    this.deployments = resolved.deployments;
    // What it continues is looked up only for a request that could be admitted if it carried nothing along.
    if (!this.looksUp || this.admission !== null) this.continue();
    else this.proceed(this.admitProvisionally([this.served.model.id], 0), GenerationRequest.step.continue);
  }

  /** It continues a response, or refers to items, whose owner is to be found. */
  private get looksUp(): boolean {
    const { scanned } = this.request;
    return (
      this.read.bounds.saved?.previousResponseId != null ||
      (scanned !== null && referencesIn(this.dialect.api, scanned) > 0)
    );
  }

  private continue(): void {
    const { plane, principal, dialect, request, read, deployments } = this;
    const context = { savedResponses: plane.savedResponses, workers: plane.relay.workers };
    this.proceed(
      continueFrom(context, { principal, api: dialect.api, request, bounds: read.bounds, deployments }),
      GenerationRequest.step.check,
    );
  }

  private check({ deployments: found, carriedTokens }: Continuation): void {
    const { plane, dialect } = this;
    const deployments = plane.relay.cooldowns.filter(found, this.organizationId, this.receivedAtMs);
    if ('kind' in deployments) return this.refuse(deployments);
    this.deployments = deployments;
    this.carriedTokens = carriedTokens;
    this.proceed(
      dialect.check === undefined ? null : dialect.check(this.request.body, plane.relay.workers),
      GenerationRequest.step.admit,
    );
  }

  /** Nothing is sent and nothing held before this grants it. */
  private admit(): void {
    const { plane, served, carriedTokens } = this;
    if (!plane.canRecord()) return this.refuse({ kind: 'billing_unavailable' });
    this.releaseAdmission();
    this.proceed(admit(this.needsOf(served, carriedTokens), plane.gate), GenerationRequest.step.record);
  }

  private needsOf(served: ServedModel, carriedTokens: number | null): AdmissionParams {
    const { dialect, request, principal } = this;
    const measure = { bytes: request.body.length, attachments: request.scanned?.attachments ?? 0, carriedTokens };
    return { principal, dialect, served, bounds: this.read.bounds, measure, request };
  }

  /**
   * Admits the request for the first of these models that can be admitted, so that nothing is looked up or classified
   * for a request that would be refused anyway. `admit` replaces it by the exact admission. null: it is admitted.
   */
  private async admitProvisionally(models: readonly string[], carriedTokens: number | null): Promise<Refusal | null> {
    const { plane } = this;
    if (!plane.canRecord()) return { kind: 'billing_unavailable' };
    const candidates = models.map((model): AdmissionParams | Refusal => {
      const resolved = resolveModel(this.catalog, this.dialect.api, model, this.principal.allowedModels);
      if ('kind' in resolved) return resolved;
      const deployments = plane.relay.cooldowns.filter(resolved.deployments, this.organizationId, this.receivedAtMs);
      return 'kind' in deployments ? deployments : this.needsOf(resolved.served, carriedTokens);
    });
    const admission = await admitFirst(candidates, plane.gate);
    if ('kind' in admission) return admission;
    this.admission = admission;
    return null;
  }

  /** What is admitted is recorded, then sent. */
  private record(admission: Admission): void {
    const { plane, dialect, exchange, read, routed, served } = this;
    this.admission = admission;
    const admitted: AdmittedRequest = {
      id: plane.nextExecutionId(),
      admittedAtMs: plane.clock.nowMs(),
      principal: this.principal,
      api: dialect.api,
      requestedModel: read.requestedModel,
      model: served.model.id,
      deployment: this.deployments[0] as Deployment,
      streamed: read.bounds.streamed,
      clientRequestId: readClientRequestId(exchange),
      tags: readTags(exchange, plane.tagHeader),
      route: routed?.route ?? null,
      requestBytes: this.request.body.length,
    };
    const own = plane.executionIdHeader;
    this.ownHeaders =
      routed === null ? [own, admitted.id] : [own, admitted.id, plane.routedModelHeader, served.model.id];
    this.execution = new Execution(admitted, admission, this.receivedAtMs, plane.metering, routed?.baseline ?? null);
    this.execution.begin(this);
    // From here on the execution releases it.
    this.admission = null;
  }

  onRecorded(): void {
    relay(this, this.plane.relay);
  }

  onUnrecorded(): void {
    this.refuse({ kind: 'billing_unavailable' });
  }

  get organizationId(): string {
    return this.principal.organizationId;
  }

  get tokenizer(): string {
    return this.served.model.tokenizer;
  }
}

type Identified = ScopedPrincipal | Promise<ScopedPrincipal | Refusal>;

const NO_OFFERS: readonly Deployment[] = [];
