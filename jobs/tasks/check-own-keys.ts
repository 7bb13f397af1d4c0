// Job: gateways are told of own keys about which providers are to be asked, and keys show when they were used last.
// jobs itself opens no own key.

import { announceKeysDue } from '../../src/storage/postgres/own-keys/keys-to-check.ts';
import { recordLastUses } from '../../src/storage/postgres/own-keys/own-key-usage.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

/** Longer than posting is behind nearly always; what is posted later shows with the next use. */
const LAST_MINUTES = 15;

export async function checkOwnKeys({ postgres }: JobContext): Promise<JobResult> {
  await recordLastUses(postgres, LAST_MINUTES);
  return { due: await announceKeysDue(postgres) };
}
