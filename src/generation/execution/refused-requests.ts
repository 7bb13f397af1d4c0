// Records refused requests whose caller is known, so that listings and look-ups show them (spec 4.4, 4.5). Such a
// request never had a hold, and no provider saw it: its record is a terminal one without an admission, with the outcome
// `refused`.

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ApiName } from '../../domain/models/apis.ts';
import { describeRefusal } from '../../domain/refusals/description.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { ModelRoute } from '../../domain/routing/model-route.ts';
import type { Clock } from '../../platform/clock.ts';
import type { CounterCell, MetricsRegistry } from '../../platform/metrics.ts';
import { RateMeter } from '../../platform/rate-meter.ts';
import type { ExecutionEnd, ExecutionStart } from '../../records/execution-record.ts';
import { OWN_FAILURES_MAX, type RecordedKeyFailure } from '../../records/field-types.ts';
import type { GuardrailMetrics } from '../guardrails/guardrail-metrics.ts';
import type { Screening } from '../guardrails/screening.ts';
import type { RecordJournal } from './record-journal.ts';

export interface RefusedRequest {
  /** The id in the request's answer. */
  readonly id: string;
  readonly principal: ScopedPrincipal;
  readonly api: ApiName;
  /** The model as the client wrote it; empty: the request was refused before that was read. */
  readonly requestedModel: string;
  /** Public id of the model that would have served; null: none was found or chosen. */
  readonly model: string | null;
  /** Why that model was chosen; null: the client named it, or none was chosen yet. */
  readonly route: ModelRoute | null;
  readonly streamed: boolean;
  readonly clientRequestId: string | null;
  readonly traceparent: string | null;
  readonly tags: readonly string[];
  readonly requestBytes: number;
  /** Monotonic time. */
  readonly receivedAtMs: number;
  readonly refusal: Refusal;
  /** What guardrails found in the request; null: no rule applies to it. */
  readonly screening: Screening | null;
}

export interface RefusedRequestsParts {
  readonly journal: RecordJournal;
  readonly clock: Clock;
  /** False while the spool takes no records. */
  readonly canRecord: () => boolean;
  readonly metrics: MetricsRegistry;
  readonly guardrails: GuardrailMetrics;
}

/** A refused request is free for its sender, so the records of each organization are limited. */
const RECORDS_PER_MINUTE = 300;
/** A model id that exists is shorter; what a client makes up must not fill the spool. */
const MODEL_LENGTH_MAX = 200;

export class RefusedRequests {
  private readonly parts: RefusedRequestsParts;
  private readonly recorded = new RateMeter(RECORDS_PER_MINUTE);
  private readonly unrecorded: CounterCell;

  constructor(parts: RefusedRequestsParts) {
    this.parts = parts;
    this.unrecorded = parts.metrics
      .counter(
        'tollgate_refusals_unrecorded_total',
        'Refused requests without a record: the organization’s limit is reached, or the spool takes none',
      )
      .labels();
  }

  /**
   * Records the request. If the organization has too many records, or the spool takes none, the request is only
   * counted.
   */
  record(request: RefusedRequest): void {
    const { principal, refusal, screening } = request;
    const report = screening?.report ?? null;
    if (report !== null) this.parts.guardrails.ended(report, request.model ?? '');
    const { journal, clock } = this.parts;
    const nowMs = clock.monotonicMs();
    if (!this.parts.canRecord() || this.recorded.waitMs(principal.organizationId, nowMs) > 0) {
      this.unrecorded.increment();
      return;
    }
    this.recorded.count(principal.organizationId, nowMs);
    const { status, code } = describeRefusal(refusal);
    const requestedModel = shortModel(request.requestedModel);
    const endedAtMs = clock.nowMs();
    const start: ExecutionStart = {
      id: request.id,
      admittedAtMs: endedAtMs,
      organizationId: principal.organizationId,
      teamId: principal.teamId,
      userId: principal.userId,
      walletId: principal.walletId,
      apiKeyId: principal.apiKeyId,
      model: request.model ?? requestedModel,
      requestedModel,
      // The request reached no provider.
      provider: '',
      providerModel: '',
      priceVersion: null,
      api: request.api,
      streamed: request.streamed,
      authorizedAmount: null,
      requestBytes: request.requestBytes,
      tags: request.tags,
      clientRequestId: request.clientRequestId,
      traceparent: request.traceparent,
      route: request.route,
    };
    const end: ExecutionEnd = {
      outcome: 'refused',
      status,
      errorCode: code,
      usageSource: null,
      billingStatus: 'not_billed',
      endedAtMs,
      usage: null,
      charge: null,
      ratedCost: null,
      suspense: '0',
      latencyMs: Math.max(0, Math.round(nowMs - request.receivedAtMs)),
      ttftMs: null,
      responseBytes: 0,
      guardrail: screening?.rule ?? null,
      screening: report,
      ownFailures: failuresIn(refusal),
    };
    // No request waits for this record; when it cannot be written, the journal's own alarm reports it.
    journal.append(start, end, null);
  }
}

function failuresIn(refusal: Refusal): readonly RecordedKeyFailure[] | null {
  const passedOver = 'passedOver' in refusal ? (refusal.passedOver ?? []) : [];
  return passedOver.length === 0
    ? null
    : passedOver
        .slice(0, OWN_FAILURES_MAX)
        .map(({ keyId, reason }) => ({ credential_id: keyId, reason, status: null }));
}

/** Only whole characters, since ClickHouse takes no half of a surrogate pair. */
function shortModel(model: string): string {
  return model.slice(0, MODEL_LENGTH_MAX).toWellFormed();
}
