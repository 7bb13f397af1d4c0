// Job: revokes the leases of frozen wallets, so that credit which becomes free when a long request ends is not spent.

import { recallFrozen } from '../../src/storage/postgres/ledger/payer-wallets.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

export async function recallFrozenWallets({ postgres }: JobContext): Promise<JobResult> {
  return { recalled: await recallFrozen(postgres) };
}
