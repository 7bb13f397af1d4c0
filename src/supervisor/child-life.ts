// One life of one forked process, seen from the supervisor: ready, metrics, drain, exit.

import type { ChildProcess } from 'node:child_process';
import type { MetricsSnapshot } from '../platform/metrics.ts';
import type { ProcessMessage, Readiness, SupervisorMessage } from './messages.ts';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ReadyReport {
  /** Where the process listens, if it says so. */
  readonly url: string | null;
}

/** What answers a question by its id. */
type Answer = Extract<ProcessMessage, { readonly id: number | null }>;

/** A drain that overruns its limit by this much is no drain any more: the process is killed. */
const KILL_AFTER_MS = 3_000;

export class ChildLife {
  readonly pid: number | undefined;
  /** null when it ended without ever being ready. */
  readonly ready: Promise<ReadyReport | null>;
  readonly exited: Promise<Exit>;
  isReady = false;
  hasExited = false;
  /** The newest figures that the process gave; what is left of it when it dies. */
  lastSnapshot: MetricsSnapshot = [];
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer | null) => void>();
  #nextRequest = 0;
  #isHeard = true;
  #silentSteps = 0;
  /** The simulated provider is nobody's part: it knows signals, not our messages. */
  #endsBySignal = false;
  #drained: Promise<Exit> | null = null;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid;
    this.exited = new Promise((resolve) => {
      // A process that cannot even be started reports 'error' and no 'exit'.
      child.on('error', () => this.pid === undefined && this.#gone(resolve, { code: null, signal: null }));
      child.on('exit', (code, signal) => this.#gone(resolve, { code, signal }));
    });
    this.ready = new Promise((resolve) => {
      child.on('message', (message: ProcessMessage) => {
        if (message.type === 'metrics' || message.type === 'readiness') this.#hear(message);
        else {
          this.isReady = true;
          this.#endsBySignal = message.type === 'listening';
          resolve({ url: message.type === 'listening' ? message.url : null });
        }
      });
      void this.exited.then(() => resolve(null));
    });
  }

  /** The process's figures, or null when it does not answer in time. */
  async metrics(limitMs: number): Promise<MetricsSnapshot | null> {
    const answer = await this.#ask('metrics', limitMs);
    return answer?.type === 'metrics' ? answer.snapshot : null;
  }

  /** null: the process does not answer in time. */
  async readiness(limitMs: number): Promise<Readiness | null> {
    if (this.#endsBySignal) return { notReady: [], impaired: [] };
    const answer = await this.#ask('readiness', limitMs);
    return answer?.type === 'readiness' ? answer : null;
  }

  /**
   * Asks for a sign of life; to be called in even steps. How many in a row have passed without one, however late an
   * answer to an earlier one comes.
   */
  countSilentSteps(stepMs: number): number {
    this.#silentSteps = this.#isHeard ? 0 : this.#silentSteps + 1;
    this.#isHeard = this.#endsBySignal;
    void this.#ask('readiness', stepMs);
    return this.#silentSteps;
  }

  async #ask(type: Answer['type'], limitMs: number): Promise<Answer | null> {
    if (this.hasExited || this.#endsBySignal || !this.#child.connected) return null;
    const id = this.#nextRequest++;
    return new Promise((resolve) => {
      const answered = (answer: Answer | null) => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(answer);
      };
      const timer = setTimeout(answered, limitMs, null);
      this.#waiting.set(id, answered);
      this.#send({ type, id });
    });
  }

  /** Asks the process to finish and end; kills it when it overruns. Asking twice is asking once. */
  drain(limitMs: number): Promise<Exit> {
    this.#drained ??= this.#drain(limitMs);
    return this.#drained;
  }

  kill(): void {
    if (!this.hasExited) this.#child.kill('SIGKILL');
  }

  async #drain(limitMs: number): Promise<Exit> {
    if (this.#endsBySignal) this.#child.kill('SIGTERM');
    else if (this.#child.connected) this.#send({ type: 'drain', limitMs });
    const timer = setTimeout(() => this.kill(), limitMs + KILL_AFTER_MS);
    try {
      return await this.exited;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Errors are left to 'exit', which follows a broken channel. */
  #send(message: SupervisorMessage): void {
    this.#child.send(message, () => undefined);
  }

  #hear(answer: Answer): void {
    this.#isHeard = true;
    if (answer.type === 'metrics') this.lastSnapshot = answer.snapshot;
    if (answer.id !== null) this.#waiting.get(answer.id)?.(answer);
  }

  #gone(resolve: (exit: Exit) => void, exit: Exit): void {
    this.isReady = false;
    this.hasExited = true;
    for (const answer of this.#waiting.values()) answer(null);
    resolve(exit);
  }
}
