// Makes the spans of an ended execution from its record: a span for the request, which is a child of the client's span,
// and below it a span for the classifier's call and for each call to a provider. Span ids are derived from the
// execution id, so that a span that is sent twice has the same id. Spans contain no texts, keys or names of persons.

import { createHash } from 'node:crypto';
import { APIS, type ModelKind } from '../../src/domain/models/apis.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { NAMES } from './span-names.ts';

export type AttributeValue = string | number | boolean;

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: 'server' | 'client';
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, AttributeValue | null>>;
  /** null: the operation succeeded, or failed through the client. */
  readonly error: string | null;
}

export interface TraceContext {
  readonly traceId: string;
  readonly parentSpanId: string;
  readonly isSampled: boolean;
}

/** Operation names of OpenTelemetry's GenAI conventions. All other kinds of models are `chat`. */
const OPERATIONS: Partial<Record<ModelKind, string>> = { image: 'generate_content', embedding: 'embeddings' };
const SERVER_FAILED = 500;

/** Parses a W3C `traceparent`; null: the header is absent or invalid. */
export function readTraceparent(text: string | null | undefined): TraceContext | null {
  const [, traceId = '', parentSpanId = '', flags = ''] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/.exec(text ?? '') ?? [];
  if (traceId === '' || /^0+$/.test(traceId) || /^0+$/.test(parentSpanId) || text?.startsWith('ff') === true)
    return null;
  return { traceId, parentSpanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceIdOf(executionId: string): string {
  return executionId.replaceAll('-', '');
}

export function spansOf(record: TerminalRecord): Span[] {
  const parent = readTraceparent(record.traceparent);
  const trace = {
    traceId: parent?.traceId ?? traceIdOf(record.id),
    spanId: spanIdOf(record.id, 'request'),
    startMs: record.endedAtMs - record.latencyMs,
  };
  const { status, errorCode, route } = record;
  const failed = status === null || status >= SERVER_FAILED;
  const request: Span = {
    traceId: trace.traceId,
    spanId: trace.spanId,
    parentSpanId: parent?.parentSpanId ?? '',
    name: `POST ${APIS[record.api].path}`,
    kind: 'server',
    startMs: trace.startMs,
    endMs: record.endedAtMs,
    // The request span has no token counts, because readers of a trace add up the counts of the calls below it.
    attributes: {
      [NAMES.method]: 'POST',
      [NAMES.route]: APIS[record.api].path,
      [NAMES.status]: status,
      [NAMES.requestBytes]: record.requestBytes,
      [NAMES.responseBytes]: record.responseBytes,
      [NAMES.execution]: record.id,
      [NAMES.outcome]: record.outcome,
      [NAMES.billing]: record.billingStatus,
      [NAMES.requestModel]: record.requestedModel === '' ? null : record.requestedModel,
      [NAMES.tier]: route?.tier ?? null,
      [NAMES.reason]: route?.reason ?? null,
      [NAMES.policyVersion]: route?.policy_version ?? null,
      [NAMES.guardrail]: record.guardrail ?? null,
      [NAMES.errorType]: errorCode ?? (failed ? record.outcome : null),
    },
    error: failed ? (errorCode ?? record.outcome) : null,
  };
  return [request, ...classifierSpan(record, trace), ...callSpans(record, trace)];
}

interface Trace {
  readonly traceId: string;
  readonly spanId: string;
  readonly startMs: number;
}

/** The record has the duration of the classifier's call but not its start, so the span starts with the request. */
function classifierSpan({ id, route }: TerminalRecord, trace: Trace): Span[] {
  const call = route?.classifier;
  if (call === undefined) return [];
  return [
    {
      traceId: trace.traceId,
      spanId: spanIdOf(id, 'classify'),
      parentSpanId: trace.spanId,
      name: `classify ${call.model}`,
      kind: 'client',
      startMs: trace.startMs,
      endMs: trace.startMs + call.latency_ms,
      attributes: {
        [NAMES.operation]: 'classify',
        [NAMES.requestModel]: call.model,
        [NAMES.inputTokens]: call.input_tokens,
        [NAMES.tier]: route?.classified_tier ?? route?.tier ?? null,
        [NAMES.confidence]: route?.confidence ?? null,
      },
      error: null,
    },
  ];
}

/** A request that the gateway refused has no calls. */
function callSpans(record: TerminalRecord, trace: Trace): Span[] {
  if (record.provider === '') return [];
  const admittedMs = Math.max(0, record.admittedAtMs - trace.startMs);
  const attempts = record.attempts ?? [
    { provider: record.provider, started_ms: admittedMs, ended_ms: null, cause: null, status: null },
  ];
  return attempts.map((attempt, index): Span => {
    const isLast = attempt.ended_ms === null;
    const startMs = trace.startMs + attempt.started_ms;
    const operation = OPERATIONS[APIS[record.api].kind] ?? 'chat';
    const error = isLast ? lastError(record) : (attempt.cause ?? String(attempt.status));
    return {
      traceId: trace.traceId,
      spanId: spanIdOf(record.id, `call ${index}`),
      parentSpanId: trace.spanId,
      name: `${operation} ${record.providerModel}`,
      kind: 'client',
      startMs,
      endMs: Math.max(startMs, isLast ? record.endedAtMs : trace.startMs + (attempt.ended_ms ?? 0)),
      attributes: {
        [NAMES.operation]: operation,
        [NAMES.provider]: attempt.provider,
        [NAMES.requestModel]: record.model,
        [NAMES.stream]: record.streamed,
        [NAMES.attempt]: index + 1,
        [NAMES.status]: isLast ? record.status : attempt.status,
        [NAMES.errorType]: error,
        ...(isLast ? usageOf(record, attempt.started_ms) : {}),
      },
      error,
    };
  });
}

function lastError({ outcome, status, errorCode }: TerminalRecord): string | null {
  if (outcome === 'completed' && (status ?? 0) < 400) return null;
  return errorCode ?? outcome;
}

function usageOf({ usage, ttftMs, providerModel }: TerminalRecord, startedMs: number): Span['attributes'] {
  return {
    [NAMES.responseModel]: providerModel,
    [NAMES.firstChunk]: ttftMs === null ? null : Math.max(0, ttftMs - startedMs) / 1_000,
    [NAMES.inputTokens]: usage?.inputTokens ?? null,
    [NAMES.outputTokens]: usage?.outputTokens ?? null,
    [NAMES.cacheReadTokens]: usage?.cachedInputTokens ?? null,
    [NAMES.cacheWriteTokens]: usage?.cacheWriteTokens ?? null,
    [NAMES.reasoningTokens]: usage?.reasoningTokens ?? null,
  };
}

function spanIdOf(executionId: string, part: string): string {
  return createHash('sha256').update(`${executionId} ${part}`).digest('hex').slice(0, 16);
}
