// Runs a load until its time is over or it is stopped: requests that leave by a schedule whatever the replies do, a
// number of requests or streams that are always open, or both at once.

import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import type { Clock } from '../platform/clock.ts';
import { LoadExchange } from './load-exchange.ts';
import type { LoadRequest } from './load-request.ts';
import { Measurements } from './measurements.ts';
import { startPacer } from './pacer.ts';

export interface LoadPlan {
  readonly request: LoadRequest;
  /** Open loop: requests a second that are due by the schedule; null: none. */
  readonly rate: number | null;
  /** Closed loop: requests that are open at any time, each followed by the next. */
  readonly concurrency: number;
  /** Whether the requests of `rate` or `concurrency` ask for streams. */
  readonly areStreamed: boolean;
  /** Streams that are open at any time, each followed by the next. */
  readonly streams: number;
  readonly seconds: number;
  readonly timeoutMs: number;
}

export interface LoadResult {
  readonly measurements: Measurements;
  readonly startedAtMs: number;
  /** For how long requests were begun. */
  readonly elapsedMs: number;
  /**
   * Good replies that were complete within `elapsedMs`. Later replies say nothing about how many the target serves in a
   * second.
   */
  readonly goodInTime: number;
  /** Requests without a complete reply when the load was stopped, and the age of the oldest. */
  readonly abandoned: number;
  readonly oldestAbandonedMs: number;
}

/**
 * When so many requests are open, the target has long stopped answering. Further requests that are due count as errors,
 * and are never left out.
 */
const OPEN_MAX = 10_000;
const NOT_SENT = `not sent: ${OPEN_MAX} requests were open`;
/** The pause before a closed loop repeats a request that failed, which it may have done at once. */
const AFTER_ERROR_MS = 100;
const WAKE_INTERVAL_MS_MIN = 0.5;
/**
 * The pacer starts at a random moment between two due requests. With a slow schedule and longer intervals, every
 * request would be late by that offset.
 */
const WAKE_INTERVAL_MS_MAX = 1;
/**
 * Requests that are due within this time are sent now, because the clocks of two threads are not read at the same
 * instant.
 */
const DUE_WITHIN_MS = 0.05;

/**
 * Sends one request and waits for its reply. null: the reply is good; otherwise the error, with the beginning of the
 * reply.
 */
export async function tryOnce(plan: LoadPlan, clock: Clock): Promise<string | null> {
  const load = new Load(plan, clock);
  const isStreamed = plan.areStreamed || (plan.rate === null && plan.concurrency === 0);
  const { promise, resolve } = Promise.withResolvers<string | null>();
  load.begin(isStreamed, clock.monotonicMs(), (error, excerpt) => {
    resolve(error === null || excerpt === '' ? error : `${error}: ${excerpt}`);
  });
  const wrong = await promise;
  await load.close();
  return wrong;
}

/** `signal` stops the load early; the result is what was measured until then. */
export async function runLoad(
  plan: LoadPlan,
  clock: Clock,
  signal: AbortSignal,
  onStarted: (measurements: Measurements) => void,
): Promise<LoadResult> {
  const load = new Load(plan, clock);
  const pacer = plan.rate === null ? null : await load.startPacer(plan.rate);
  const startedAtMs = clock.nowMs();
  const startMs = clock.monotonicMs();
  onStarted(load.measurements);
  const endLoops = load.startLoops();
  if (plan.rate !== null) load.startSchedule(startMs, plan.rate);
  await sleep(plan.seconds * 1_000, undefined, { signal }).catch(() => undefined);
  endLoops();
  if (!signal.aborted) load.sendDue(startMs + plan.seconds * 1_000);
  const elapsedMs = clock.monotonicMs() - startMs;
  const goodInTime = load.measurements.good;
  await pacer?.terminate();
  // Not waiting for the open replies would leave out the slowest ones.
  await load.drained(signal);
  const left = load.abandonAll();
  await load.close();
  return { measurements: load.measurements, startedAtMs, elapsedMs, goodInTime, ...left };
}

