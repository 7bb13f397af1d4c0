// Job: what was counted under a budget's past periods, and under limits that are gone, is forgotten once nothing of it
// is lent.

import { forgetLimitPools } from '../../src/storage/postgres/limits/limit-leases.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** Past periods are kept for a while, for people who look. */
const KEPT_DAYS = 7;
const DAY_MS = 86_400_000;

export async function forgetPastLimitPools({ postgres, clock }: JobContext): Promise<JobResult> {
  return { forgotten: await forgetLimitPools(postgres, new Date(clock.nowMs() - KEPT_DAYS * DAY_MS)) };
}
