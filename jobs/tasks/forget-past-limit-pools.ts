// Job: deletes the pools of past budget periods and of removed limits once no part of them is leased.

import { DAY_MS } from '../../src/platform/durations.ts';
import { forgetLimitPools } from '../../src/storage/postgres/limits/limit-leases.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** Past periods are kept for a while so that people can look at them. */
const KEPT_DAYS = 7;

export async function forgetPastLimitPools({ postgres, clock }: JobContext): Promise<JobResult> {
  return { forgotten: await forgetLimitPools(postgres, new Date(clock.nowMs() - KEPT_DAYS * DAY_MS)) };
}
