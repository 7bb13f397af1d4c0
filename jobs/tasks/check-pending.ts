// Job: raises an alarm for executions that are pending for longer than an execution can be under way
// (src/storage/postgres/ledger/pending-executions.ts has the rule). If their machine is gone for ever, an operator ends
// its epoch with `tollgate epoch abandon`.

import { readPendingExecutions } from '../../src/storage/postgres/ledger/pending-executions.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

export async function checkPending({ postgres, log }: JobContext): Promise<JobResult> {
  const { count, oldestSeconds, late } = await readPendingExecutions(postgres);
  for (const epoch of late) log.error(epoch, 'executions are pending for longer than the rule allows');
  return {
    pending: count,
    oldestSeconds: Math.round(oldestSeconds),
    late,
    drift: late.reduce((sum, epoch) => sum + epoch.count, 0),
  };
}
