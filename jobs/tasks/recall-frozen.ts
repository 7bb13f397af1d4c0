// Job: credit of frozen wallets that gateways still have is called back, so that what comes free when a long request
// ends is not spent after all.

import { recallFrozen } from '../../src/storage/postgres/ledger/payer-wallets.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

export async function recallFrozenWallets({ postgres }: JobContext): Promise<JobResult> {
  return { recalled: await recallFrozen(postgres) };
}
