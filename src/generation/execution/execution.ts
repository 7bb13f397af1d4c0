// Owns one admitted execution: its records, one when it starts and exactly one when it ends.
//
//   created ── begin ──► admitting ── written ──► open ── end, give up ──► ending ── written ──► settled
//                            └── not written ──► unrecorded ◄── not written ──┘

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ApiName } from '../../domain/models/apis.ts';
import type { Price } from '../../domain/models/price.ts';
import type { Baseline } from '../../domain/routing/baseline-cost.ts';
import type { ModelRoute } from '../../domain/routing/model-route.ts';
import { assert } from '../../platform/assert.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ExecutionStart } from '../../records/execution-record.ts';
import type { RecordedAttempt, RecordedKeyFailure } from '../../records/field-types.ts';
import type { Admission } from '../admission/admission.ts';
import type { SavedResponses } from '../catalog/saved-responses.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { GuardrailMetrics } from '../guardrails/guardrail-metrics.ts';
import type { Screening } from '../guardrails/screening.ts';
import type { GenerationMetrics } from './generation-metrics.ts';
import { NO_USAGE, type ObservedEnd } from './observed-end.ts';
import { lostEnd, type RatedEnd, rateEnd } from './rate-end.ts';
import type { RecordJournal, RecordOwner } from './record-journal.ts';

export interface Metering {
  readonly journal: RecordJournal;
  readonly clock: Clock;
  readonly metrics: GenerationMetrics;
  readonly guardrails: GuardrailMetrics;
  readonly savedResponses: SavedResponses;
}

/** What is known of a request when it is admitted. */
export interface AdmittedRequest {
  readonly id: string;
  readonly admittedAtMs: number;
  readonly principal: ScopedPrincipal;
  readonly api: ApiName;
  /** The model as the client wrote it: a public id, an alias or the virtual model. */
  readonly requestedModel: string;
  /** The public id of the model that serves. */
  readonly model: string;
  readonly deployment: Deployment;
  readonly streamed: boolean;
  readonly clientRequestId: string | null;
  /** null: the client sent none, or traces are not exported. */
  readonly traceparent: string | null;
  readonly tags: readonly string[];
  /** Why this model serves a request that named none (spec 2.4). */
  readonly route: ModelRoute | null;
  readonly requestBytes: number;
}

const GIVEN_UP: ObservedEnd = {
  outcome: 'process_killed',
  status: null,
  errorCode: 'internal_error',
  measured: NO_USAGE,
  responseBytes: 0,
  responseId: null,
};

/** Continues when the record of an execution's start or end is written, or cannot be written. */
export interface ExecutionOwner {
  onRecorded(): void;
  onUnrecorded(fault: unknown): void;
}

/** The owner when nobody waits for the end any more: the client was told of the fault already. */
const NO_OWNER: ExecutionOwner = { onRecorded: () => undefined, onUnrecorded: () => undefined };

type State =
  | { readonly name: 'created' }
  | { readonly name: 'admitting'; readonly owner: ExecutionOwner }
  | { readonly name: 'open'; readonly owner: ExecutionOwner }
  | { readonly name: 'ending'; readonly owner: ExecutionOwner; readonly seen: ObservedEnd; readonly rated: RatedEnd }
  | { readonly name: 'settled'; readonly owner: ExecutionOwner }
  | { readonly name: 'unrecorded'; readonly owner: ExecutionOwner };

export class Execution implements RecordOwner {
  readonly admission: Admission;
  readonly receivedAtMs: number;
  /** Monotonic time of the provider's first reply byte; null before it. */
  firstByteAtMs: number | null = null;
  /** What guardrails found; null: no rule applies to the request. */
  screening: Screening | null = null;
  /** Monotonic time at which the request was complete. */
  wholeAtMs: number;
  /** Monotonic times of the first and of the present call to a provider; null before the first call. */
  private firstCallAtMs: number | null = null;
  private callAtMs: number | null = null;
  private state: State = { name: 'created' };
  private readonly request: AdmittedRequest;
  private deployment: Deployment;
  private readonly ownFailures: RecordedKeyFailure[] = [];
  /** Calls that were given up for the next deployment; null, as nearly always: none was. */
  private givenUp: RecordedAttempt[] | null = null;
  /** null: not made yet for the present deployment. */
  private startRecord: ExecutionStart | null = null;
  private readonly metering: Metering;
  private readonly baseline: Baseline;

