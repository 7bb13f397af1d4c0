// Job: notifies gateways of frozen wallets once more, in case one of them missed the first notification.

import { revokeFrozen } from '../../src/storage/postgres/ledger/payer-wallets.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

export async function revokeFrozenWallets({ postgres }: JobContext): Promise<JobResult> {
  return { revoked: await revokeFrozen(postgres) };
}
