// Tracks an upload in the database. A part of the organization's quota is reserved before a byte is kept. The
// reservation becomes the row of an object, or is given back.
//
//   reserve ──► (bytes are received, synced, kept under the reservation's id) ──► finish: row, quota, reservation gone
//      └──────► release: the reservation is gone, and an object under its id has no owner
//
// An object whose id is neither in media_reservations nor in media_objects has no owner and can get none any more,
// because finish needs the reservation. That is what lets the sweep remove it.

import type { MediaObject, ReceivedFile } from '../../../domain/media/media-object.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { MEDIA_COLUMNS, type MediaObjectRow, toMediaObject } from './media-objects.ts';

export interface ReserveParams {
  /** The id of the future object. */
  readonly id: string;
  readonly organizationId: string;
  /** The most that the file can have. */
  readonly bytes: number;
  /** The most bytes of all files of the organization. */
  readonly organizationBytesMax: number;
  readonly lifetimeMs: number;
}

/** The free amount may change while this waits for the row, so it is computed from the locked row. */
const RESERVE = {
  name: 'reserve_media',
  text: `WITH free AS (
           SELECT organization_id, least($3::bigint, $4::bigint - stored_bytes - reserved_bytes) AS bytes
             FROM media_quotas
            WHERE organization_id = $2 AND stored_bytes + reserved_bytes < $4::bigint
              FOR UPDATE
         ), taken AS (
           UPDATE media_quotas q SET reserved_bytes = q.reserved_bytes + free.bytes
             FROM free WHERE q.organization_id = free.organization_id
           RETURNING free.bytes
         )
         INSERT INTO media_reservations (id, organization_id, bytes, expires_at)
         SELECT $1, $2, bytes, now() + $5::bigint * interval '1 millisecond' FROM taken
         RETURNING bytes`,
};

/** Returns how many bytes the file may have, which is less than `bytes` if less is free; null: nothing is free. */
export async function reserveMedia(
  postgres: PostgresClient,
  { id, organizationId, bytes, organizationBytesMax, lifetimeMs }: ReserveParams,
): Promise<number | null> {
  await postgres.query('INSERT INTO media_quotas (organization_id) VALUES ($1) ON CONFLICT DO NOTHING', [
    organizationId,
  ]);
  const { rows } = await postgres.query<{ bytes: string }>(RESERVE, [
    id,
    organizationId,
    bytes,
    organizationBytesMax,
    lifetimeMs,
  ]);
  return rows[0] === undefined ? null : Number(rows[0].bytes);
}

const RELEASE = {
  name: 'release_media',
  text: `WITH gone AS (DELETE FROM media_reservations WHERE id = $1 RETURNING organization_id, bytes)
         UPDATE media_quotas q SET reserved_bytes = q.reserved_bytes - gone.bytes
           FROM gone WHERE q.organization_id = gone.organization_id`,
};

/** Gives a reservation back. Does nothing if it was released or finished already. */
export async function releaseMedia(postgres: PostgresClient, id: string): Promise<void> {
  await postgres.query(RELEASE, [id]);
}

export interface FinishParams {
  readonly id: string;
  readonly organizationId: string;
  readonly apiKeyId: string | null;
  readonly file: ReceivedFile;
}

/** `isDeduped`: the organization had these bytes already, and `object` is the earlier one. */
export interface FinishedUpload {
  readonly object: MediaObject;
  readonly isDeduped: boolean;
}

/** Finishes an upload of bytes that the organization already has. null: it has them not, and the reservation stays. */
export async function finishDuplicate(
  postgres: Postgres,
  { id, organizationId, file }: FinishParams,
): Promise<FinishedUpload | null> {
  const found = await postgres.query('SELECT 1 FROM media_objects WHERE organization_id = $1 AND sha256 = $2', [
    organizationId,
    file.sha256,
  ]);
  if (found.rowCount === 0) return null;
  return postgres.transaction(async (client) => {
    const { rows } = await client.query<MediaObjectRow>(
      `UPDATE media_objects t SET uploaded_at = now() WHERE organization_id = $1 AND sha256 = $2
       RETURNING ${MEDIA_COLUMNS}`,
      [organizationId, file.sha256],
    );
    if (rows[0] === undefined) return null;
    await releaseMedia(client, id);
    await countUpload(client, organizationId, file.bytes, true);
    return { object: toMediaObject(rows[0]), isDeduped: true };
  });
}

/**
 * Finishes an upload whose bytes are kept under its id. null: the reservation has expired, so the object must not be
 * kept.
 */
export async function finishUpload(postgres: Postgres, params: FinishParams): Promise<FinishedUpload | null> {
  const { id, organizationId, apiKeyId, file } = params;
  return postgres.transaction(async (client) => {
    const reserved = await client.query<{ bytes: string }>(
      'DELETE FROM media_reservations WHERE id = $1 AND organization_id = $2 RETURNING bytes',
      [id, organizationId],
    );
    const reservedBytes = reserved.rows[0]?.bytes;
    if (reservedBytes === undefined) return null;
    const { rows } = await client.query<MediaObjectRow>(
      `INSERT INTO media_objects AS t (id, organization_id, api_key_id, sha256, bytes, content_type)
       VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (organization_id, sha256) DO UPDATE SET uploaded_at = now()
       RETURNING ${MEDIA_COLUMNS}`,
      [id, organizationId, apiKeyId, file.sha256, file.bytes, file.contentType],
    );
    if (rows[0] === undefined) throw new Error('the row of an upload was not stored');
    const object = toMediaObject(rows[0]);
    const isDeduped = object.id !== id;
    await client.query(
      `UPDATE media_quotas SET reserved_bytes = reserved_bytes - $2, stored_bytes = stored_bytes + $3
        WHERE organization_id = $1`,
      [organizationId, reservedBytes, isDeduped ? 0 : file.bytes],
    );
    await countUpload(client, organizationId, file.bytes, isDeduped);
    return { object, isDeduped };
  });
}

async function countUpload(
  client: PostgresClient,
  organizationId: string,
  bytes: number,
  isDeduped: boolean,
): Promise<void> {
  await client.query(
    `INSERT INTO media_usage AS u (organization_id, day, uploads, deduped_uploads, uploaded_bytes, stored_bytes_max)
     SELECT organization_id, (now() AT TIME ZONE 'UTC')::date, 1, $2, $3, stored_bytes
       FROM media_quotas WHERE organization_id = $1
     ON CONFLICT (organization_id, day) DO UPDATE SET uploads = u.uploads + 1,
       deduped_uploads = u.deduped_uploads + excluded.deduped_uploads,
       uploaded_bytes = u.uploaded_bytes + excluded.uploaded_bytes,
       stored_bytes_max = greatest(u.stored_bytes_max, excluded.stored_bytes_max)`,
    [organizationId, isDeduped ? 1 : 0, bytes],
  );
}
