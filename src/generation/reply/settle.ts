// Ends the execution of a reply with its outcome, and with its usage as the provider reports it or as counted here.

import type { Buffer } from 'node:buffer';
import { type CountableApi, isCountable } from '../../domain/models/apis.ts';
import { describeRefusal } from '../../domain/refusals/description.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Outcome } from '../../domain/settlement/outcome.ts';
import { OUTCOME_MATRIX } from '../../domain/settlement/outcome-matrix.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import { type Dialect, NOT_STORED } from '../dialects/dialect.ts';
import type { ExecutionOwner } from '../execution/execution.ts';
import { type CountParams, countUsage, reportedUsage } from '../execution/measure-usage.ts';
import { type MeasuredUsage, NO_USAGE } from '../execution/observed-end.ts';
import type { CapturedReply } from './capture.ts';
import { type HowItEnded, outcomeOfReply, outcomeWithoutReply } from './outcome-of-reply.ts';
import type { RelayParams } from './relay-params.ts';
import type { ReplyEnd } from './withhold-end.ts';

export interface SettleParts {
  readonly reply: CapturedReply;
  readonly params: RelayParams;
  /** The body before an attempt's edits: the client's own, or as guardrails changed it. */
  readonly request: Buffer;
  readonly workers: WorkerPool;
  /** The refusal that the client gets when no key was accepted. */
  readonly keyRefusal: Refusal;
}

/** Tells the owner once the end is recorded. Where the provider reported no usage, tokens are counted before. */
export function settle(end: ReplyEnd, parts: SettleParts, owner: ExecutionOwner): void {
  if (parts.reply.status !== 0 && isOfReply(end)) settleReply(end, parts, owner);
  else settleWithoutReply(end, parts, owner);
}

function isOfReply(end: ReplyEnd): end is HowItEnded {
  return end === 'clean' || end === 'cut' || end === 'client_left';
}

function settleWithoutReply(end: ReplyEnd, parts: SettleParts, owner: ExecutionOwner): void {
  const { execution, exchange } = parts.params;
  const outcome = outcomeWithoutReply(end);
  const told = end === 'key_refused' ? describeRefusal(parts.keyRefusal) : { status: 502, code: end };
  // A client that has left was told nothing.
  const status = exchange.closed ? null : told.status;
  const errorCode = told.code === 'provider_unavailable' ? 'provider_key_refused' : told.code;
  execution.end({ outcome, status, errorCode, measured: NO_USAGE, responseBytes: 0, responseId: null }, owner);
}

function settleReply(end: HowItEnded, parts: SettleParts, owner: ExecutionOwner): void {
  const { reply, params } = parts;
  const { dialect, exchange } = params;
  const how = end === 'cut' ? 'cut' : exchange.closed ? 'client_left' : 'clean';
  const report =
    reply.status >= 300 ? NO_USAGE : reply.encoding === null ? reportOf(how, parts) : unreadable(reply.encoding);
  const outcome = outcomeOfReply({
    providerStatus: reply.status,
    how,
    report,
    hasFailed: report.usage === null && hasFailed(parts),
    relayedBytes: reply.bytes.totalBytes,
    isBlocked: reply.blocked !== null,
  });
  if (OUTCOME_MATRIX[outcome].chargeRule === 'nothing') record(outcome, NO_USAGE, how, parts, owner);
  else if (report.usage !== null || reply.encoding !== null) record(outcome, report, how, parts, owner);
  else if (isCountable(dialect.api)) countAndRecord(dialect.api, outcome, report, how, parts, owner);
  else record(outcome, uncounted(outcome, report, dialect), how, parts, owner);
}

/**
 * Whether the reply says that it failed. Where the dialect's failing event has no name, the last event is read once.
 */
function hasFailed({ reply: { watch, isStream, bytes }, params: { dialect } }: SettleParts): boolean {
  if (watch === null) return false;
  const isNamed = watch.endedBy != null && dialect.failingEvents?.includes(watch.endedBy) === true;
  return isNamed || (isStream && dialect.endsInFailure?.(bytes.end()) === true);
}

function countAndRecord(
  api: CountableApi,
  outcome: Outcome,
  report: MeasuredUsage,
  how: HowItEnded,
  parts: SettleParts,
  owner: ExecutionOwner,
): void {
  countUsage(countParams(api, how, parts), parts.workers, report)
    .then(({ measured, tellsFailure }) => {
      // A stream that a guardrail ended was produced all the same. A document that reports a failure was never
      // produced.
      if (tellsFailure && (outcome !== 'output_blocked' || !parts.reply.isStream))
        record('provider_failed', NO_USAGE, how, parts, owner);
      else record(outcome, measured, how, parts, owner);
    })
    .catch((fault: unknown) => owner.onUnrecorded(fault));
}

/** A compressed reply cannot be read: it is relayed and not charged, and that is an alarm. */
function unreadable(encoding: string): MeasuredUsage {
  return { ...NO_USAGE, distrust: `usage_unreadable: the reply is compressed (${encoding})` };
}

/**
 * A complete reply without usage, of an API whose texts cannot be counted, is not charged, and that is an alarm, too.
 */
function uncounted(outcome: Outcome, report: MeasuredUsage, { charged }: Dialect): MeasuredUsage {
  if (outcome !== 'completed_without_usage' || !charged) return report;
  return { ...report, distrust: 'usage_missing: none was reported, and it cannot be counted' };
}

function reportOf(how: HowItEnded, { reply, params: { dialect, read, execution } }: SettleParts): MeasuredUsage {
  return reportedUsage(dialect, {
    bounds: read.bounds,
    relayed: reply.bytes,
    watch: reply.watch,
    cut: how !== 'clean',
    clientLeft: how === 'client_left',
    price: execution.price,
  });
}

function countParams(api: CountableApi, how: HowItEnded, { reply, params, request }: SettleParts): CountParams {
  const { execution, tokenizer } = params;
  const { bytes, isStream } = reply;
  const bounds = execution.admission.tokenBounds;
  return {
    api,
    encoding: tokenizer,
    request,
    relayed: bytes,
    responseIsStream: isStream,
    responseIsCut: how !== 'clean',
    inputTokensMax: bounds?.inputTokensMax ?? request.length,
    outputTokensMax: bounds?.outputTokensMax ?? bytes.totalBytes,
  };
}

function record(
  outcome: Outcome,
  measured: MeasuredUsage,
  how: HowItEnded,
  { reply, params: { exchange, execution } }: SettleParts,
  owner: ExecutionOwner,
): void {
  const { bytes, stored, blocked } = reply;
  const refused = blocked === null ? null : describeRefusal(blocked);
  // The client of a stream got its status before the guardrail ended the stream.
  const status = refused === null || reply.isStream ? reply.status : refused.status;
  const ids = stored?.read({ beginning: bytes.beginning(), end: bytes.end(), cut: how === 'cut' }) ?? NOT_STORED;
  execution.end(
    {
      outcome,
      // A client that left before anything was written to it has seen no status.
      status: exchange.status !== 0 || !exchange.closed ? status : null,
      errorCode: refused?.code ?? (status >= 300 ? `provider_${status}` : null),
      measured,
      responseBytes: bytes.totalBytes,
      responseId: ids.responseId,
      itemIds: ids.itemIds,
    },
    owner,
  );
}