  /** `baseline` is what the cost of a routed request is compared with. */
  constructor(
    request: AdmittedRequest,
    admission: Admission,
    receivedAtMs: number,
    metering: Metering,
    baseline: Baseline = null,
  ) {
    this.request = request;
    this.deployment = request.deployment;
    this.admission = admission;
    this.receivedAtMs = receivedAtMs;
    this.wholeAtMs = receivedAtMs;
    this.metering = metering;
    this.baseline = baseline;
  }

  get id(): string {
    return this.request.id;
  }

  /** The price of the deployment that serves. */
  get price(): Price | null {
    return this.deployment.price;
  }

  /**
   * Records the execution as admitted, before a byte goes to a provider. If that fails, the hold is released before the
   * owner is told, and nothing may be sent.
   */
  begin(owner: ExecutionOwner): void {
    assert(this.state.name === 'created', 'an execution begins once');
    this.state = { name: 'admitting', owner };
    this.metering.journal.append(this.start(), null, this);
  }

  /** A provider is called now. */
  onCall(atMs: number): void {
    this.firstCallAtMs ??= atMs;
    this.callAtMs = atMs;
  }

  /** Another deployment is called instead of the present one. */
  moveTo(deployment: Deployment, cause: string, status: number | null): void {
    const endedMs = this.sinceReceived(this.metering.clock.monotonicMs());
    (this.givenUp ??= []).push(this.attempt(endedMs, cause, status));
    this.deployment = deployment;
    this.startRecord = null;
  }

  /** Notes that an own key could not serve. */
  onOwnKeyFailed(failure: RecordedKeyFailure): void {
    this.ownFailures.push(failure);
  }

  /**
   * Rates the execution and records its end; once that is written, the holds are released. Called once: post or void
   * (ARCHITECTURE, invariants). If it throws, the execution is still open.
   */
  end(seen: ObservedEnd, owner: ExecutionOwner): void {
    assert(this.state.name === 'open', 'an execution ends once');
    const { metering, admission, baseline, deployment, ownFailures } = this;
    const { clock } = metering;
    const rated = rateEnd(seen, {
      admission,
      baseline,
      screening: this.screening,
      deployment,
      ownFailures,
      attempts: this.givenUp === null ? null : [...this.givenUp, this.attempt(null, null, null)],
      endedAtMs: clock.nowMs(),
      latencyMs: this.sinceReceived(clock.monotonicMs()),
      ttftMs: this.firstByteAtMs === null ? null : this.sinceReceived(this.firstByteAtMs),
    });
    metering.journal.append(this.start(), rated.end, this);
    this.state = { name: 'ending', owner, seen, rated };
  }

  /**
   * A fault of ours has ended the request. Unless its end is recorded already, it ends like that of a process that
   * died, and nobody pays. Its usage is not read, since reading it may be what failed. `status`: what the client got.
   */
  giveUp(status: number | null): void {
    if (this.state.name === 'open') this.end({ ...GIVEN_UP, status }, NO_OWNER);
  }

  /** Called by the journal: the record of the start, or of the end, is in the spool. */
  onWritten(): void {
    const { state } = this;
    if (state.name === 'admitting') this.state = { name: 'open', owner: state.owner };
    else if (state.name === 'ending') this.settle(state.owner, state.seen, state.rated);
    else return;
    state.owner.onRecorded();
  }

  /** Called by the journal: the spool has not taken the record, or the owner threw when it had. */
  onUnwritten(fault: unknown): void {
    const { state } = this;
    assert(state.name !== 'created', 'a record that is not written was begun');
    if (state.name === 'open') {
      this.giveUp(null);
    } else if (state.name !== 'settled') {
      if (state.name === 'admitting') this.admission.release('refused');
      if (state.name === 'ending') this.loseEnd(state.rated);
      this.state = { name: 'unrecorded', owner: state.owner };
    }
    state.owner.onUnrecorded(fault);
  }

