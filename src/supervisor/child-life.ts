// One life of one forked process, seen from the supervisor: ready, metrics, drain, exit.

import type { ChildProcess } from 'node:child_process';
import type { MetricsSnapshot } from '../platform/metrics.ts';
import type { ProfileKind } from '../platform/profile.ts';
import type { ProcessMessage, Readiness, SupervisorMessage } from './messages.ts';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ReadyReport {
  /** The address where the process listens, if it reports one. */
  readonly url: string | null;
}

/** The messages that answer a request by its id. */
type Answer = Extract<ProcessMessage, { readonly id: number | null }>;

/** A question without its id. */
type Question =
  | { readonly type: 'metrics' | 'readiness' }
  | { readonly type: 'profile'; readonly kind: ProfileKind; readonly seconds: number };

/** The extra time that a process gets to write a profile down. */
const PROFILE_ANSWER_LIMIT_MS = 10_000;
/** A process whose drain takes this much longer than its limit is killed. */
const KILL_AFTER_MS = 3_000;

export class ChildLife {
  readonly pid: number | undefined;
  /** null: the process ended without becoming ready. */
  readonly ready: Promise<ReadyReport | null>;
  readonly exited: Promise<Exit>;
  isReady = false;
  hasExited = false;
  /** The last metrics of the process, which are kept when it dies. */
  lastSnapshot: MetricsSnapshot = [];
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, (answer: Answer | null) => void>();
  private nextRequest = 0;
  private isHeard = true;
  private silentSteps = 0;
  /** The simulated provider knows only signals and not our messages. */
  private endsBySignal = false;
  private drained: Promise<Exit> | null = null;

  constructor(child: ChildProcess) {
    this.child = child;
    this.pid = child.pid;
    this.exited = new Promise((resolve) => {
      // A process that cannot be started reports 'error' and no 'exit'.
      child.on('error', () => this.pid === undefined && this.gone(resolve, { code: null, signal: null }));
      child.on('exit', (code, signal) => this.gone(resolve, { code, signal }));
    });
    this.ready = new Promise((resolve) => {
      child.on('message', (message: ProcessMessage) => {
        if (message.type === 'ready' || message.type === 'listening') {
          this.isReady = true;
          this.endsBySignal = message.type === 'listening';
          resolve({ url: message.type === 'listening' ? message.url : null });
        } else this.hear(message);
      });
      void this.exited.then(() => resolve(null));
    });
  }

  /** The process's metrics; null: it did not answer in time. */
  async metrics(limitMs: number): Promise<MetricsSnapshot | null> {
    const answer = await this.ask({ type: 'metrics' }, limitMs);
    return answer?.type === 'metrics' ? answer.snapshot : null;
  }

  /** null: the process did not answer in time. */
  async readiness(limitMs: number): Promise<Readiness | null> {
    if (this.endsBySignal) return { notReady: [], impaired: [] };
    const answer = await this.ask({ type: 'readiness' }, limitMs);
    return answer?.type === 'readiness' ? answer : null;
  }

  /** null: the process did not answer, or takes another profile already. */
  async profile(kind: ProfileKind, seconds: number): Promise<string | null> {
    const answer = await this.ask({ type: 'profile', kind, seconds }, seconds * 1_000 + PROFILE_ANSWER_LIMIT_MS);
    return answer?.type === 'profile' ? answer.profile : null;
  }

  /**
   * Asks the process for a sign of life, and returns how many steps in a row have passed without one. Call it at even
   * intervals of `stepMs`. A late answer counts as a sign of life.
   */
  countSilentSteps(stepMs: number): number {
    this.silentSteps = this.isHeard ? 0 : this.silentSteps + 1;
    this.isHeard = this.endsBySignal;
    void this.ask({ type: 'readiness' }, stepMs);
    return this.silentSteps;
  }

  private async ask(question: Question, limitMs: number): Promise<Answer | null> {
    if (this.hasExited || this.endsBySignal || !this.child.connected) return null;
    const id = this.nextRequest++;
    return new Promise((resolve) => {
      const answered = (answer: Answer | null) => {
        clearTimeout(timer);
        this.waiting.delete(id);
        resolve(answer);
      };
      const timer = setTimeout(answered, limitMs, null);
      this.waiting.set(id, answered);
      this.send({ ...question, id });
    });
  }

  /**
   * Asks the process to drain and end, and kills it if it takes too long. A second call has no effect. `keptMs`: for
   * how long it still answers requests on kept connections.
   */
  drain(limitMs: number, keptMs = 0): Promise<Exit> {
    this.drained ??= this.drainWithin(limitMs, keptMs);
    return this.drained;
  }

  kill(): void {
    if (!this.hasExited) this.child.kill('SIGKILL');
  }

  private async drainWithin(limitMs: number, keptMs: number): Promise<Exit> {
    if (this.endsBySignal) this.child.kill('SIGTERM');
    else if (this.child.connected) this.send({ type: 'drain', limitMs, keptMs });
    const timer = setTimeout(() => this.kill(), limitMs + KILL_AFTER_MS);
    try {
      return await this.exited;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Errors are ignored, because 'exit' follows a broken channel. */
  private send(message: SupervisorMessage): void {
    this.child.send(message, () => undefined);
  }

  private hear(answer: Answer): void {
    this.isHeard = true;
    if (answer.type === 'metrics') this.lastSnapshot = answer.snapshot;
    if (answer.id !== null) this.waiting.get(answer.id)?.(answer);
  }

  private gone(resolve: (exit: Exit) => void, exit: Exit): void {
    this.isReady = false;
    this.hasExited = true;
    for (const answer of this.waiting.values()) answer(null);
    resolve(exit);
  }
}
