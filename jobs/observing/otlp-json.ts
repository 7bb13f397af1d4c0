// Encodes spans as the JSON of OTLP over HTTP (opentelemetry.io/docs/specs/otlp, ExportTraceServiceRequest): ids in
// hexadecimal, times as decimal strings of nanoseconds.

import type { AttributeValue, Span } from './spans-of-execution.ts';

const KINDS = { server: 2, client: 3 } as const;
const STATUS_ERROR = 2;
const NANOSECONDS_PER_MS = 1_000_000n;

export interface Resource {
  readonly serviceName: string;
  readonly version: string;
  /** The host name of the machine. */
  readonly instance: string;
}

export function otlpJson(spans: readonly Span[], { serviceName, version, instance }: Resource): string {
  const resource = { 'service.name': serviceName, 'service.version': version, 'service.instance.id': instance };
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: 'tollgate', version }, spans: spans.map(spanJson) }],
      },
    ],
  });
}

function spanJson(span: Span): object {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentSpanId === '' ? {} : { parentSpanId: span.parentSpanId }),
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: nanoseconds(span.startMs),
    endTimeUnixNano: nanoseconds(span.endMs),
    attributes: attributesOf(span.attributes),
    ...(span.error === null ? {} : { status: { code: STATUS_ERROR, message: span.error } }),
  };
}

function attributesOf(attributes: Readonly<Record<string, AttributeValue | null>>): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === null ? [] : [{ key, value: anyValue(value) }],
  );
}

function anyValue(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value.toWellFormed() };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms)) * NANOSECONDS_PER_MS);
}
