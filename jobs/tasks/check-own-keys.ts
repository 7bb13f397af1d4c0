// Job: gateways are told of own keys about which providers are to be asked, keys show when they were used last, and
// secrets that a rotation has replaced are erased once their overlap is over. jobs itself opens no own key.

import { announceKeysDue } from '../../src/storage/postgres/own-keys/keys-to-check.ts';
import { recordLastUses } from '../../src/storage/postgres/own-keys/own-key-usage.ts';
import { erasePreviousSecrets } from '../../src/storage/postgres/own-keys/own-keys.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** Longer than posting is behind nearly always; what is posted later shows with the next use. */
const LAST_MINUTES = 15;

export async function checkOwnKeys({ postgres }: JobContext): Promise<JobResult> {
  await recordLastUses(postgres, LAST_MINUTES);
  return { erased: await erasePreviousSecrets(postgres), due: await announceKeysDue(postgres) };
}
