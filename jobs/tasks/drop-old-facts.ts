// Job: facts older than the operator keeps them (FACTS_RETENTION_DAYS) are dropped, by whole months. The ledger keeps
// what was charged.

import { DAY_MS } from '../../src/platform/durations.ts';
import { dropFactMonthsBefore } from '../../src/storage/clickhouse/fact-partitions.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

export async function dropOldFacts({ clickhouse, factsRetentionDays, clock, log }: JobContext): Promise<JobResult> {
  if (factsRetentionDays === null) return { dropped: [] };
  const dropped = await dropFactMonthsBefore(clickhouse(), clock.nowMs() - factsRetentionDays * DAY_MS);
  if (dropped.length > 0) log.info({ months: dropped }, 'facts: old months dropped');
  return { dropped };
}
