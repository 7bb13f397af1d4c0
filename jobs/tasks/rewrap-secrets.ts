// Job: every stored secret is moved to the present MASTER_KEY, so that the one before it can be given up
// (`tollgate master-key status` counts).

import { rewrapSecrets } from '../../src/storage/postgres/sealed-secrets.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** What cannot be read under any key that is given is left as it is, and told. */
export async function rewrapStoredSecrets({ postgres, box, log }: JobContext): Promise<JobResult> {
  const { rewrapped, unreadable } = await rewrapSecrets(postgres, box);
  if (rewrapped > 0) log.info({ rewrapped }, 'secrets were moved to the present master key');
  if (unreadable > 0) log.warn({ unreadable }, 'secrets are stored under a master key that is not given');
  return { rewrapped, unreadable };
}
