// Job: deletes uploaded files that have reached their retention, removes the bytes of deleted files, and gives back the
// reservations of uploads whose process died.

import { DAY_MS } from '../../src/platform/durations.ts';
import { retireMediaObjects } from '../../src/storage/postgres/media/media-objects.ts';
import {
  expireReservations,
  forgetRemovals,
  listRemovals,
  recordStored,
} from '../../src/storage/postgres/media/sweep.ts';
import type { JobContext, JobResult, MediaOfJobs } from '../scheduling/job.ts';

const BATCH = 500;
/** The next run does the rest. */
const BATCHES_MAX = 200;

export async function retireMedia(context: JobContext): Promise<JobResult> {
  const { media, postgres } = context;
  if (media === null) return {};
  const retired = await retireOld(context, media);
  const removed = await removeBytes(context, media);
  const expired = await expireReservations(postgres);
  await recordStored(postgres);
  return { retired, removed, expired };
}

async function retireOld({ postgres, clock }: JobContext, { retentionDays }: MediaOfJobs): Promise<number> {
  if (retentionDays === null) return 0;
  const before = new Date(clock.nowMs() - retentionDays * DAY_MS);
  let retired = 0;
  for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
    const count = await retireMediaObjects(postgres, before, BATCH);
    retired += count;
    if (count < BATCH) break;
  }
  return retired;
}

/** An object is forgotten only once its bytes are gone. */
async function removeBytes({ postgres }: JobContext, { objects }: MediaOfJobs): Promise<number> {
  let removed = 0;
  for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
    const ids = await listRemovals(postgres, BATCH);
    for (const id of ids) await objects.remove(id);
    await forgetRemovals(postgres, ids);
    removed += ids.length;
    if (ids.length < BATCH) break;
  }
  return removed;
}
