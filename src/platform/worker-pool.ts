// Worker threads for work above half a millisecond. A result is a value, never a rejection: the pool may be full, a
// task may run out of time or take its thread down, and callers must have an answer for each.
//
// What is bounded: the bytes and the number of tasks waiting or running, the time from `run` to the result (waiting
// included; at the deadline the thread is killed, since a busy thread cannot be asked to stop), and the memory of a
// thread. Threads start with the first task and stop when idle, but for one: a stream that comes after a pause must not
// wait for its end until a tokenizer is loaded again, which takes half a second, and seconds on a busy machine.
//
// Tasks wait here and not in piscina, which is handed one task a thread: beyond its minimum of threads piscina 5.3 does
// not replace a killed or crashed thread for the tasks in its own queue, and they would wait until their deadlines.

import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { assert } from './assert.ts';
import { type Clock, systemClock } from './clock.ts';
import type { Log } from './log.ts';
import type { Counter, Gauge, Histogram, MetricsRegistry } from './metrics.ts';

/** The worker tasks of the product, each a file of this name in workers/. */
export type WorkerTask =
  | 'check-file'
  | 'count-tokens'
  | 'find-stored-objects'
  | 'prepare-conversation'
  | 'screen-event'
  | 'screen-text'
  | 'try-policies'
  | 'validate-questions';

export type WorkerResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: WorkerFailure };
export type WorkerFailure = 'queue_full' | 'deadline' | 'crashed';

export interface WorkerTaskOptions {
  /** The memory that the task occupies, which counts towards the queue's limit. */
  readonly bytes: number;
  readonly deadlineMs: number;
  /** For the work alone, without the wait for a thread and its start: `begun` is in the task's input, which sets it. */
  readonly work?: { readonly begun: BegunFlag; readonly deadlineMs: number };
  /** Buffers whose ownership moves to the thread; the caller must not touch them again. */
  readonly transfer?: readonly ArrayBuffer[];
}

/** Memory that a task's thread shares with its caller: 1 once the task runs. */
export type BegunFlag = Int32Array<SharedArrayBuffer>;

