// Job: forgets after three months which provider keeps a saved response. Providers keep responses for less time.

import { DAY_MS } from '../../src/platform/durations.ts';
import { forgetSavedResponses } from '../../src/storage/postgres/saved/saved-responses.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const KEPT_DAYS = 90;

export async function forgetOldSavedResponses({ postgres, clock }: JobContext): Promise<JobResult> {
  return { forgotten: await forgetSavedResponses(postgres, new Date(clock.nowMs() - KEPT_DAYS * DAY_MS)) };
}
