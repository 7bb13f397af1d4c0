// One request of a load and its reply: sends it, times it from the moment when it was due, and reports how it ended.

import type { Buffer } from 'node:buffer';
import type { Dispatcher } from 'undici';
import type { Clock } from '../platform/clock.ts';
import type { LoadRequest } from './load-request.ts';
import type { Measurements, Series } from './measurements.ts';
import { StreamEvents } from './stream-events.ts';

export interface LoadExchangeParams {
  readonly dispatcher: Dispatcher;
  readonly request: LoadRequest;
  readonly isStreamed: boolean;
  /** When the request was due, on the monotonic clock. Durations count from here, however late it was sent. */
  readonly dueMs: number;
  readonly timeoutMs: number;
  readonly measurements: Measurements;
  readonly clock: Clock;
  /** Called once, at the end. null: the reply was good. */
  readonly onOver: (exchange: LoadExchange, error: string | null) => void;
}

const EXCERPT_BYTES = 300;

export class LoadExchange implements Dispatcher.DispatchHandler {
  readonly dueMs: number;
  /** The beginning of an error reply. */
  excerpt = '';
  private readonly params: LoadExchangeParams;
  private readonly series: Series;
  private readonly events: StreamEvents | null;
  private readonly timer: NodeJS.Timeout;
  private controller: Dispatcher.DispatchController | null = null;
  private status = 0;
  private firstByteMs: number | null = null;
  private lastEventMs: number | null = null;
  private isOver = false;

  constructor(params: LoadExchangeParams) {
    const { measurements, isStreamed, request, clock, dueMs } = params;
    this.params = params;
    this.dueMs = dueMs;
    this.series = isStreamed ? measurements.streams : measurements.requests;
    this.events = isStreamed ? new StreamEvents(request.endLine) : null;
    measurements.begun += 1;
    measurements.open += 1;
    if (isStreamed) measurements.openStreams += 1;
    // The time limit counts from when the request was due, as its latency does.
    const leftMs = Math.max(1, dueMs + params.timeoutMs - clock.monotonicMs());
    this.timer = setTimeout(() => this.giveUp(`no whole reply within ${params.timeoutMs / 1_000} s`), leftMs);
  }

  send(): void {
    const { dispatcher, request, isStreamed } = this.params;
    const { origin, path, headers } = request;
    const body = isStreamed ? request.streamed : request.whole;
    dispatcher.dispatch({ origin, path, method: 'POST', headers: { ...headers }, body }, this);
  }

  /** Ends the exchange without counting it, because the load was stopped. */
  abandon(): void {
    if (this.settle()) this.controller?.abort(new Error('stopped'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.isOver) controller.abort(new Error('over'));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number): void {
    this.status = status;
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isOver) return;
    const nowMs = this.params.clock.monotonicMs();
    this.firstByteMs ??= nowMs;
    if (this.status !== 200 && this.excerpt.length < EXCERPT_BYTES)
      this.excerpt += chunk.toString('utf8', 0, EXCERPT_BYTES);
    else if (this.events !== null) this.noteEvents(this.events.push(chunk), nowMs);
  }

  onResponseEnd(): void {
    const nowMs = this.params.clock.monotonicMs();
    const error = this.errorAtEnd();
    if (!this.settle()) return;
    if (error === null) {
      this.series.latency.record((nowMs - this.dueMs) * 1_000);
      this.series.firstByte.record(((this.firstByteMs ?? nowMs) - this.dueMs) * 1_000);
    }
    this.params.onOver(this, error);
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    const code = (error as { code?: string }).code ?? error.name;
    this.giveUp(this.status === 0 ? `no reply: ${code}` : `the reply was cut: ${code}`);
  }

  private errorAtEnd(): string | null {
    if (this.status !== 200) return `status ${this.status}`;
    if (this.events?.hasError === true) return 'an error in the stream';
    if (this.events?.isWhole === false) return 'a stream without its last event';
    return this.firstByteMs === null ? 'an empty reply' : null;
  }

  /** Events that arrive together count as 0 apart, as their reader sees them. */
  private noteEvents(count: number, nowMs: number): void {
    this.params.measurements.events += count;
    for (let left = count; left > 0; left--) {
      if (this.lastEventMs !== null) this.series.betweenEvents.record((nowMs - this.lastEventMs) * 1_000);
      this.lastEventMs = nowMs;
    }
  }

  private giveUp(error: string): void {
    if (!this.settle()) return;
    this.controller?.abort(new Error(error));
    this.params.onOver(this, error);
  }

  /** false: the exchange had ended before. */
  private settle(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    clearTimeout(this.timer);
    const { measurements, isStreamed } = this.params;
    measurements.open -= 1;
    if (isStreamed) measurements.openStreams -= 1;
    return true;
  }
}
