// A slot that always holds one running process. A process that dies is replaced, after growing pauses if it keeps
// dying.

import type { ChildProcess } from 'node:child_process';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { MetricsSnapshot } from '../platform/metrics.ts';
import type { ProfileKind } from '../platform/profile.ts';
import { ChildLife, type Exit, type ReadyReport } from './child-life.ts';
import type { Readiness } from './messages.ts';
import { KEPT_MS } from './process-lifecycle.ts';

export type ProcessRole = 'gateway' | 'jobs' | 'postgres' | 'simulated-provider';

export interface SlotOptions {
  readonly role: ProcessRole;
  readonly name: string;
  readonly fork: () => ChildProcess;
  readonly log: Log;
  readonly clock: Clock;
  /** Called after every start and end of a process in this slot. */
  readonly onChange: () => void;
  /** The last metrics of a process that ended. */
  readonly onRetired: (snapshot: MetricsSnapshot) => void;
}

const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 5_000;
/** A process that ran this long did not fail for a lasting reason. */
const STEADY_AFTER_MS = 10_000;
/** After this many deaths in a row at the first start, waiting will not help. */
const FIRST_STARTS_MAX = 5;
const REPLACEMENT_READY_LIMIT_MS = 60_000;

export class ProcessSlot {
  readonly role: ProcessRole;
  readonly name: string;
  restarts = 0;
  private readonly options: SlotOptions;
  private life: ChildLife | null = null;
  /** Processes that are being started as replacements, or drained after one. */
  private readonly passing = new Set<ChildLife>();
  private failuresInRow = 0;
  private restartTimer: NodeJS.Timeout | null = null;
  private stopping = false;
  private onFirstFailure: (() => void) | null = null;

  constructor(options: SlotOptions) {
    this.options = options;
    this.role = options.role;
    this.name = options.name;
  }

  get isReady(): boolean {
    return this.life?.isReady ?? false;
  }

  /** The readiness of the process, with the name of this slot. */
  async readiness(limitMs: number): Promise<Readiness> {
    const life = this.life;
    if (life === null || !life.isReady) return { notReady: [this.name], impaired: [] };
    const { notReady, impaired } = (await life.readiness(limitMs)) ?? { notReady: ['no answer'], impaired: [] };
    const named = (what: string): string => `${this.name}: ${what}`;
    return { notReady: notReady.map(named), impaired: impaired.map(named) };
  }

  /** null: the process did not answer, or takes another profile already. */
  async profile(kind: ProfileKind, seconds: number): Promise<string | null> {
    return (await this.life?.profile(kind, seconds)) ?? null;
  }

  get lives(): readonly ChildLife[] {
    return [...(this.life === null ? [] : [this.life]), ...this.passing].filter((life) => !life.hasExited);
  }

  /** Starts the first process and waits for it. null: it died repeatedly, or the slot was stopped meanwhile. */
  async start(): Promise<ReadyReport | null> {
    const gaveUp = new Promise<null>((resolve) => {
      this.onFirstFailure = () => resolve(null);
    });
    const report = await Promise.race([this.launch(), gaveUp]);
    this.onFirstFailure = null;
    return report;
  }

  /** Replaces the process. The old one drains only after the new one is ready. false: the old one stays. */
  async replace(drainLimitMs: number): Promise<boolean> {
    const present = this.life;
    if (this.stopping) return false;
    const next = this.fork();
    this.passing.add(next);
    const timer = setTimeout(() => next.kill(), REPLACEMENT_READY_LIMIT_MS);
    const report = await next.ready;
    clearTimeout(timer);
    this.passing.delete(next);
    if (report === null || this.stopping || this.life !== present) {
      next.kill();
      return false;
    }
    this.adopt(next);
    if (present === null) return true;
    this.passing.add(present);
    await present.drain(drainLimitMs, KEPT_MS);
    this.passing.delete(present);
    return true;
  }

  /** Drains the process, then starts another one: for a role that may not have two processes at once. */
  async restart(drainLimitMs: number): Promise<void> {
    const present = this.life;
    if (this.stopping || present === null) return;
    this.life = null;
    await present.drain(drainLimitMs);
    if (!this.isStopping() && this.life === null) this.adopt(this.fork());
  }

  private isStopping(): boolean {
    return this.stopping;
  }

  /**
   * Replaces a process that hangs: the kernel would keep giving it connections, and its leases stay with it. Call it at
   * even intervals.
   */
  replaceIfSilent({ stepMs, stepsMax }: { readonly stepMs: number; readonly stepsMax: number }): void {
    const life = this.life;
    if (this.stopping || life === null || !life.isReady || life.countSilentSteps(stepMs) < stepsMax) return;
    this.options.log.error(
      { name: this.name, childPid: life.pid, silentMs: stepMs * stepsMax },
      'no sign of life: the process is killed and restarted',
    );
    life.kill();
  }

  /** Starts no further process; running ones continue. */
  retire(): void {
    this.stopping = true;
    if (this.restartTimer !== null) clearTimeout(this.restartTimer);
    this.onFirstFailure?.();
  }

  async stop(limitMs: number): Promise<void> {
    this.retire();
    await Promise.all(this.lives.map((life) => life.drain(limitMs)));
  }

  kill(): void {
    this.stopping = true;
    for (const life of this.lives) life.kill();
  }

  /** Resolves with the report of the first process that becomes ready, after any number of attempts. */
  private async launch(): Promise<ReadyReport> {
    return new Promise((resolve) => {
      const launchOne = () => {
        const life = this.fork();
        this.adopt(life, launchOne);
        void life.ready.then((report) => report !== null && resolve(report));
      };
      launchOne();
    });
  }

  private fork(): ChildLife {
    const life = new ChildLife(this.options.fork());
    const { log, onChange, onRetired } = this.options;
    log.debug({ name: this.name, childPid: life.pid }, 'process started');
    onChange();
    void life.ready.then(onChange);
    void life.exited.then(() => {
      onRetired(life.lastSnapshot);
      onChange();
    });
    return life;
  }

  private adopt(life: ChildLife, launchNext: () => void = () => this.adopt(this.fork())): void {
    const { clock } = this.options;
    const startedMs = clock.monotonicMs();
    this.life = life;
    if (this.restartTimer !== null) clearTimeout(this.restartTimer);
    void life.exited.then((exit) => {
      // A process that was replaced or told to end needs no successor.
      if (this.life !== life || this.stopping) return;
      this.restartLater(exit, clock.monotonicMs() - startedMs, launchNext);
    });
  }

  private restartLater(exit: Exit, upMs: number, launchNext: () => void): void {
    if (upMs >= STEADY_AFTER_MS) this.failuresInRow = 0;
    const delayMs = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** this.failuresInRow);
    this.failuresInRow += 1;
    this.restarts += 1;
    this.options.log.warn(
      { name: this.name, exitCode: exit.code, signal: exit.signal, upMs: Math.round(upMs), delayMs },
      'process ended unexpectedly; restarting it',
    );
    if (this.onFirstFailure !== null && this.failuresInRow >= FIRST_STARTS_MAX) {
      this.stopping = true;
      this.onFirstFailure();
      return;
    }
    this.restartTimer = setTimeout(launchNext, delayMs);
  }
}
