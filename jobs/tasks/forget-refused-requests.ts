// Job: deletes the records of refused requests after a month. They contain nothing about money.

import { DAY_MS } from '../../src/platform/durations.ts';
import { forgetRefusedRequests } from '../../src/storage/postgres/ledger/generations.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const KEPT_DAYS = 30;

export async function forgetOldRefusedRequests({ postgres, clock }: JobContext): Promise<JobResult> {
  return { forgotten: await forgetRefusedRequests(postgres, new Date(clock.nowMs() - KEPT_DAYS * DAY_MS)) };
}
