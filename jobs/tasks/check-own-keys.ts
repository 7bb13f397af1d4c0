// Job: notifies gateways of own keys that must be checked with their provider, records when keys were last used, and
// erases secrets that a rotation replaced once their overlap is over. jobs itself opens no own key.

import { announceKeysDue } from '../../src/storage/postgres/own-keys/keys-to-check.ts';
import { recordLastUses } from '../../src/storage/postgres/own-keys/own-key-usage.ts';
import { erasePreviousSecrets } from '../../src/storage/postgres/own-keys/own-keys.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** Posting is nearly always less behind than this. A use that is posted later shows with the key's next use. */
const LAST_MINUTES = 15;

export async function checkOwnKeys({ postgres }: JobContext): Promise<JobResult> {
  await recordLastUses(postgres, LAST_MINUTES);
  return { erased: await erasePreviousSecrets(postgres), due: await announceKeysDue(postgres) };
}
