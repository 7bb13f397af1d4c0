// Job: seals the days up to the last hour that is over (src/storage/clickhouse/sealed-days.ts), so that reports need
// not read their facts.

import { MINUTE_MS } from '../../src/platform/durations.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** Nearly all facts of an hour arrive within this time after it. A later fact opens its day again. */
const SETTLING_MS = 15 * MINUTE_MS;
/**
 * The job seals for at most this long, and runs every five minutes (jobs/scheduling/schedule.ts). After an update, all
 * days may have to be sealed anew; ten million facts of 92 days take less than this.
 */
const RUN_MS = 120_000;

export async function sealDays({ sealedDays, clock }: JobContext): Promise<JobResult> {
  const endMs = clock.monotonicMs() + RUN_MS;
  const isOver = (): boolean => clock.monotonicMs() >= endMs;
  return { sealed: (await sealedDays()?.sealBefore(clock.nowMs() - SETTLING_MS, isOver)) ?? 0 };
}
