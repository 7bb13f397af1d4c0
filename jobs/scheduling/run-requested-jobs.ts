// Runs the jobs that an operator requested (`tollgate reconcile`). One jobs process of the cluster takes each request.

import { claimRequestedRun } from '../../src/storage/postgres/job-runs.ts';
import { Backoff } from '../shipping/backoff.ts';
import { StoppableSleep } from '../shipping/stoppable-sleep.ts';
import type { JobContext } from './job.ts';
import { type Job, runClaimedJob } from './schedule.ts';

const POLL_MS = 1_000;

export class RequestedJobs {
  private readonly context: JobContext;
  private readonly machine: string;
  private readonly jobs: readonly Job[];
  private readonly sleep = new StoppableSleep();
  private stopping = false;
  private readonly loop: Promise<void>;

  constructor(context: JobContext, machine: string, jobs: readonly Job[]) {
    this.context = context;
    this.machine = machine;
    this.jobs = jobs;
    this.loop = this.run();
  }

  /** Starts no further run, and waits for the one that is running. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.sleep.stop();
    await this.loop;
  }

  private async run(): Promise<void> {
    const backoff = new Backoff({ name: 'requested jobs', log: this.context.log });
    while (!this.stopping) {
      let waitMs = POLL_MS;
      try {
        if (await this.runNext()) waitMs = 0;
        backoff.succeeded();
      } catch (error) {
        waitMs = backoff.failed(error);
      }
      if (waitMs > 0 && !this.stopping) await this.sleep.forMs(waitMs);
    }
  }

  private async runNext(): Promise<boolean> {
    const requested = await claimRequestedRun(this.context.postgres, this.machine);
    if (requested === null) return false;
    const job = this.jobs.find(({ name }) => name === requested.name) ?? unknownJob(requested.name);
    await runClaimedJob(this.context, job, requested.id);
    return true;
  }
}

/** A job that another version of the program requested. */
function unknownJob(name: string): Pick<Job, 'name' | 'run'> {
  return { name, run: () => Promise.reject(new Error(`this version has no job "${name}"`)) };
}
