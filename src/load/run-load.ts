// Runs a load: requests that leave by a schedule whatever the replies do, a number of requests or of streams that are
// always open, or both at once; until its time is over or it is stopped.

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
  /** How long requests began. */
  readonly elapsedMs: number;
  /** Good replies that were whole within it. Those that were waited for afterwards say nothing of a second. */
  readonly goodInTime: number;
  /** Requests without a whole reply when the load was stopped, and the age of the oldest. */
  readonly abandoned: number;
  readonly oldestAbandonedMs: number;
}

/** Beyond this the target has long stopped answering; what is due is counted as an error, never left out. */
const OPEN_MAX = 10_000;
const NOT_SENT = `not sent: ${OPEN_MAX} requests were open`;
/** A request of a closed loop that failed at once is not repeated at once. */
const AFTER_ERROR_MS = 100;
const WAKE_INTERVAL_MS_MIN = 0.5;
/** The pacer begins somewhere between two requests that are due, and a slow schedule would stay that late. */
const WAKE_INTERVAL_MS_MAX = 1;
/** What is due within this is sent: the clocks of two threads are not read in the same instant. */
const DUE_WITHIN_MS = 0.05;

/**
 * Sends one request and waits for its reply. null: it is good; otherwise what is wrong, with the beginning of the
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

/** `signal` stops it before its time; what was measured until then is the result. */
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
  // Whoever stopped waiting now would leave out the slowest replies.
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
  /** 0: there is no schedule, or not yet. */
  private intervalMs = 0;

  constructor(plan: LoadPlan, clock: Clock) {
    this.plan = plan;
    this.clock = clock;
    // A schedule has as many connections as it needs, a closed loop no more than it has places.
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

  /** Each place of a closed loop sends its next request when it has its reply. Returns what ends them. */
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

  /** Resolves when it runs: what was due while a thread starts would be late by this command's own doing. */
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

  /** Sends all that was due before this moment, however late that is. */
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
