// Runs the jobs that an operator requested (`tollgate reconcile`). One jobs process of the cluster takes each request.

import { claimRequestedRun } from '../../src/storage/postgres/job-runs.ts';
import { BackgroundLoop } from './background-loop.ts';
import type { JobContext } from './job.ts';
import { type Job, runClaimedJob } from './schedule.ts';

const POLL_MS = 2_000;

export class RequestedJobs {
  private readonly context: JobContext;
  private readonly machine: string;
  private readonly jobs: readonly Job[];
  private readonly loop: BackgroundLoop;

  constructor(context: JobContext, machine: string, jobs: readonly Job[]) {
    this.context = context;
    this.machine = machine;
    this.jobs = jobs;
    const step = async (): Promise<number> => ((await this.runNext()) ? 0 : POLL_MS);
    this.loop = new BackgroundLoop({ name: 'requested jobs', log: context.log, step });
    this.loop.start();
  }

  /** Starts no further run, and waits for the one that is running. */
  stop(): Promise<void> {
    return this.loop.stop();
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
