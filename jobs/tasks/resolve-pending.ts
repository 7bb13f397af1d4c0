// Job: executions that a closed epoch left open are resolved by the written rule
// (src/storage/postgres/ledger/epochs.ts). Shipping does this when it closes an epoch; this is for what was left when
// it died between the two.

import { factOf } from '../../src/storage/clickhouse/facts.ts';
import { resolvePending } from '../../src/storage/postgres/ledger/epochs.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const BATCH_MAX = 1_000;

export async function resolvePendingExecutions({ postgres, facts, clock, log }: JobContext): Promise<JobResult> {
  let resolved = 0;
  for (;;) {
    const records = await postgres.transaction((client) =>
      resolvePending(client, { nowMs: clock.nowMs(), max: BATCH_MAX }),
    );
    resolved += records.length;
    const [first] = records;
    if (first === undefined) break;
    log.info({ resolved: records.length }, 'open executions of closed epochs were resolved');
    await facts.insert(records.map(factOf), `resolved:${first.id}:${records.length}`);
  }
  return { resolved };
}
