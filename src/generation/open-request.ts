// Owns one request from its head until the relay takes it over: its buffer and its admission, each of which it releases
// once, and the record of a refusal.

import { isScoped, type ScopedPrincipal } from '../domain/identity/principal.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Exchange } from '../http/exchange.ts';
import type { RefusalWatch } from '../http/refusal-watch.ts';
import { inTurnsOf } from '../platform/worker-pool.ts';
import { type ForwardedHeaders, forwardedHeaders } from '../upstream/header-policy.ts';
import { Admission } from './admission/admission.ts';
import type { AdmissionParams } from './admission/plan-holds.ts';
import { continueFrom } from './catalog/continuation.ts';
import { pricedCallsFirst, pricedDeployments } from './catalog/priced-deployments.ts';
import { findModel } from './catalog/resolve-model.ts';
import type { Deployment, ServedModel, ServingCatalog } from './catalog/serving-catalog.ts';
import { referencesIn } from './catalog/stored-objects.ts';
import type { Dialect, ReadRequest } from './dialects/dialect.ts';
import { readClientRequestId, readTags, readTraceparent } from './execution/client-labels.ts';
import type { Screening } from './guardrails/screening.ts';
import { catalogWithOwnKeys } from './own-keys/catalog-with-own-keys.ts';
import type { OrganizationKeys } from './own-keys/organization-keys.ts';
import type { DataPlane } from './plane.ts';
import { fitsForm } from './request/multipart-scan.ts';
import { readRequest, withHeaders } from './request/read-request.ts';
import type { ReceivedFrom, ReceivedRequest, RequestReceiver } from './request/receive.ts';
import type { Routed } from './routing/router.ts';

/** Serves a request whose body is complete, and releases it. It must not throw. */
export type ServeWhole = (request: OpenRequest, received: ReceivedFrom<ScopedPrincipal>) => Promise<void>;

const BOUNDARY_IN_MODEL = "the provider's name of the model contains the form's boundary after two dashes";

export class OpenRequest implements RefusalWatch, RequestReceiver<ScopedPrincipal> {
  readonly plane: DataPlane;
  readonly dialect: Dialect;
  readonly exchange: Exchange;
  /** When the request's head was received, monotonic. */
  readonly receivedAtMs: number;
  /** When the body's last byte was received, monotonic. */
  wholeAtMs: number;
  /** The client's headers that go to the provider. */
  headers: ForwardedHeaders | null = null;
  /** null until it is read. */
  read: ReadRequest | null = null;
  /** The label that the client gave the request; null: none. */
  clientRequestId: string | null = null;
  /** null: the client named its model, or none is chosen yet. */
  routed: Routed | null = null;
  /** What guardrails found in the request; null: no rule applies to it. */
  screening: Screening | null = null;
  /** Provisional until the model and the carried tokens are known, then exact. null: nothing is held here. */
  admission: Admission | null = null;
  private readonly serveWhole: ServeWhole;
  /** This and `snapshot` are null until the body is complete. */
  private taken: ReceivedFrom<ScopedPrincipal> | null = null;
  private snapshot: ServingCatalog | null = null;

  constructor(plane: DataPlane, dialect: Dialect, exchange: Exchange, receivedAtMs: number, serveWhole: ServeWhole) {
    this.plane = plane;
    this.dialect = dialect;
    this.exchange = exchange;
    this.receivedAtMs = receivedAtMs;
    this.wholeAtMs = receivedAtMs;
    this.serveWhole = serveWhole;
    exchange.refusalWatch = this;
  }

  onReceived(received: ReceivedFrom<ScopedPrincipal>): void {
    void this.serveWhole(this, received);
  }

  onUnreceived(refusal: Refusal): void {
    this.exchange.refuse(refusal);
  }

  onFault(fault: unknown): void {
    this.exchange.fail(fault);
  }

  /** The body's last byte has been received. */
  onWhole(received: ReceivedFrom<ScopedPrincipal>): void {
    this.taken = received;
    this.wholeAtMs = this.plane.clock.monotonicMs();
    this.snapshot = this.plane.catalog();
  }

  /** Adds the caller's own provider keys to `catalog`. null: done; else the refusal. */
  useOwnKeys(): Refusal | null | Promise<Refusal | null> {
    const keys = this.plane.ownKeys.find(this.principal.organizationId);
    return keys instanceof Promise ? keys.then((found) => this.keepOwnKeys(found)) : this.keepOwnKeys(keys);
  }

  private keepOwnKeys(keys: OrganizationKeys | 'unavailable'): Refusal | null {
    if (keys === 'unavailable') return { kind: 'byok_key_unavailable', isNotLookedUp: true };
    const { principal, plane, dialect, receivedAtMs } = this;
    const pauses = plane.relay.keyPauses;
    const at = { nowMs: plane.clock.nowMs(), monotonicMs: receivedAtMs };
    this.snapshot = catalogWithOwnKeys(this.catalog, { keys, pauses, principal, api: dialect.api, ...at });
    return null;
  }

  get received(): ReceivedFrom<ScopedPrincipal> {
    if (this.taken === null) throw new Error('a request is used before it is whole');
    return this.taken;
  }

  /** The snapshot of the catalog that the request uses to its end. */
  get catalog(): ServingCatalog {
    if (this.snapshot === null) throw new Error('a catalog is asked for before the request is whole');
    return this.snapshot;
  }

  get principal(): ScopedPrincipal {
    return this.received.sender;
  }

  /** True: the request is over. `found`, if a step found a refusal, is sent unless the client has left. */
  refuseOrDrop<T extends object | null>(found: T | Refusal): found is Refusal {
    if (this.exchange.closed) return true;
    // V8 reads a property of objects of so many shapes several times faster than it evaluates `in`.
    if (found === null || (found as Partial<Refusal>).kind === undefined) return false;
    this.exchange.refuse(found as Refusal);
    return true;
  }

