// Job: executions that a closed epoch left open are resolved by the written rule
// (src/storage/postgres/ledger/epochs.ts). Shipping does this when it closes an epoch; this is for what was left when
// it died between the two.

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
