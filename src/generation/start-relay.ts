// The last step before the provider is called: records the admitted request, and begins the relay once the record is in
// the spool.

import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Admission } from './admission/admission.ts';
import type { Deployment, ServedModel } from './catalog/serving-catalog.ts';
import type { ReadRequest } from './dialects/dialect.ts';
import { readTags, readTraceparent } from './execution/client-labels.ts';
import { type AdmittedRequest, Execution, type ExecutionOwner } from './execution/execution.ts';
import type { OpenRequest } from './open-request.ts';
import type { DataPlane } from './plane.ts';
import { relay } from './reply/relay.ts';
import type { RelayParams } from './reply/relay-params.ts';

interface Admitted {
  readonly read: ReadRequest;
  readonly served: ServedModel;
  /** At least one, in the order in which they are tried. */
  readonly deployments: readonly Deployment[];
  /** As in `RelayParams`: why the service's deployments may not serve; null: they may, or are not wanted. */
  readonly serviceRefusal: Refusal | null;
  readonly admission: Admission;
}

export function startRelay(plane: DataPlane, request: OpenRequest, admitted: Admitted): void {
  const { read, served, deployments, serviceRefusal, admission } = admitted;
  const { dialect, exchange, received, principal, headers, routed } = request;
  const start: AdmittedRequest = {
    id: exchange.id,
    admittedAtMs: plane.clock.nowMs(),
    principal,
    api: dialect.api,
    requestedModel: read.requestedModel,
    model: served.model.id,
    deployment: deployments[0] as Deployment,
    streamed: read.bounds.streamed,
    clientRequestId: request.clientRequestId,
    traceparent: plane.keepsTraceparent ? readTraceparent(exchange) : null,
    tags: readTags(exchange, plane.tagHeader),
    route: routed?.route ?? null,
    requestBytes: received.body.length,
  };
  const execution = new Execution(start, admission, request.receivedAtMs, plane.metering, routed?.baseline ?? null);
  execution.wholeAtMs = request.wholeAtMs;
  execution.screening = request.screening;
  for (const { keyId, reason } of served.passedOver ?? [])
    execution.onOwnKeyFailed({ credential_id: keyId, reason, status: null });
  const { organizationId } = principal;
  const { tokenizer } = served.model;
  const params = {
    exchange,
    organizationId,
    dialect,
    request: received,
    headers: headers ?? [],
    read,
    execution,
    deployments,
    serviceRefusal,
    tokenizer,
    screening: request.screening,
    ownHeaders: [plane.executionIdHeader, start.id],
  };
  // The start is recorded at the end of the tick at the earliest. Until then, and if `begin` throws, the body's buffer
  // and the admission still belong to the request.
  execution.begin(new RecordedStart(params, plane));
  request.handOver();
}

/** Begins the relay when the start is recorded, or refuses the request when it cannot be. */
class RecordedStart implements ExecutionOwner {
  private readonly params: RelayParams;
  private readonly plane: DataPlane;

  constructor(params: RelayParams, plane: DataPlane) {
    this.params = params;
    this.plane = plane;
  }

  onRecorded(): void {
    const { params } = this;
    // From here on the execution's own end records what became of the request.
    params.exchange.refusalWatch = null;
    relay(params, this.plane.relay);
  }

  onUnrecorded(): void {
    const { request, exchange } = this.params;
    this.plane.intake.buffers.release(request.pooled);
    exchange.refuse({ kind: 'billing_unavailable' });
  }
}
