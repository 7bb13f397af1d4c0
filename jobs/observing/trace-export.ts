// Sends the spans of ended executions to a collector by OTLP over HTTP. While the collector is away or slow, spans wait
// in bounded memory, and the excess is dropped and counted. The export delays nothing else.

import { request } from 'undici';
import type { Log } from '../../src/platform/log.ts';
import type { Counter, MetricsRegistry } from '../../src/platform/metrics.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import type { EndObserver } from './end-observer.ts';
import { otlpJson, type Resource } from './otlp-json.ts';
import { readTraceparent, type Span, spansOf, traceIdOf } from './spans-of-execution.ts';

export interface TraceExportParts {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ratio: number;
  readonly resource: Resource;
  readonly log: Log;
  readonly metrics: MetricsRegistry;
  readonly intervalMs?: number;
}

const INTERVAL_MS = 2_000;
const SEND_LIMIT_MS = 10_000;
const BATCH_SPANS_MAX = 512;
const WAITING_SPANS_MAX = 8_192;
/** A request that takes longer is traced whatever the ratio says. */
const SLOW_MS = 30_000;
const FAILED_STATUS = 500;
/** Statuses after which OTLP allows a retry. The collector would refuse the spans again after any other error. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export class TraceExport implements EndObserver {
  private readonly parts: TraceExportParts;
  private readonly spans: Counter<readonly ['result']>;
  private waiting: Span[] = [];
  private sending: Promise<void> | null = null;
  /** Aborts the request that is under way. */
  private cut = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private isAway = false;
  private isRefusing = false;

  constructor(parts: TraceExportParts) {
    this.parts = parts;
    this.spans = parts.metrics.counter('tollgate_trace_spans_total', 'Spans that were to be exported, by result.', [
      'result',
    ]);
    this.spans.labels('sent');
    this.spans.labels('dropped');
    this.timer = setInterval(() => this.send(), parts.intervalMs ?? INTERVAL_MS);
    this.timer.unref();
  }

  ended(records: readonly TerminalRecord[]): void {
    for (const record of records) if (isSampled(record, this.parts.ratio)) this.waiting.push(...spansOf(record));
    const excess = this.waiting.length - WAITING_SPANS_MAX;
    // The oldest spans are worth least.
    if (excess > 0) this.drop(this.waiting.splice(0, excess).length);
    this.sendIfFull();
  }

  async stop(limitMs: number): Promise<void> {
    clearInterval(this.timer);
    let isLate = false;
    const limit = setTimeout(() => {
      isLate = true;
      this.cut.abort();
    }, limitMs);
    await this.sending;
    // The end of a request may already have begun the next one (`sendIfFull`).
    while ((this.waiting.length > 0 || this.sending !== null) && !this.isAway && !isLate) {
      this.send();
      await this.sending;
    }
    clearTimeout(limit);
  }

  /** Sends a full batch without waiting for the interval, since at high rates an interval fills many batches. */
  private sendIfFull(): void {
    if (this.waiting.length >= BATCH_SPANS_MAX && !this.isAway) this.send();
  }

  private send(): void {
    if (this.sending !== null || this.waiting.length === 0) return;
    const batch = this.waiting.splice(0, BATCH_SPANS_MAX);
    this.sending = this.post(batch).finally(() => {
      this.sending = null;
      this.sendIfFull();
    });
  }

  private async post(batch: Span[]): Promise<void> {
    const { url, headers, resource, log } = this.parts;
    this.cut = new AbortController();
    const limit = setTimeout(() => this.cut.abort(new Error(`no answer in ${SEND_LIMIT_MS} ms`)), SEND_LIMIT_MS);
    try {
      const { statusCode, body } = await request(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: otlpJson(batch, resource),
        signal: this.cut.signal,
      });
      await body.dump();
      if (RETRYABLE.has(statusCode)) throw new Error(`the collector answered ${statusCode}`);
      const isRefused = statusCode >= 300;
      if (isRefused && !this.isRefusing)
        log.warn({ status: statusCode }, 'traces: the collector refuses spans, which are dropped');
      if (isRefused) this.drop(batch.length);
      else this.spans.labels('sent').increment(batch.length);
      this.isRefusing = isRefused;
      this.isAway = false;
    } catch (error) {
      if (!this.isAway) log.warn({ err: error }, 'traces: the collector is away; the newest spans wait for it');
      this.isAway = true;
      // The batch goes back before newer spans. If there is no room for all of it, its oldest spans are dropped.
      const room = Math.max(0, WAITING_SPANS_MAX - this.waiting.length);
      this.waiting.unshift(...batch.slice(Math.max(0, batch.length - room)));
      this.drop(Math.max(0, batch.length - room));
    } finally {
      clearTimeout(limit);
    }
  }

  private drop(count: number): void {
    if (count > 0) this.spans.labels('dropped').increment(count);
  }
}

/**
 * The client's sampling decision is kept. Without one, failed and slow requests are sampled, and of the others a share
 * by trace id.
 */
function isSampled(record: TerminalRecord, ratio: number): boolean {
  const parent = readTraceparent(record.traceparent);
  if (parent !== null) return parent.isSampled;
  if (record.status === null || record.status >= FAILED_STATUS || record.latencyMs >= SLOW_MS) return true;
  // The end of a UUIDv7 is random.
  return Number.parseInt(traceIdOf(record.id).slice(-8), 16) / 2 ** 32 < ratio;
}