class Load {
  readonly measurements = new Measurements();
  private readonly plan: LoadPlan;
  private readonly clock: Clock;
  private readonly agent: Agent;
  private readonly open = new Set<LoadExchange>();
  private onDrained: (() => void) | null = null;
  private nextDueMs = 0;
  private untilMs = 0;
  /** 0: there is no schedule, or it has not begun. */
  private intervalMs = 0;

  constructor(plan: LoadPlan, clock: Clock) {
    this.plan = plan;
    this.clock = clock;
    // A schedule opens as many connections as it needs; a closed loop has one for each place.
    const connections = plan.rate === null ? plan.concurrency + plan.streams : null;
    this.agent = new Agent({ connections, pipelining: 1, allowH2: false, headersTimeout: 0, bodyTimeout: 0 });
  }

  begin(isStreamed: boolean, dueMs: number, onOver: (error: string | null, excerpt: string) => void): void {
    const { request, timeoutMs } = this.plan;
    const exchange = new LoadExchange({
      dispatcher: this.agent,
      request,
      isStreamed,
      dueMs,
      timeoutMs,
      measurements: this.measurements,
      clock: this.clock,
      onOver: (over, error) => {
        this.open.delete(over);
        if (error !== null) this.measurements.fail(error);
        onOver(error, over.excerpt);
        if (this.open.size === 0) this.onDrained?.();
      },
    });
    this.open.add(exchange);
    exchange.send();
  }

  /**
   * Each place of a closed loop sends its next request when its reply is complete. Returns a function that ends the
   * loops.
   */
  startLoops(): () => void {
    const { concurrency, streams, areStreamed } = this.plan;
    let isEnded = false;
    const next = (isStreamed: boolean): void => {
      if (isEnded) return;
      this.begin(isStreamed, this.clock.monotonicMs(), (error) => {
        if (error === null) next(isStreamed);
        else setTimeout(() => next(isStreamed), AFTER_ERROR_MS);
      });
    };
    for (let place = 0; place < concurrency; place++) next(areStreamed);
    for (let place = 0; place < streams; place++) next(true);
    return () => {
      isEnded = true;
    };
  }

  /** Resolves when the pacer runs. Requests due while its thread starts would be late because of this command. */
  startPacer(rate: number): ReturnType<typeof startPacer> {
    const wakeIntervalMs = Math.min(Math.max(1_000 / rate, WAKE_INTERVAL_MS_MIN), WAKE_INTERVAL_MS_MAX);
    return startPacer(wakeIntervalMs, () =>
      this.sendDue(Math.min(this.clock.monotonicMs() + DUE_WITHIN_MS, this.untilMs)),
    );
  }

  startSchedule(startMs: number, rate: number): void {
    this.intervalMs = 1_000 / rate;
    this.nextDueMs = startMs;
    this.untilMs = startMs + this.plan.seconds * 1_000;
  }

  /** Sends all requests that were due before this moment, however late they are. */
  sendDue(untilMs: number): void {
    if (this.intervalMs === 0) return;
    for (; this.nextDueMs < untilMs; this.nextDueMs += this.intervalMs) {
      const dueMs = this.nextDueMs;
      this.measurements.ownDelay.record((this.clock.monotonicMs() - dueMs) * 1_000);
      if (this.open.size >= OPEN_MAX) this.measurements.fail(NOT_SENT);
      else this.begin(this.plan.areStreamed, dueMs, () => undefined);
    }
  }

  /** Resolves when no request is open, or at the signal. Each request has its own time limit. */
  drained(signal: AbortSignal): Promise<void> {
    if (this.open.size === 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.onDrained = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  abandonAll(): Pick<LoadResult, 'abandoned' | 'oldestAbandonedMs'> {
    const nowMs = this.clock.monotonicMs();
    const ages = [...this.open].map(({ dueMs }) => nowMs - dueMs);
    for (const exchange of this.open) exchange.abandon();
    this.open.clear();
    return { abandoned: ages.length, oldestAbandonedMs: Math.max(0, ...ages) };
  }

  close(): Promise<void> {
    return this.agent.destroy();
  }
}
