// Job: compares the objects of uploaded files with their rows. An object without a row or a reservation is removed. A
// row without an object is an alarm, since no part of Tollgate leaves one.

import type { ObjectStore } from '../../src/domain/media/object-store.ts';
import { listObjectIds, listUnowned } from '../../src/storage/postgres/media/sweep.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const BATCH = 1_000;
const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const SHOWN_MAX = 20;

export async function sweepMedia(context: JobContext): Promise<JobResult> {
  const { media, log, clock } = context;
  if (media === null) return {};
  const startedAt = new Date(clock.nowMs());
  const present = new Set<string>();
  let swept = 0;
  let batch: { id: string; isStaged: boolean }[] = [];
  for await (const found of media.objects.list()) {
    if (!found.isStaged) present.add(found.id);
    batch.push(found);
    if (batch.length < BATCH) continue;
    swept += await sweepBatch(context, media.objects, batch);
    batch = [];
  }
  swept += await sweepBatch(context, media.objects, batch);
  const missing = await listMissing(context, present, startedAt);
  if (missing.length > 0)
    log.error(
      { media_ids: missing.slice(0, SHOWN_MAX), missing: missing.length },
      'uploaded files have lost their bytes',
    );
  return { objects: present.size, swept, drift: missing.length };
}

async function sweepBatch(
  { postgres }: JobContext,
  objects: ObjectStore,
  batch: readonly { readonly id: string; readonly isStaged: boolean }[],
): Promise<number> {
  const unowned = new Set(
    await listUnowned(
      postgres,
      batch.map(({ id }) => id),
    ),
  );
  for (const { id, isStaged } of batch) {
    if (!unowned.has(id)) continue;
    if (isStaged) await objects.removeStaged(id);
    else await objects.remove(id);
  }
  return unowned.size;
}

/** The ids of rows without an object. Only rows that existed before the objects were listed, and still exist, count. */
async function listMissing({ postgres }: JobContext, present: ReadonlySet<string>, before: Date): Promise<string[]> {
  const missing: string[] = [];
  for (let after = FIRST_ID; ; ) {
    const ids = await listObjectIds(postgres, { after, before, max: BATCH });
    missing.push(...ids.filter((id) => !present.has(id)));
    const last = ids.at(-1);
    if (last === undefined || ids.length < BATCH) break;
    after = last;
  }
  const gone = new Set(await listUnowned(postgres, missing));
  return missing.filter((id) => !gone.has(id));
}
