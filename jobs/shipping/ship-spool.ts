// Ships the spools of this machine: posts them to Postgres (each execution exactly once), inserts them into ClickHouse
// as facts, and then removes them.
//
//   segment ──read──► postExecutions (rows, ledger, cursor: one transaction) ─► insertFacts ──► facts cursor ──► unlink
//
// The process may die during any step, and a step may run twice: the ledger and the cursor commit together, facts are
// idempotent by execution id, and cursors move before anything is removed. Each destination has its own pace and
// backoff, so that money never waits for analytics.

import type { Clock } from '../../src/platform/clock.ts';
import type { Log } from '../../src/platform/log.ts';
import type { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import type { EndObserver } from '../observing/end-observer.ts';
import { BackgroundLoop } from '../scheduling/background-loop.ts';
import { FactShipping, type FactSink } from './fact-shipping.ts';
import { LocalSpools } from './local-spools.ts';
import { PostingShipping } from './posting-shipping.ts';
import { DEFAULT_LIMITS, type ShippingLimits } from './shipping-limits.ts';
import { createShippingMetrics } from './shipping-metrics.ts';

export interface ShipperOptions {
  readonly spoolDirectory: string;
  readonly postgres: Postgres;
  readonly facts: FactSink;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  readonly limits?: Partial<ShippingLimits>;
  /** Notified of ended executions once these are posted. */
  readonly observers?: readonly EndObserver[];
}

export interface Shipper {
  start(): void;
  /** Ends the pause between postings, because a look-up waits for a record. */
  postNow(): void;
  /** Ends the loops, then ships for at most `limitMs`. Records that are not shipped by then stay in the spool. */
  stop(limitMs?: number): Promise<void>;
  /** Ships everything to both destinations, and throws faults. Only to be called while not started. */
  drainOnce(): Promise<void>;
}

/** The least time between two postings that `postNow` starts, however many gateways ask. */
const POSTINGS_WANTED_APART_MS = 25;
const STOP_LIMIT_MS = 5_000;
/** How often directories are listed, owners checked and gauges set. */
const SURVEY_MS = 1_000;
/** How often due facts are checked for. */
const FACTS_REST_MS = 500;

export function createShipper(options: ShipperOptions): Shipper {
  const { clock, log } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const metrics = createShippingMetrics(options.metrics);
  const spools = new LocalSpools({ ...options, metrics });
  const facts = new FactShipping({ ...options, limits, metrics, spools });
  const posting = new PostingShipping({ ...options, limits, metrics, spools });
  const factsRestMs = Math.min(FACTS_REST_MS, limits.factsIntervalMs);
  let surveyedMs = Number.NEGATIVE_INFINITY;
  let begunMs = Number.NEGATIVE_INFINITY;
  /** The loop rests after a successful step. `postNow` does not end the growing rests after failures. */
  let isResting = false;
  /** `postNow` was called since the last step began to read the spools. */
  let isWanted = false;
  let wakeTimer: NodeJS.Timeout | null = null;

  async function postStep(): Promise<number> {
    begunMs = clock.monotonicMs();
    isResting = false;
    if (clock.monotonicMs() - surveyedMs >= SURVEY_MS) {
      await spools.survey();
      surveyedMs = clock.monotonicMs();
    }
    const isAsked = isWanted;
    isWanted = false;
    const posted = await posting.step({ all: false, isWanted: isAsked });
    isResting = true;
    return posted === 'behind' || isWanted ? 0 : limits.pollMs;
  }

  const postings = new BackgroundLoop({ name: 'posting', log, step: postStep });
  const loops = [
    postings,
    new BackgroundLoop({ name: 'facts', log, step: async () => ((await facts.step()) ? 0 : factsRestMs) }),
  ];

  async function drain(giveUp: () => boolean): Promise<void> {
    for (let progress = true; progress && !giveUp(); ) {
      await spools.survey();
      progress = false;
      while (!giveUp() && (await posting.step({ all: true })) !== 'nothing') progress = true;
      while (!giveUp() && (await facts.step({ all: true }))) progress = true;
    }
  }

  return {
    start() {
      for (const loop of loops) loop.start();
    },
    postNow() {
      const waitMs = Math.max(0, begunMs + POSTINGS_WANTED_APART_MS - clock.monotonicMs());
      wakeTimer ??= setTimeout(() => {
        wakeTimer = null;
        isWanted = true;
        if (isResting) postings.wake();
      }, waitMs).unref();
    },
    async stop(limitMs = STOP_LIMIT_MS) {
      const deadlineMs = clock.monotonicMs() + limitMs;
      await Promise.all(loops.map((loop) => loop.stop()));
      try {
        await drain(() => clock.monotonicMs() >= deadlineMs);
      } catch (error) {
        log.warn(
          { err: error },
          'shipping: the end of the spools could not be shipped before stopping; it stays for the next start',
        );
      }
    },
    async drainOnce() {
      await drain(() => false);
    },
  };
}
