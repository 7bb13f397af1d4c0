// Job: resolves the executions that closed epochs left open, by the rule in src/storage/postgres/ledger/epochs.ts.
// Shipping does the same when it closes an epoch; this job does it where shipping died between the two steps.

import { factOf } from '../../src/storage/clickhouse/facts.ts';
import { resolveAllPending } from '../../src/storage/postgres/ledger/epochs.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

export async function resolvePendingExecutions({ postgres, facts, clock, log }: JobContext): Promise<JobResult> {
  let resolved = 0;
  for await (const records of resolveAllPending(postgres, clock.nowMs())) {
    resolved += records.length;
    log.info({ resolved: records.length }, 'open executions of closed epochs were resolved');
    await facts.insert(records.map(factOf), `resolved:${records[0]?.id}:${records.length}`);
  }
  return { resolved };
}
