// Job: checks the ledger. It changes nothing; its findings are for a person.

import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

export async function checkLedger({ postgres, gauges, log }: JobContext): Promise<JobResult> {
  const broken = await findBrokenInvariants(postgres);
  gauges.ledgerDrift.set(broken.length);
  for (const { invariant, found } of broken)
    log.error({ invariant, found }, 'an invariant of the ledger does not hold');
  return { broken, drift: broken.length };
}
