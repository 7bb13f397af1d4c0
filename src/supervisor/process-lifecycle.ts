// The life of a serving process, seen from inside: it reports ready, answers for its metrics, and drains when its
// supervisor says so, when it is signalled, or when its parent has died. Which of these apply depends on what started
// it.

import type { Log } from '../platform/log.ts';
import type { MetricsRegistry } from '../platform/metrics.ts';
import { takeProfile } from '../platform/profile.ts';
import type { ProcessMessage, Readiness, SupervisorMessage } from './messages.ts';

/**
 * The work of a process that serves. `limitMs` is how long its end may take; requests that are still open then are cut.
 * Within `keptMs` of that time the process still answers requests on kept connections.
 */
export interface Serving {
  drain(limitMs: number, keptMs: number): Promise<void>;
  /** What the process lacks to serve; default: nothing. */
  notReady?(): readonly string[];
  /** Faults that do not keep it from serving; default: none. */
  impaired?(): readonly string[];
}

export interface LifecycleOptions {
  readonly log: Log;
  readonly metrics: MetricsRegistry;
  /**
   * True: our supervisor started the process and alone decides about its end. False: started by hand, systemd or a
   * container.
   */
  readonly supervised: boolean;
  readonly drainLimitMs: number;
  /**
   * The process must outlast the gateways, so it leaves SIGTERM to the supervisor too: a service manager may signal all
   * processes at once.
   */
  readonly outlastsGateways?: boolean;
  /** How long a process may run after its supervisor has died. The next supervisor waits for it. */
  readonly orphanLimitMs?: number;
}

const ORPHAN_LIMIT_MS = 3_000;
/**
 * How long a drained process answers kept connections while other processes serve the port. A client that is busy on a
 * kept connection sends its next request within this time; the request after that goes to another process.
 */
export const KEPT_MS = 1_000;
/** The extra time after the limit of a drain, to cut open requests and record them. */
const CUT_LIMIT_MS = 1_000;

export class ProcessLifecycle {
  private readonly options: LifecycleOptions;
  private serving: Serving | null = null;
  private isReady = false;
  private ending = false;

  constructor(options: LifecycleOptions) {
    this.options = options;
    const { drainLimitMs, supervised, outlastsGateways = false } = options;
    process.on('uncaughtException', (error) => this.crash(error));
    process.on('SIGTERM', () => {
      if (!(supervised && outlastsGateways)) void this.end(drainLimitMs, 'SIGTERM', supervised ? 0 : KEPT_MS);
    });
    if (supervised) {
      // Ctrl-C and hang-up of a terminal reach the whole process group. The supervisor drains in order instead.
      process.on('SIGINT', () => undefined);
      process.on('SIGHUP', () => undefined);
      process.on('message', (message: SupervisorMessage) => this.hear(message));
    } else {
      process.on('SIGINT', () => void this.end(drainLimitMs, 'SIGINT'));
    }
    if (process.send !== undefined) {
      const orphanLimitMs = options.orphanLimitMs ?? ORPHAN_LIMIT_MS;
      process.on('disconnect', () => void this.end(orphanLimitMs, 'parent_exited'));
      if (!process.connected) void this.end(orphanLimitMs, 'parent_exited');
    }
  }

  /** Sets the work to drain; may be called while the process is still starting. */
  drainsWith(serving: Serving): void {
    this.serving = serving;
  }

  ready(): void {
    this.isReady = true;
    if (this.options.supervised) this.tell({ type: 'ready' });
  }

  /** Whether the process has begun to serve and not begun to end. */
  get serves(): boolean {
    return this.isReady && !this.ending;
  }

  /** Call it only while the process serves. */
  readiness(): Readiness {
    return { notReady: this.serving?.notReady?.() ?? [], impaired: this.serving?.impaired?.() ?? [] };
  }

  private hear(message: SupervisorMessage): void {
    if (message.type === 'drain') void this.end(message.limitMs, 'supervisor_requested', message.keptMs);
    else if (message.type === 'profile') void this.profile(message);
    else if (message.type === 'readiness') this.tell({ type: 'readiness', id: message.id, ...this.readiness() });
    else this.tell({ type: 'metrics', id: message.id, snapshot: this.options.metrics.snapshot() });
  }

  private async profile({ id, kind, seconds }: Extract<SupervisorMessage, { type: 'profile' }>): Promise<void> {
    const profile = await takeProfile(kind, seconds).catch((error: unknown) => {
      this.options.log.error({ err: error }, 'no profile could be taken');
      return null;
    });
    this.tell({ type: 'profile', id, profile });
  }

  /** A process that has not set its work has nothing to finish, so it ends at once. */
  private async end(limitMs: number, reason: string, keptMs = 0): Promise<void> {
    if (this.ending) return;
    this.ending = true;
    const { log, metrics, supervised } = this.options;
    log.info({ reason, limitMs }, 'draining');
    let exitCode = 0;
    try {
      if (this.serving !== null) await withLimit(this.serving.drain(limitMs, keptMs), limitMs + CUT_LIMIT_MS);
      log.debug('drained');
    } catch (error) {
      log.error({ err: error }, 'drain failed');
      exitCode = 1;
    }
    if (supervised && process.connected)
      await new Promise((resolve) =>
        process.send?.({ type: 'metrics', id: null, snapshot: metrics.snapshot() }, undefined, {}, resolve),
      );
    process.exit(exitCode);
  }

  private crash(error: unknown): void {
    this.options.log.fatal({ err: error }, 'fault outside any request: the process ends and is restarted');
    process.exit(1);
  }

  private tell(message: ProcessMessage): void {
    // A broken channel is reported as 'disconnect', which ends the process.
    if (process.connected) process.send?.(message, undefined, {}, () => undefined);
  }
}

async function withLimit(work: Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not drained after ${limitMs} ms`)), limitMs);
  });
  try {
    await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
