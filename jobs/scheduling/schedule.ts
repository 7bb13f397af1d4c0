// THE table of scheduled jobs (time and work of each name), and the scheduler. The first process of the cluster that
// claims a due time runs the job and records it; the others skip it.

import { createTask, type ScheduledTask } from 'node-cron';
import { JOB_NAMES, type JobName } from '../../src/domain/jobs/job-names.ts';
import { claimJobRun, finishJobRun } from '../../src/storage/postgres/job-runs.ts';
import { checkLedger } from '../tasks/check-ledger.ts';
import { checkOwnKeys } from '../tasks/check-own-keys.ts';
import { checkPending } from '../tasks/check-pending.ts';
import { compareCells } from '../tasks/compare-cells.ts';
import { compareFacts, rebuildFacts } from '../tasks/compare-facts.ts';
import { dropOldFacts } from '../tasks/drop-old-facts.ts';
import { forgetOldSessions } from '../tasks/forget-ended-sessions.ts';
import { forgetOldJobRuns } from '../tasks/forget-job-runs.ts';
import { forgetPastLimitPools } from '../tasks/forget-past-limit-pools.ts';
import { forgetOldRefusedRequests } from '../tasks/forget-refused-requests.ts';
import { forgetOldRoutingTurns } from '../tasks/forget-routing-turns.ts';
import { forgetOldSavedResponses } from '../tasks/forget-saved-responses.ts';
import { forgetOldWebhookDeliveries } from '../tasks/forget-webhook-deliveries.ts';
import { resolvePendingExecutions } from '../tasks/resolve-pending.ts';
import { retireMedia } from '../tasks/retire-media.ts';
import { revokeFrozenWallets } from '../tasks/revoke-frozen.ts';
import { rewrapStoredSecrets } from '../tasks/rewrap-secrets.ts';
import { sealDays } from '../tasks/seal-days.ts';
import { sweepMedia } from '../tasks/sweep-media.ts';
import type { JobContext, JobResult } from './job.ts';

export interface Job {
  readonly name: string;
  /** In UTC; null: the job runs only when it is requested. */
  readonly cron: string | null;
  readonly run: (context: JobContext) => Promise<JobResult>;
}

const SCHEDULED: Readonly<Record<JobName, Omit<Job, 'name'>>> = {
  'resolve-pending': { cron: '* * * * *', run: resolvePendingExecutions },
  'revoke-frozen': { cron: '* * * * *', run: revokeFrozenWallets },
  'rewrap-secrets': { cron: '2-59/5 * * * *', run: rewrapStoredSecrets },
  'check-own-keys': { cron: '* * * * *', run: checkOwnKeys },
  'check-pending': { cron: '1-59/5 * * * *', run: checkPending },
  'check-ledger': { cron: '*/5 * * * *', run: checkLedger },
  'compare-facts': { cron: '3-59/10 * * * *', run: (context) => compareFacts(context, { hours: 2 }) },
  'compare-facts-daily': { cron: '41 3 * * *', run: (context) => compareFacts(context, { hours: 72 }) },
  'rebuild-facts': { cron: null, run: rebuildFacts },
  'forget-job-runs': { cron: '17 4 * * *', run: forgetOldJobRuns },
  'forget-refused-requests': { cron: '47 4 * * *', run: forgetOldRefusedRequests },
  'forget-saved-responses': { cron: '29 4 * * *', run: forgetOldSavedResponses },
  'forget-webhook-deliveries': { cron: '7 5 * * *', run: forgetOldWebhookDeliveries },
  'forget-routing-turns': { cron: '37 4 * * *', run: forgetOldRoutingTurns },
  'forget-ended-sessions': { cron: '57 4 * * *', run: forgetOldSessions },
  'drop-old-facts': { cron: '13 5 * * *', run: dropOldFacts },
  'seal-days': { cron: '4-59/5 * * * *', run: sealDays },
  'compare-cells': { cron: '37 * * * *', run: compareCells },
  'retire-media': { cron: '* * * * *', run: retireMedia },
  'sweep-media': { cron: '23 * * * *', run: sweepMedia },
  'forget-past-limit-pools': { cron: '53 4 * * *', run: forgetPastLimitPools },
};

