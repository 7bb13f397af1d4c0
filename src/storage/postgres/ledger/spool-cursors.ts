// Reads and moves the cursors of spool segments: up to where each segment was posted, and up to where its facts were
// inserted. Only the statement that posts records moves the posted offset (post-executions.ts).

import type { PostgresClient } from '../pool.ts';

export interface SpoolCursor {
  readonly segment: number;
  readonly postedOffset: number;
  readonly factsOffset: number;
}

export async function readSpoolCursors(postgres: PostgresClient, epoch: number): Promise<SpoolCursor[]> {
  const { rows } = await postgres.query<{ segment: number; posted_offset: string; facts_offset: string }>(
    'SELECT segment, posted_offset::text, facts_offset::text FROM spool_cursors WHERE epoch = $1',
    [epoch],
  );
  return rows.map((row) => ({
    segment: row.segment,
    postedOffset: Number(row.posted_offset),
    factsOffset: Number(row.facts_offset),
  }));
}

export interface FactsProgress {
  readonly epoch: number;
  readonly segment: number;
  readonly toOffset: number;
}

/** Never moves a cursor back: the late answer of an earlier attempt must not undo a later one. */
export async function advanceFactsOffsets(postgres: PostgresClient, progress: readonly FactsProgress[]): Promise<void> {
  await postgres.query(
    {
      name: 'advance_facts_offsets',
      text: `UPDATE spool_cursors AS cursors 
               SET facts_offset = greatest(facts_offset, moved.to_offset), updated_at = now()
             FROM unnest($1::bigint[], $2::integer[], $3::bigint[]) AS moved (epoch, segment, to_offset)
             WHERE cursors.epoch = moved.epoch AND cursors.segment = moved.segment`,
    },
    [
      progress.map((range) => range.epoch),
      progress.map((range) => range.segment),
      progress.map((range) => range.toOffset),
    ],
  );
}

/** To be called after the spool itself was removed, when its cursors have no meaning any more. */
export async function deleteSpoolCursors(postgres: PostgresClient, epoch: number): Promise<void> {
  await postgres.query('DELETE FROM spool_cursors WHERE epoch = $1', [epoch]);
}
