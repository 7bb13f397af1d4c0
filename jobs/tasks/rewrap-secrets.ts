// Job: moves every stored secret to the present MASTER_KEY, so that the previous one can be given up. `tollgate
// master-key status` counts the secrets that are left.

import { rewrapSecrets } from '../../src/storage/postgres/sealed-secrets.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** A secret that no configured key can open is left as it is, and logged. */
export async function rewrapStoredSecrets({ postgres, box, log }: JobContext): Promise<JobResult> {
  const { rewrapped, unreadable } = await rewrapSecrets(postgres, box);
  if (rewrapped > 0) log.info({ rewrapped }, 'secrets were moved to the present master key');
  if (unreadable > 0) log.warn({ unreadable }, 'secrets are stored under a master key that is not given');
  return { rewrapped, unreadable };
}
