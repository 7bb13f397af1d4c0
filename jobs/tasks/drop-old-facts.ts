// Job: drops facts that are older than FACTS_RETENTION_DAYS, by whole months. The ledger keeps what was charged.

import { DAY_MS } from '../../src/platform/durations.ts';
import { daysOfMonths, dropFactMonths, findFactMonthsBefore } from '../../src/storage/clickhouse/fact-partitions.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

export async function dropOldFacts(context: JobContext): Promise<JobResult> {
  const { clickhouse, sealedDays, factsRetentionDays, clock, log } = context;
  if (factsRetentionDays === null) return { dropped: [] };
  const dropped = await findFactMonthsBefore(clickhouse(), clock.nowMs() - factsRetentionDays * DAY_MS);
  if (dropped.length === 0) return { dropped };
  const drop = (): Promise<void> => dropFactMonths(clickhouse(), dropped);
  await (sealedDays()?.whileOpen(daysOfMonths(dropped), drop) ?? drop());
  log.info({ months: dropped }, 'facts: old months dropped');
  return { dropped };
}
