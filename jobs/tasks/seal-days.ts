// Job: days that are over are sealed (src/storage/clickhouse/sealed-days.ts), so that reports need not read their
// facts.

import { HOUR_MS } from '../../src/platform/durations.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** By then a day's facts have come, and have been compared with the ledger. A later one opens the day again. */
const SETTLING_MS = 3 * HOUR_MS;
/** A second each for 100,000 facts; a process that stops waits for the run. */
const DAYS_PER_RUN = 10;

export async function sealDays({ sealedDays, clock }: JobContext): Promise<JobResult> {
  return { sealed: (await sealedDays()?.sealBefore(clock.nowMs() - SETTLING_MS, DAYS_PER_RUN)) ?? 0 };
}
