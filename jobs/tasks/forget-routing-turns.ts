// Job: deletes the stored routes of human turns after a month. Routing treats an older conversation that goes on as a
// new one.

import { DAY_MS } from '../../src/platform/durations.ts';
import { forgetTurns } from '../../src/storage/postgres/routing/turns.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const KEPT_DAYS = 30;

export async function forgetOldRoutingTurns({ postgres, clock }: JobContext): Promise<JobResult> {
  return { forgotten: await forgetTurns(postgres, new Date(clock.nowMs() - KEPT_DAYS * DAY_MS)) };
}
