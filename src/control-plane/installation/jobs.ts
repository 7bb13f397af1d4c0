// The scheduled jobs of the installation: how their last runs ended, the request to run one now, and the drift that
// they found.

import { z } from 'zod';
import { JOB_NAMES, type JobName } from '../../domain/jobs/job-names.ts';
import type { JobRun } from '../../domain/jobs/job-run.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import { answerOf } from '../answers.ts';
import { showMoment, showMomentOrNull, shownMoment } from '../identity/fields.ts';
import { actorOf, idOf } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import type { InstallationStore } from './installation-store.ts';

const run = z
  .object({
    machine: z.string().meta({ description: 'Empty until a jobs process takes the run.' }),
    started_at: shownMoment,
    finished_at: shownMoment.nullable().meta({ description: 'null: it is running, or its process died.' }),
    error: z.string().nullable(),
    details: z.record(z.string(), z.unknown()).nullable(),
  })
  .meta({ id: 'JobRun' });

function showRun({ machine, startedAtMs, finishedAtMs, error, details }: JobRun): z.output<typeof run> {
  return {
    machine,
    started_at: showMoment(startedAtMs),
    finished_at: showMomentOrNull(finishedAtMs),
    error,
    details: details === null ? null : { ...details },
  };
}

export function listJobs(store: InstallationStore): Operation {
  return operation({
    id: 'listJobs',
    summary: 'Lists the scheduled jobs, with the last run of each and the last that succeeded.',
    answer: z.object({
      data: z.array(
        z
          .object({ name: z.string(), last_run: run.nullable(), last_success_at: shownMoment.nullable() })
          .meta({ id: 'Job' }),
      ),
    }),
    run: async () => {
      const [last, succeeded] = await Promise.all([store.lastRuns('any'), store.lastRuns('succeeded')]);
      return {
        data: JOB_NAMES.map((name) => {
          const found = last.find((one) => one.name === name);
          const success = succeeded.find((one) => one.name === name);
          return {
            name,
            last_run: found === undefined ? null : showRun(found),
            last_success_at: showMomentOrNull(success?.finishedAtMs ?? null),
          };
        }),
      };
    },
  });
}

export function runJob(store: InstallationStore): Operation {
  return operation({
    id: 'runJob',
    summary: 'Lets the jobs process run a job now.',
    answer: answerOf(z.object({ run_id: z.string() })),
    status: 201,
    run: async ({ principal, ids }) => {
      const name = JOB_NAMES.find((one) => one === idOf(ids, 'jobName'));
      if (name === undefined) return { kind: 'not_found' };
      return { data: { run_id: await store.requestRun(actorOf(principal), name) } };
    },
  });
}

export function getJobRun(store: InstallationStore): Operation {
  return operation({
    id: 'getJobRun',
    summary: 'Shows one run of a job.',
    answer: answerOf(run),
    run: async ({ ids }) => {
      const runId = idOf(ids, 'runNumber');
      const found = /^\d{1,18}$/.test(runId) ? await store.readRun(runId) : null;
      return found === null || found.name !== idOf(ids, 'jobName') ? { kind: 'not_found' } : { data: showRun(found) };
    },
  });
}

export function listEpochs(store: InstallationStore): Operation {
  return operation({
    id: 'listEpochs',
    summary: 'Lists the processes that hold credit or have something to ship, the oldest first.',
    answer: z.object({
      data: z.array(
        z
          .object({
            epoch: z.int(),
            machine: z.string(),
            kind: z.string(),
            pid: z.int(),
            started_at: shownMoment,
            last_posted_at: shownMoment.nullable(),
            leased: z.string().meta({ description: 'USD as a decimal string.' }),
            pending: z.int(),
          })
          .meta({ id: 'Epoch' }),
      ),
    }),
    run: async () => ({
      data: (await store.openEpochs()).map((one) => ({
        epoch: one.epoch,
        machine: one.machine,
        kind: one.kind,
        pid: one.pid,
        started_at: showMoment(one.startedAtMs),
        last_posted_at: showMomentOrNull(one.lastPostedAtMs),
        leased: formatUsdString(one.leased),
        pending: one.pending,
      })),
    }),
  });
}

/** The jobs that count what differs (`details.drift`), and what each compares. */
const COMPARING: Readonly<Partial<Record<JobName, string>>> = {
  'check-ledger': 'ledger',
  'compare-facts': 'facts',
  'compare-facts-daily': 'facts_of_three_days',
  'compare-cells': 'cells',
  'sweep-media': 'media',
};

export function getDrift(store: InstallationStore): Operation {
  return operation({
    id: 'getDrift',
    summary:
      'Shows what the books, the facts, their cells and the files were last found to differ by, and what is pending.',
    answer: answerOf(
      z
        .object({
          compared: z.array(
            z.object({
              what: z.string(),
              job: z.string(),
              drift: z.number().nullable().meta({ description: 'null: the job never ran to its end.' }),
              checked_at: shownMoment.nullable(),
              details: z.record(z.string(), z.unknown()).nullable(),
            }),
          ),
          pending: z.object({
            executions: z.int(),
            oldest_seconds: z.number(),
            late: z.int().meta({ description: 'Pending for longer than the rule allows.' }),
          }),
        })
        .meta({ id: 'Drift' }),
    ),
    run: async () => {
      const [runs, { count, oldestSeconds, late }] = await Promise.all([store.lastRuns('succeeded'), store.pending()]);
      const compared = Object.entries(COMPARING).map(([job, what]) => {
        const found = runs.find(({ name }) => name === job);
        const drift = found?.details?.['drift'];
        return {
          what,
          job,
          drift: typeof drift === 'number' ? drift : found === undefined ? null : 0,
          checked_at: showMomentOrNull(found?.finishedAtMs ?? null),
          details: found?.details == null ? null : { ...found.details },
        };
      });
      return { data: { compared, pending: { executions: count, oldest_seconds: oldestSeconds, late } } };
    },
  });
}
