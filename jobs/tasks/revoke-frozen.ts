// Job: revokes the leases of frozen wallets, so that credit which a long request releases at its end is not spent.

import { revokeFrozen } from '../../src/storage/postgres/ledger/payer-wallets.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

export async function revokeFrozenWallets({ postgres }: JobContext): Promise<JobResult> {
  return { revoked: await revokeFrozen(postgres) };
}
