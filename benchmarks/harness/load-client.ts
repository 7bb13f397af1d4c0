// The harness's side of the load generator: starts it, hands it jobs, and tells when measuring begins.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Job, JobResult, LoadCommand, LoadEvent } from '../load/job.ts';
import { LOAD_CORE, pinToCore } from './cores.ts';

const LOAD_GENERATOR = fileURLToPath(new URL('../load/load-generator.ts', import.meta.url));

interface RunningJob {
  readonly onMeasuring: () => void;
  readonly onDone: (result: JobResult) => void;
  readonly onLost: (error: Error) => void;
}

export class LoadClient {
  private readonly process: ChildProcess;
  private readonly jobs = new Map<number, RunningJob>();
  private lastId = 0;

  static async start(): Promise<LoadClient> {
    const child = fork(LOAD_GENERATOR, { execArgv: ['--max-semi-space-size=64'] });
    pinToCore(child.pid as number, LOAD_CORE);
    await once(child, 'message');
    return new LoadClient(child);
  }

  private constructor(child: ChildProcess) {
    this.process = child;
    child.on('message', (event: LoadEvent) => this.hear(event));
    child.on('exit', (code) => {
      for (const job of this.jobs.values()) job.onLost(new Error(`the load generator ended with ${code}`));
    });
  }

  get pid(): number {
    return this.process.pid as number;
  }

  /** Runs a job to its end. `onMeasuring` is called when its warm-up is over. */
  run(job: Job, onMeasuring: () => void = () => {}): Promise<JobResult> {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.jobs.set(id, { onMeasuring, onDone: resolve, onLost: reject });
      this.tell({ do: 'start', id, job });
    });
  }

  /** Opens streams; resolves when they are open. `release` closes them and gives the figures. */
  hold(job: Job): Promise<{ release(): Promise<JobResult> }> {
    const id = ++this.lastId;
    return new Promise((resolveOpen, reject) => {
      const done = new Promise<JobResult>((resolveDone) => {
        this.jobs.set(id, {
          onMeasuring: () =>
            resolveOpen({
              release: () => {
                this.tell({ do: 'release', id });
                return done;
              },
            }),
          onDone: resolveDone,
          onLost: reject,
        });
      });
      this.tell({ do: 'start', id, job });
    });
  }

  async stop(): Promise<void> {
    if (this.process.exitCode !== null) return;
    this.process.kill();
    await once(this.process, 'exit');
  }

  private tell(command: LoadCommand): void {
    this.process.send(command);
  }

  private hear(event: LoadEvent): void {
    if (event.event === 'ready') return;
    const job = this.jobs.get(event.id);
    if (event.event === 'measuring') {
      job?.onMeasuring();
    } else {
      this.jobs.delete(event.id);
      job?.onDone(event.result);
    }
  }
}
