// Writes the beats of this process. Each beat is at a multiple of five seconds, so that the beats of all processes can
// be added up.

import { hostname } from 'node:os';
import {
  BEAT_INTERVAL_MS,
  countsBetween,
  gaugesOf,
  type ProcessSample,
  SAMPLED,
  totalsOf,
} from '../../../domain/processes/process-sample.ts';
import type { Clock } from '../../../platform/clock.ts';
import { withDeadline } from '../../../platform/deadline.ts';
import type { LoopDelay } from '../../../platform/event-loop/loop-delay.ts';
import type { Log } from '../../../platform/log.ts';
import type { MetricsRegistry } from '../../../platform/metrics.ts';
import { readVersion } from '../../../platform/version.ts';
import type { Postgres } from '../pool.ts';
import { type BeatingProcess, writeBeat } from './beats.ts';

/** The longest that the end of the process waits for its last beat, since the database may stand still. */
const STOP_LIMIT_MS = 1_000;

interface HeartbeatParts {
  readonly postgres: Postgres;
  readonly kind: BeatingProcess['kind'];
  readonly epoch: number | null;
  readonly metrics: MetricsRegistry;
  readonly loopDelay: LoopDelay;
  readonly clock: Clock;
  readonly log: Log;
}

export class Heartbeat {
  private readonly parts: HeartbeatParts;
  private readonly process: BeatingProcess;
  private readonly readLoopDelayMs: () => number;
  private totals: ReadonlyMap<string, number> = new Map();
  private timer: NodeJS.Timeout | null = null;
  private writing: Promise<void> = Promise.resolve();
  private lastAtMs = 0;
  private isAway = false;
  private isStopping = false;

  constructor(parts: HeartbeatParts) {
    const { kind, epoch, clock } = parts;
    this.parts = parts;
    this.process = {
      machine: hostname(),
      kind,
      pid: process.pid,
      startedAtMs: Math.round(clock.nowMs()),
      version: readVersion(),
      epoch,
    };
    this.readLoopDelayMs = parts.loopDelay.reader();
  }

  /** Writes the first beat at once, so that a starting process is shown. */
  start(): void {
    this.beat();
  }

  /** Writes the last beat, which reports the end of the process, unless the database is away. Never rejects. */
  async stop(): Promise<void> {
    this.isStopping = true;
    clearTimeout(this.timer ?? undefined);
    if (this.isAway) return;
    await withDeadline(
      this.writing.then(() => this.write(true)),
      STOP_LIMIT_MS,
    ).catch(() => undefined);
  }

  private beat(): void {
    // The next beat waits until this one is written, so that a slow database does not get them out of order.
    this.writing = this.write(false).then(() => this.wait());
  }

  private wait(): void {
    if (this.isStopping) return;
    const aheadMs = this.lastAtMs + BEAT_INTERVAL_MS - this.parts.clock.nowMs();
    this.timer = setTimeout(() => this.beat(), Math.max(0, Math.min(BEAT_INTERVAL_MS, aheadMs))).unref();
  }

  private async write(isLast: boolean): Promise<void> {
    const { postgres, clock, log } = this.parts;
    const nearestMs = Math.round(clock.nowMs() / BEAT_INTERVAL_MS) * BEAT_INTERVAL_MS;
    // The last beat comes early, so it may fall on the time of the one before. After the clock was set, a beat counts
    // at the new time.
    const atMs = nearestMs === this.lastAtMs ? nearestMs + BEAT_INTERVAL_MS : nearestMs;
    this.lastAtMs = atMs;
    try {
      await writeBeat(postgres, this.process, { atMs, isLast, ...this.takeSample() });
      this.isAway = false;
    } catch (fault) {
      // One warning for each outage. Only the live figures lack what was counted meanwhile.
      if (!this.isAway) log.warn({ err: fault }, 'the beat of this process could not be written');
      this.isAway = true;
    }
  }

  private takeSample(): ProcessSample {
    const snapshot = this.parts.metrics.snapshot(SAMPLED);
    const totals = totalsOf(snapshot);
    const counts = countsBetween(this.totals, totals);
    this.totals = totals;
    const ofProcess = { memory_bytes: process.memoryUsage.rss(), loop_delay_ms: this.readLoopDelayMs() };
    return { counts, gauges: { ...gaugesOf(snapshot), ...ofProcess } };
  }
}
