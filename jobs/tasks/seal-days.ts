// Job: what is over of days is sealed (src/storage/clickhouse/sealed-days.ts), so that reports need not read its facts.

import { MINUTE_MS } from '../../src/platform/durations.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** By then nearly all facts of an hour have come. A later one opens its day again. */
const SETTLING_MS = 15 * MINUTE_MS;
/**
 * Of every five minutes (jobs/scheduling/schedule.ts). Ten million facts of 92 days are sealed in less, all after an
 * update.
 */
const RUN_MS = 120_000;

export async function sealDays({ sealedDays, clock }: JobContext): Promise<JobResult> {
  const endMs = clock.monotonicMs() + RUN_MS;
  const isOver = (): boolean => clock.monotonicMs() >= endMs;
  return { sealed: (await sealedDays()?.sealBefore(clock.nowMs() - SETTLING_MS, isOver)) ?? 0 };
}