  private settle(owner: ExecutionOwner, seen: ObservedEnd, { end, settlement, use, isUnpriced }: RatedEnd): void {
    const { metrics } = this.metering;
    this.state = { name: 'settled', owner };
    // Released only after the record is written, since free money may be lent or spent at once.
    this.admission.release(use);
    if (seen.responseId !== null) this.rememberResponse(seen.responseId, seen);
    if (isUnpriced) metrics.countUnpriced();
    metrics.ended(this.request.api, seen, settlement, end.latencyMs, end.ttftMs);
    const isOwn = this.deployment.ownKey !== undefined;
    if (isOwn || this.ownFailures.length > 0) metrics.endedWithKeys(isOwn, seen, this.ownFailures);
    if (end.screening != null) this.metering.guardrails.ended(end.screening, this.request.model);
    const { firstCallAtMs, callAtMs, firstByteAtMs } = this;
    if (firstCallAtMs !== null) metrics.observeOverhead(this.request.api, firstCallAtMs - this.wholeAtMs);
    if (callAtMs !== null && firstByteAtMs !== null && !isOwn)
      metrics.observeProvider(this.deployment.provider.id, firstByteAtMs - callAtMs);
  }

  /**
   * The end could not be recorded, so no client sees it and nobody pays (the outcome matrix, `process_killed`). A
   * record that says so is written once the spool takes records again. The hold stays held, since the first record may
   * be in the spool all the same.
   */
  private loseEnd({ end }: RatedEnd): void {
    this.admission.release('unrecorded');
    this.metering.journal.appendWhenPossible(this.start(), lostEnd(end, this.admission.hold, this.deployment.price));
  }

  /** The fields of the start, which the record of the end repeats. */
  private start(): ExecutionStart {
    this.startRecord ??= this.makeStart();
    return this.startRecord;
  }

  private makeStart(): ExecutionStart {
    const { request, admission, deployment } = this;
    const { principal } = request;
    return {
      id: request.id,
      admittedAtMs: request.admittedAtMs,
      organizationId: principal.organizationId,
      teamId: principal.teamId,
      userId: principal.userId,
      walletId: admission.walletId,
      apiKeyId: principal.apiKeyId,
      model: request.model,
      requestedModel: request.requestedModel,
      provider: deployment.provider.id,
      providerModel: deployment.providerModel,
      priceVersion: deployment.price?.version ?? null,
      api: request.api,
      streamed: request.streamed,
      authorizedAmount: admission.hold === null ? null : admission.hold.toString(),
      requestBytes: request.requestBytes,
      tags: request.tags,
      clientRequestId: request.clientRequestId,
      traceparent: request.traceparent,
      route: request.route,
      budgets: admission.budgets,
      credentialId: deployment.ownKey?.keyId ?? null,
    };
  }

  /** The attempt at the present deployment. */
  private attempt(endedMs: number | null, cause: string | null, status: number | null): RecordedAttempt {
    const { provider, ownKey } = this.deployment;
    return {
      provider: provider.id,
      ...(ownKey === undefined ? {} : { credential_id: ownKey.keyId }),
      started_ms: this.sinceReceived(this.callAtMs ?? this.receivedAtMs),
      ended_ms: endedMs,
      cause,
      status,
    };
  }

  private sinceReceived(atMs: number): number {
    return Math.max(0, Math.round(atMs - this.receivedAtMs));
  }

  private rememberResponse(responseId: string, { measured: { usage }, itemIds = [] }: ObservedEnd): void {
    const { savedResponses } = this.metering;
    const owner = { organizationId: this.request.principal.organizationId, walletId: this.admission.walletId };
    const {
      provider: { id: provider },
      ownKey,
    } = this.deployment;
    const storedAt = { provider, ownKeyId: ownKey?.keyId ?? null };
    const [inputTokens, outputTokens] = [usage?.inputTokens ?? null, usage?.outputTokens ?? null];
    savedResponses.remember(owner, responseId, { ...storedAt, model: this.request.model, inputTokens, outputTokens });
    const item = { ...storedAt, responseId, outputTokens };
    for (const itemId of itemIds) savedResponses.rememberItem(owner, itemId, item);
  }
}