  /** A refusal is recorded only if the sender's organization is known: no other listing could show it. */
  onRefused(refusal: Refusal): void {
    const { plane, dialect, exchange, read, snapshot, routed } = this;
    const { principal } = exchange;
    if (principal === null || !isScoped(principal)) return;
    const name = routed?.model ?? read?.requestedModel ?? '';
    const label = readClientRequestId(exchange);
    plane.refusedRequests.record({
      id: exchange.id,
      principal,
      api: dialect.api,
      requestedModel: read?.requestedModel ?? '',
      model: snapshot === null ? null : (findModel(snapshot, name, principal.allowedModels)?.model.id ?? null),
      route: routed?.route ?? null,
      streamed: read?.bounds.streamed ?? false,
      clientRequestId: typeof label === 'string' ? label : null,
      traceparent: plane.keepsTraceparent ? readTraceparent(exchange) : null,
      tags: readTags(exchange, plane.tagHeader),
      requestBytes: this.taken?.body.length ?? 0,
      receivedAtMs: this.receivedAtMs,
      refusal,
      screening: this.screening,
    });
  }

  /** From here on the request's answers and records name the chosen model. */
  onRouted(routed: Routed | null): void {
    this.routed = routed;
    if (routed !== null) this.exchange.routeHeaders = [this.plane.routedModelHeader, routed.model];
  }

  /** Reads what the request names and asks for, and prepares its headers for the provider. */
  readControlFields(): ReadRequest | Refusal {
    const headers = forwardedHeaders(this.exchange.headers);
    if ('kind' in headers) return headers;
    this.headers = headers;
    const read = readRequest(this.dialect, this.received);
    if ('kind' in read) return read;
    this.read = withHeaders(this.dialect, read, this.exchange);
    const label = readClientRequestId(this.exchange);
    if (label !== null && typeof label !== 'string') return label;
    this.clientRequestId = label;
    return this.read;
  }

  /** Replaces the client's body. The new body's buffer is held from here on; the client's is released. */
  replaceBody(changed: ReceivedRequest): ReadRequest | Refusal {
    const { received, headers } = this;
    const read = readRequest(this.dialect, changed);
    if ('kind' in read || headers === null) throw new Error('a screened request can no longer be read');
    this.taken = { ...changed, sender: received.sender };
    this.plane.intake.buffers.release(received.pooled);
    this.read = withHeaders(this.dialect, read, this.exchange);
    return this.read;
  }

  /** Whether the request continues a response or refers to items, whose owner must be looked up. */
  get needsLookUp(): boolean {
    const { scanned } = this.received;
    return (
      this.read?.bounds.saved?.previousResponseId != null ||
      (scanned !== null && referencesIn(this.dialect, scanned) > 0)
    );
  }

  /** Which of `deployments` may serve the stored responses and objects that the request refers to. */
  continuationAmong(deployments: readonly Deployment[]): ReturnType<typeof continueFrom> {
    const { plane, principal, dialect, received } = this;
    const workers = inTurnsOf(plane.relay.workers, principal.organizationId);
    const params = { principal, dialect, request: received, bounds: this.readOnce.bounds, deployments };
    return continueFrom({ savedResponses: plane.savedResponses, workers }, params);
  }

  /**
   * What admission is asked if this model serves. `carriedTokens`: the input that a continued response adds; null: not
   * known.
   */
  admissionOf(served: ServedModel, carriedTokens: number | null): AdmissionParams {
    const { dialect, received, principal } = this;
    const measure = { bytes: received.body.length, attachments: received.scanned?.attachments ?? 0, carriedTokens };
    return { principal, dialect, served, bounds: this.readOnce.bounds, measure, request: received };
  }

  /**
   * The deployments that may serve, in order. For a billed organization: those that have a price for everything the
   * request names.
   */
  pricedOf(deployments: readonly Deployment[]): readonly Deployment[] | Refusal {
    const { namedCosts, calls } = this.readOnce.bounds;
    if (!this.principal.billed) return deployments;
    const priced = namedCosts === undefined ? deployments : pricedDeployments(deployments, namedCosts);
    return calls === undefined || 'kind' in priced ? priced : pricedCallsFirst(priced, calls);
  }

  /**
   * The deployments whose name of the model can stand in the request's form. A name that contains the form's boundary
   * could be read as two parts.
   */
  fittingOf(deployments: readonly Deployment[]): readonly Deployment[] | Refusal {
    const { form } = this.received;
    if (form === null) return deployments;
    const fitting = deployments.filter(({ modelText }) => fitsForm(form, modelText));
    return fitting.length > 0 ? fitting : { kind: 'invalid_form', reason: BOUNDARY_IN_MODEL };
  }

  private get readOnce(): ReadRequest {
    if (this.read === null) throw new Error('a request is admitted before it is read');
    return this.read;
  }

  /** Keeps an admission that was granted, so that `release` releases it. */
  keepAdmission(found: Admission | Refusal): Admission | Refusal {
    if (found instanceof Admission) this.admission = found;
    return found;
  }

  releaseAdmission(): void {
    this.admission?.release('refused');
    this.admission = null;
  }

  /** From here on the execution releases the admission, and the relay has its own hold on the buffer. */
  handOver(): void {
    this.admission = null;
    this.plane.intake.buffers.retain(this.received.pooled);
  }

  /** Called once, when this file is done with the request. */
  release(): void {
    this.releaseAdmission();
    this.plane.intake.buffers.release(this.received.pooled);
  }
}
