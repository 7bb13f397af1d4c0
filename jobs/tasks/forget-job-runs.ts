// Job: deletes the records of job runs after a month.

import { forgetJobRuns } from '../../src/storage/postgres/job-runs.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const KEPT_DAYS = 31;

export async function forgetOldJobRuns({ postgres }: JobContext): Promise<JobResult> {
  return { forgotten: await forgetJobRuns(postgres, KEPT_DAYS) };
}
