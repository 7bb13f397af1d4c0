// Finds what can be removed of uploaded files: reservations of uploads whose process died, bytes of deleted rows, and
// objects that never got a row.

import type { PostgresClient } from '../pool.ts';

/**
 * Gives back the reservations of uploads that no process works on any more. Returns how many. Quotas are locked in
 * order of organization, which every transaction keeps. Rows that another process has locked are left to it.
 */
export async function expireReservations(postgres: PostgresClient): Promise<number> {
  const { rows } = await postgres.query<{ expired: number }>(
    `WITH gone AS (
       DELETE FROM media_reservations WHERE id IN (
         SELECT id FROM media_reservations WHERE expires_at < now() FOR UPDATE SKIP LOCKED
       ) RETURNING organization_id, bytes
     ), sums AS (
       SELECT organization_id, sum(bytes) AS bytes, count(*) AS uploads FROM gone GROUP BY organization_id
     ), locked AS (
       SELECT organization_id FROM media_quotas
        WHERE organization_id IN (SELECT organization_id FROM sums) ORDER BY organization_id FOR UPDATE
     ), given AS (
       UPDATE media_quotas q SET reserved_bytes = q.reserved_bytes - sums.bytes
         FROM sums JOIN locked USING (organization_id)
        WHERE q.organization_id = locked.organization_id RETURNING sums.uploads
     )
     SELECT coalesce(sum(uploads), 0)::integer AS expired FROM given`,
  );
  return rows[0]?.expired ?? 0;
}

/** Ids of deleted objects whose bytes may still be there, oldest first. */
export async function listRemovals(postgres: PostgresClient, max: number): Promise<readonly string[]> {
  const { rows } = await postgres.query<{ id: string }>('SELECT id FROM media_removals ORDER BY since LIMIT $1', [max]);
  return rows.map(({ id }) => id);
}

export async function forgetRemovals(postgres: PostgresClient, ids: readonly string[]): Promise<void> {
  await postgres.query('DELETE FROM media_removals WHERE id = ANY($1::uuid[])', [ids]);
}

/** Returns which of these ids have neither a row nor a reservation. Such an object can get neither any more. */
export async function listUnowned(postgres: PostgresClient, ids: readonly string[]): Promise<readonly string[]> {
  const { rows } = await postgres.query<{ id: string }>(
    `SELECT id FROM unnest($1::uuid[]) AS found (id)
      WHERE NOT EXISTS (SELECT FROM media_objects o WHERE o.id = found.id)
        AND NOT EXISTS (SELECT FROM media_reservations r WHERE r.id = found.id)`,
    [ids],
  );
  return rows.map(({ id }) => id);
}

/** At most `max` ids of objects in ascending order, greater than `after` and created before `before`. */
export async function listObjectIds(
  postgres: PostgresClient,
  { after, before, max }: { readonly after: string; readonly before: Date; readonly max: number },
): Promise<readonly string[]> {
  const { rows } = await postgres.query<{ id: string }>(
    'SELECT id FROM media_objects WHERE id > $1 AND created_at < $2 ORDER BY id LIMIT $3',
    [after, before, max],
  );
  return rows.map(({ id }) => id);
}

/** Records the stored bytes of each organization for today, also of those that upload nothing today. */
export async function recordStored(postgres: PostgresClient): Promise<void> {
  await postgres.query(
    `INSERT INTO media_usage AS u (organization_id, day, stored_bytes_max)
     SELECT organization_id, (now() AT TIME ZONE 'UTC')::date, stored_bytes
       FROM media_quotas WHERE stored_bytes > 0 ORDER BY organization_id
     ON CONFLICT (organization_id, day) DO UPDATE
       SET stored_bytes_max = greatest(u.stored_bytes_max, excluded.stored_bytes_max)`,
  );
}