export const JOBS = JOB_NAMES.map((name) => ({ name, ...SCHEDULED[name] }));

export interface Schedule {
  /** Starts no further run, and waits for the one that is running. */
  stop(): Promise<void>;
}

export function startSchedule(context: JobContext, machine: string, jobs: readonly Job[] = JOBS): Schedule {
  const running = new Set<Promise<unknown>>();
  const tasks: ScheduledTask[] = jobs.flatMap((job) => {
    if (job.cron === null) return [];
    const run = async (dueAtMs: number): Promise<void> => {
      const finished = runDueJob(context, job, { dueAtMs, machine });
      running.add(finished);
      await finished.finally(() => running.delete(finished));
    };
    return [
      createTask(job.cron, ({ date }) => run(date.getTime()), {
        name: job.name,
        timezone: 'UTC',
        noOverlap: true,
        suppressMissedWarning: true,
        logger: quiet(context),
      }),
    ];
  });
  for (const task of tasks) void task.start();
  return {
    async stop() {
      for (const task of tasks) await task.destroy();
      await Promise.all(running);
    },
  };
}

/** The next time at which a job is due; null: it runs only when it is requested. */
export function nextDueTime({ name, cron }: Job): Date | null {
  if (cron === null) return null;
  return createTask(cron, () => undefined, { name, timezone: 'UTC' }).getNextRuns(1)[0] ?? null;
}

/**
 * Runs a job for a due time, unless another process has claimed it. Never throws: a failed run is recorded and logged.
 */
export async function runDueJob(
  context: JobContext,
  job: Job,
  due: { dueAtMs: number; machine: string },
): Promise<'ran' | 'failed' | 'claimed_elsewhere' | 'not_claimed'> {
  let id: string | null;
  try {
    // Uses the second of the cron expression, so that machines whose timers differ a little claim the same time.
    id = await claimJobRun(context.postgres, {
      name: job.name,
      dueAtMs: Math.floor(due.dueAtMs / 1000) * 1000,
      machine: due.machine,
    });
  } catch (error) {
    context.log.error({ err: error, job: job.name }, 'job: could not be claimed');
    return 'not_claimed';
  }
  return id === null ? 'claimed_elsewhere' : runClaimedJob(context, job, id);
}

/** Runs a job that this process has claimed, and records the result. Never throws. */
export async function runClaimedJob(
  context: JobContext,
  job: Pick<Job, 'name' | 'run'>,
  id: string,
): Promise<'ran' | 'failed'> {
  const { postgres, clock } = context;
  const log = context.log.child({ job: job.name });
  const startedMs = clock.monotonicMs();
  let details: JobResult | null = null;
  let failure: string | null = null;
  try {
    details = await job.run({ ...context, log });
  } catch (error) {
    failure = error instanceof Error ? error.message : 'failed without an error';
    log.error({ err: error }, 'job: failed');
  }
  const durationMs = Math.round(clock.monotonicMs() - startedMs);
  try {
    await finishJobRun(postgres, { id, error: failure, details: { ...details, durationMs } });
  } catch (error) {
    log.error({ err: error }, 'job: its end could not be recorded');
  }
  return failure === null ? 'ran' : 'failed';
}

/** Passes messages of the cron library to our log. */
function quiet({ log }: JobContext) {
  const text = (message: string | Error): string => (message instanceof Error ? message.message : message);
  return {
    debug: () => {},
    info: () => {},
    warn: (message: string) => log.warn(message),
    error: (message: string | Error, error?: Error) => log.error({ err: error ?? message }, text(message)),
  };
}
