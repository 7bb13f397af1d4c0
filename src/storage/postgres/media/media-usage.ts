// Counts uploads, downloads and stored bytes of organizations' files, by day.

import { areUuids } from '../../../domain/identity/names.ts';
import type { MediaUsage } from '../../../domain/media/media-usage.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { NOT_FOUND } from '../identity/change.ts';
import type { PostgresClient } from '../pool.ts';

export interface ServedCount {
  readonly downloads: number;
  readonly bytes: number;
}

/** Adds downloads to the present day. `counts`: by organization. */
export async function recordServed(postgres: PostgresClient, counts: ReadonlyMap<string, ServedCount>): Promise<void> {
  // Every process locks the rows in the same order, so that none deadlocks.
  const all = [...counts].sort(([one], [other]) => (one < other ? -1 : 1));
  await postgres.query(
    `INSERT INTO media_usage AS u (organization_id, day, downloads, served_bytes)
     SELECT organization_id, (now() AT TIME ZONE 'UTC')::date, downloads, bytes
       FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS served (organization_id, downloads, bytes)
     ON CONFLICT (organization_id, day) DO UPDATE SET downloads = u.downloads + excluded.downloads,
       served_bytes = u.served_bytes + excluded.served_bytes`,
    [
      all.map(([organizationId]) => organizationId),
      all.map(([, { downloads }]) => downloads),
      all.map(([, { bytes }]) => bytes),
    ],
  );
}

interface DayRow {
  readonly day: string;
  readonly uploads: string;
  readonly deduped_uploads: string;
  readonly uploaded_bytes: string;
  readonly downloads: string;
  readonly served_bytes: string;
  readonly stored_bytes_max: string;
}

/** `from`, `to`: the first and the last day, both included, each as 2026-11-25. */
export async function readMediaUsage(
  postgres: PostgresClient,
  { organizationId, from, to }: { readonly organizationId: string; readonly from: string; readonly to: string },
): Promise<MediaUsage | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  const totals = await postgres.query<{ files: string; stored_bytes: string; reserved_bytes: string }>(
    `SELECT (SELECT count(*) FROM media_objects WHERE organization_id = o.id) AS files,
        coalesce(q.stored_bytes, 0) AS stored_bytes, coalesce(q.reserved_bytes, 0) AS reserved_bytes
       FROM organizations o LEFT JOIN media_quotas q ON q.organization_id = o.id WHERE o.id = $1`,
    [organizationId],
  );
  const total = totals.rows[0];
  if (total === undefined) return NOT_FOUND;
  const { rows } = await postgres.query<DayRow>(
    `SELECT to_char(day, 'YYYY-MM-DD') AS day, uploads, deduped_uploads, uploaded_bytes, downloads, served_bytes,
        stored_bytes_max
       FROM media_usage u WHERE organization_id = $1 AND u.day BETWEEN $2::date AND $3::date ORDER BY u.day`,
    [organizationId, from, to],
  );
  return {
    files: Number(total.files),
    storedBytes: Number(total.stored_bytes),
    reservedBytes: Number(total.reserved_bytes),
    days: rows.map((row) => ({
      day: row.day,
      uploads: Number(row.uploads),
      dedupedUploads: Number(row.deduped_uploads),
      uploadedBytes: Number(row.uploaded_bytes),
      downloads: Number(row.downloads),
      servedBytes: Number(row.served_bytes),
      storedBytesMax: Number(row.stored_bytes_max),
    })),
  };
}
