// Job: compares each sealed day (src/storage/clickhouse/sealed-days.ts) with its facts once a day. Where they differ,
// reports read the facts until the day is sealed again.

import { HOUR_MS } from '../../src/platform/durations.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const HOURS = 24;

/** Runs every hour (jobs/scheduling/schedule.ts), for one of 24 days each time. */
export async function compareCells({ sealedDays, clock, log }: JobContext): Promise<JobResult> {
  const hour = Math.floor(clock.nowMs() / HOUR_MS) % HOURS;
  const { compared, damaged } = (await sealedDays()?.compare((day) => day % HOURS === hour)) ?? NOTHING;
  if (damaged.length > 0)
    log.error({ damaged }, 'sealed days: cells differed from the facts; the days are sealed anew');
  return { compared, damaged, drift: damaged.length };
}
const NOTHING = { compared: 0, damaged: [] };
