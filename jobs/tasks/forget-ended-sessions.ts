// Job: deletes console sessions and one-time links that ended long ago. The audit log keeps who opened each of them.

import { forgetEndedSessions } from '../../src/storage/postgres/identity/sessions.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const KEPT_DAYS = 30;

export async function forgetOldSessions({ postgres }: JobContext): Promise<JobResult> {
  return { forgotten: await forgetEndedSessions(postgres, KEPT_DAYS) };
}