export function begunFlag(): BegunFlag {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

export interface WorkerPoolOptions {
  readonly threads: number;
  readonly queueBytesMax: number;
  readonly log: Log;
  readonly metrics: MetricsRegistry;
  readonly clock?: Clock;
  /** The directory of the task files; tests have their own. */
  readonly directory?: URL;
  readonly idleTimeoutMs?: number;
}

const WORKERS_DIRECTORY = new URL('../../workers/', import.meta.url);
/** Of the threads beyond the first: half a minute keeps their tokenizers through pauses, and frees them at night. */
const IDLE_TIMEOUT_MS = 30_000;
/** The number of tasks is limited too, because each has a promise, a timer and a place in the queue. */
const TASKS_MAX = 4096;
/** One encoding takes about 110 MB; a body and its text come on top. */
const THREAD_MEMORY = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 64 };
const DURATION_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class WorkerPool<Task extends string = WorkerTask> {
  /** Made with the first task: a process that has none has no thread. */
  private piscina: Piscina | null = null;
  private readonly directory: URL;
  private readonly queueBytesMax: number;
  private readonly log: Log;
  private readonly clock: Clock;
  private readonly queueBytes: Gauge;
  private readonly tasksOpen: Gauge;
  private readonly results: Counter<readonly ['task', 'result']>;
  private readonly seconds: Histogram<readonly ['task']>;
  private readonly threads: number;
  private readonly idleTimeoutMs: number;
  /** Tasks that wait for a thread, in order of arrival; each is called with whether it got one. */
  private readonly waiting: ((hasThread: boolean) => void)[] = [];
  private threadsTaken = 0;
  private bytes = 0;
  private tasks = 0;
  private closed = false;

  constructor(options: WorkerPoolOptions) {
    assert(options.threads >= 1, 'worker pool: at least one thread');
    this.directory = options.directory ?? WORKERS_DIRECTORY;
    this.threads = options.threads;
    this.idleTimeoutMs = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS;
    this.queueBytesMax = options.queueBytesMax;
    this.log = options.log;
    this.clock = options.clock ?? systemClock;
    this.queueBytes = options.metrics.gauge(
      'tollgate_worker_queue_bytes',
      'Bytes held by worker tasks that wait or run.',
    );
    this.tasksOpen = options.metrics.gauge('tollgate_worker_tasks_open', 'Worker tasks that wait or run.');
    this.results = options.metrics.counter(
      'tollgate_worker_tasks_total',
      'Worker tasks by result; a deadline kills a thread.',
      ['task', 'result'],
    );
    this.seconds = options.metrics.histogram(
      'tollgate_worker_task_seconds',
      'Time from handing a task over to its result.',
      DURATION_BUCKETS_SECONDS,
      ['task'],
    );
    options.metrics.gauge('tollgate_worker_threads', 'Worker threads alive.', {
      read: () => this.piscina?.threads.length ?? 0,
    });
  }

  async run<T>(task: Task, input: unknown, options: WorkerTaskOptions): Promise<WorkerResult<T>> {
    if (this.closed) return this.finish(task, { ok: false, reason: 'crashed' });
    const isFull = this.tasks >= TASKS_MAX || this.bytes + options.bytes > this.queueBytesMax;
    if (isFull) return this.finish(task, { ok: false, reason: 'queue_full' });

    const startMs = this.clock.monotonicMs();
    this.hold(options.bytes, 1);
    const deadline = new AbortController();
    let timer = setTimeout(() => deadline.abort(), options.deadlineMs);
    let isOver = false;
    onceBegun(options, (workMs) => {
      if (isOver) return;
      clearTimeout(timer);
      timer = setTimeout(() => deadline.abort(), workMs);
    });
    try {
      return this.finish(task, await this.runInThread<T>(task, input, options, deadline.signal));
    } finally {
      isOver = true;
      clearTimeout(timer);
      this.hold(-options.bytes, -1);
      this.seconds.labels(task).observe((this.clock.monotonicMs() - startMs) / 1000);
    }
  }

  private async runInThread<T>(
    task: Task,
    input: unknown,
    options: WorkerTaskOptions,
    deadline: AbortSignal,
  ): Promise<WorkerResult<T>> {
    if (!(await this.takeThread(deadline))) return { ok: false, reason: this.closed ? 'crashed' : 'deadline' };
    try {
      // piscina would start threads again after its end, so nothing may reach it then.
      if (this.closed) return { ok: false, reason: 'crashed' };
      const filename = fileURLToPath(new URL(`${task}.ts`, this.directory));
      const value: T = await this.threadPool().run(input, {
        filename,
        signal: deadline,
        transferList: [...(options.transfer ?? [])],
      });
      return { ok: true, value };
    } catch (error) {
      if (deadline.aborted) {
        this.log.warn({ task, deadlineMs: options.deadlineMs }, 'a worker task ran out of time');
        return { ok: false, reason: 'deadline' };
      }
      if (!this.closed) this.log.error({ task, err: error }, 'a worker task failed');
      return { ok: false, reason: 'crashed' };
    } finally {
      this.freeThread();
    }
  }

  private threadPool(): Piscina {
    if (this.piscina !== null) return this.piscina;
    this.piscina = new Piscina({
      minThreads: 1,
      maxThreads: this.threads,
      idleTimeout: this.idleTimeoutMs,
      maxQueue: TASKS_MAX,
      resourceLimits: THREAD_MEMORY,
      // A task is a pure function of its input, and the process's environment has secrets.
      env: {},
      recordTiming: false,
    });
    // The death of an idle thread is reported here and not to a task; an unhandled event would end the process.
    this.piscina.on('error', (error: unknown) => this.log.error({ err: error }, 'a worker thread failed'));
    return this.piscina;
  }

  /** Waits for a thread, first come first served; false when the deadline or the end of the pool came first. */
  private async takeThread(deadline: AbortSignal): Promise<boolean> {
    if (this.threadsTaken < this.threads) {
      this.threadsTaken++;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.waiting.push(resolve);
    const leaveQueue = (): void => {
      const place = this.waiting.indexOf(resolve);
      if (place !== -1) this.waiting.splice(place, 1);
      resolve(false);
    };
    deadline.addEventListener('abort', leaveQueue, { once: true });
    return promise;
  }

  /** Hands the thread to the task that has waited longest. */
  private freeThread(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.threadsTaken--;
    else next(true);
  }

  /**
   * Ends the threads. Waiting and running tasks end as `crashed`, so callers that need results must await them first.
   */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    for (const next of this.waiting.splice(0)) next(false);
    await this.piscina?.destroy();
  }

  private hold(bytes: number, tasks: number): void {
    this.bytes += bytes;
    this.tasks += tasks;
    this.queueBytes.set(this.bytes);
    this.tasksOpen.set(this.tasks);
  }

  private finish<T>(task: Task, result: WorkerResult<T>): WorkerResult<T> {
    this.results.labels(task, result.ok ? 'ok' : result.reason).increment();
    return result;
  }
}

/** Calls back when the task says that it runs; never, where that does not matter. */
function onceBegun({ work, deadlineMs }: WorkerTaskOptions, start: (workMs: number) => void): void {
  if (work === undefined) return;
  const waiting = Atomics.waitAsync(work.begun, 0, 0, deadlineMs);
  if (waiting.async) void waiting.value.then((result) => result === 'ok' && start(work.deadlineMs));
}
