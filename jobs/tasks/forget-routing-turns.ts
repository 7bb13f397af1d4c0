// Job: the route of a human turn is remembered for a month; who goes on with an older conversation begins it anew as
// far as routing is concerned.

import { DAY_MS } from '../../src/platform/durations.ts';
import { forgetTurns } from '../../src/storage/postgres/routing/turns.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const KEPT_DAYS = 30;

export async function forgetOldRoutingTurns({ postgres, clock }: JobContext): Promise<JobResult> {
  return { forgotten: await forgetTurns(postgres, new Date(clock.nowMs() - KEPT_DAYS * DAY_MS)) };
}
