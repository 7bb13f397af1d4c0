// Worker threads for work above half a millisecond. A result is a value, never a rejection: the pool may be full, a
// task may run out of time or take its thread down, and callers must have an answer for each.
//
// What is bounded: the bytes and the number of tasks waiting or running, the time from `run` to the result (waiting
// included; at the deadline the thread is killed, since a busy thread cannot be asked to stop), and the memory of a
// thread. Threads start with the first task and stop when idle, except for one: without it, the end of a stream after a
// pause would wait until a tokenizer is loaded again, which takes half a second, and seconds on a busy machine.
//
// Tasks wait here and not in piscina, which is handed one task a thread: beyond its minimum of threads piscina 5.3 does
// not replace a killed or crashed thread for the tasks in its own queue, and they would wait until their deadlines.

import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { assert } from './assert.ts';
import type { BegunFlag } from './begun-flag.ts';
import { type Clock, systemClock } from './clock.ts';
import { FairQueue } from './fair-queue.ts';
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

/**
 * The deadline of the work passes in so many slices. While the process stands still, its threads do, too: a slice then
 * counts once, however late its timer is, and a result that has arrived meanwhile is read before the next one.
 */
const WORK_SLICES = 5;

export type WorkerResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: WorkerFailure };
export type WorkerFailure = 'queue_full' | 'deadline' | 'crashed';

export interface WorkerTaskOptions {
  /** The memory that the task occupies, which counts towards the queue's limit. */
  readonly bytes: number;
  readonly deadlineMs: number;
  /**
   * Who causes the work, where it may be slow or plentiful. Sources take turns at the threads, and a source may use
   * only a part of the queue's bytes in addition to its first task. Absent: the task is a source of its own.
   */
  readonly source?: string;
  /**
   * A deadline for the work alone, without the wait for a thread and its start. The task gets `begun` in its input, and
   * sets it when it begins.
   */
  readonly work?: { readonly begun: BegunFlag; readonly deadlineMs: number };
  /** Buffers whose ownership moves to the thread; the caller must not touch them again. */
  readonly transfer?: readonly ArrayBuffer[];
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
/**
 * When an idle thread beyond the first stops: half a minute keeps its tokenizer through pauses, and frees it at night.
 */
const IDLE_TIMEOUT_MS = 30_000;
/** The number of tasks is limited too, because each has a promise, a timer and a place in the queue. */
const TASKS_MAX = 4096;
/** One source may use the queue's bytes divided by this, unless one task alone takes more. */
const SOURCE_BYTES_DIVISOR = 4;
/** The longest that a timer can wait: the queue needs no limit, since each task has a deadline. */
const WAIT_MS_MAX = 2 ** 31 - 1;
/** One encoding takes about 110 MB; a body and its text come on top. */
const THREAD_MEMORY = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 64 };
const DURATION_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const LATE = { ok: false, reason: 'deadline' } as const;

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
  private readonly queue: FairQueue;
  private readonly bytesOf = new Map<string, number>();
  private unnamed = 0;
  private bytes = 0;
  private tasks = 0;
  private closed = false;

  constructor(options: WorkerPoolOptions) {
    assert(options.threads >= 1, 'worker pool: at least one thread');
    this.directory = options.directory ?? WORKERS_DIRECTORY;
    this.threads = options.threads;
    this.idleTimeoutMs = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS;
    const underWayOfSourceMax = Math.max(1, this.threads - 1);
    const limits = { underWayMax: this.threads, underWayOfSourceMax, waitingMax: TASKS_MAX, waitMsMax: WAIT_MS_MAX };
    this.queue = new FairQueue(limits);
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
    this.unnamed += 1;
    const source = options.source ?? `unnamed ${this.unnamed}`;
    if (this.isFullFor(source, options.bytes)) return this.finish(task, { ok: false, reason: 'queue_full' });

    const startMs = this.clock.monotonicMs();
    this.hold(source, options.bytes, 1);
    const deadline = new AbortController();
    let timer = setTimeout(() => deadline.abort(), options.deadlineMs);
    let isOver = false;
    onceBegun(options, (workMs) => {
      if (isOver) return;
      clearTimeout(timer);
      let slices = 0;
      timer = setInterval(() => {
        slices += 1;
        if (slices === WORK_SLICES) deadline.abort();
      }, workMs / WORK_SLICES);
    });
    try {
      const run = (): Promise<WorkerResult<T>> => this.runInThread<T>(task, input, options, deadline.signal);
      return this.finish(task, await this.inTurn(run, source, deadline.signal));
    } finally {
      isOver = true;
      clearTimeout(timer);
      this.hold(source, -options.bytes, -1);
      this.seconds.labels(task).observe((this.clock.monotonicMs() - startMs) / 1000);
    }
  }

  private async runInThread<T>(
    task: Task,
    input: unknown,
    options: WorkerTaskOptions,
    deadline: AbortSignal,
  ): Promise<WorkerResult<T>> {
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

  /**
   * Runs a task once a thread is free and it is the source's turn. At its deadline a task that still waits is late: the
   * result comes at once, and nothing runs when its turn comes.
   */
  private async inTurn<T>(
    run: () => Promise<WorkerResult<T>>,
    source: string,
    deadline: AbortSignal,
  ): Promise<WorkerResult<T>> {
    // Setting `waiting` to null frees the task's input at the deadline, although its turn is still to come.
    let waiting: typeof run | null = run;
    const begin = async (): Promise<WorkerResult<T>> => {
      const begun = waiting;
      waiting = null;
      return begun === null ? LATE : begun();
    };
    const { promise: late, resolve } = Promise.withResolvers<WorkerResult<T>>();
    const leave = (): void => {
      if (waiting !== null) resolve(LATE);
      waiting = null;
    };
    deadline.addEventListener('abort', leave, { once: true });
    return Promise.race([this.queue.run(begin, LATE, source), late]);
  }

  private isFullFor(source: string, bytes: number): boolean {
    if (this.tasks >= TASKS_MAX || this.bytes + bytes > this.queueBytesMax) return true;
    const own = this.bytesOf.get(source) ?? 0;
    return own > 0 && own + bytes > this.queueBytesMax / SOURCE_BYTES_DIVISOR;
  }

  /**
   * Ends the threads. Waiting and running tasks end as `crashed`, so callers that need results must await them first.
   */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.piscina?.destroy();
  }

  private hold(source: string, bytes: number, tasks: number): void {
    const own = (this.bytesOf.get(source) ?? 0) + bytes;
    if (own > 0) this.bytesOf.set(source, own);
    else this.bytesOf.delete(source);
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

/** The pool for the tasks of one source, such as an organization: it takes turns with the others. */
export function inTurnsOf<Task extends string>(
  workers: Pick<WorkerPool<Task>, 'run'>,
  source: string,
): Pick<WorkerPool<Task>, 'run'> {
  return { run: (task, input, options) => workers.run(task, input, { ...options, source }) };
}

/** Calls `start` when the task reports that it has begun; never for a task whose work has no deadline. */
function onceBegun({ work, deadlineMs }: WorkerTaskOptions, start: (workMs: number) => void): void {
  if (work === undefined) return;
  const waiting = Atomics.waitAsync(work.begun, 0, 0, deadlineMs);
  if (waiting.async) void waiting.value.then((result) => result === 'ok' && start(work.deadlineMs));
}
