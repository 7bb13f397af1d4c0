// Finds, lists and deletes the rows of uploaded files. uploads.ts makes them.

import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import type { MediaObject } from '../../../domain/media/media-object.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { recordAudit } from '../identity/audit.ts';
import { NOT_FOUND } from '../identity/change.ts';
import { PAGE_COLUMNS, PAGE_CONDITION, PAGE_ORDER, readPage } from '../identity/page.ts';
import type { Postgres, PostgresClient } from '../pool.ts';

export interface MediaObjectRow {
  readonly id: string;
  readonly organization_id: string;
  readonly content_type: string;
  readonly bytes: string;
  readonly created_ms: string;
  readonly uploaded_ms: string;
}

export const MEDIA_COLUMNS = `t.id, t.organization_id, t.content_type, t.bytes,
  (extract(epoch FROM t.created_at) * 1000)::bigint AS created_ms,
  (extract(epoch FROM t.uploaded_at) * 1000)::bigint AS uploaded_ms`;

export function toMediaObject(row: MediaObjectRow): MediaObject {
  return {
    id: row.id,
    organizationId: row.organization_id,
    contentType: row.content_type,
    bytes: Number(row.bytes),
    createdAtMs: Number(row.created_ms),
    uploadedAtMs: Number(row.uploaded_ms),
  };
}

const FIND = {
  name: 'find_media_object',
  text: `SELECT ${MEDIA_COLUMNS} FROM media_objects t WHERE t.id = $1 AND t.organization_id = $2`,
};

/** null: the organization has no object with this id. */
export async function findMediaObject(
  postgres: PostgresClient,
  id: string,
  organizationId: string,
): Promise<MediaObject | null> {
  const { rows } = await postgres.query<MediaObjectRow>(FIND, [id, organizationId]);
  return rows[0] === undefined ? null : toMediaObject(rows[0]);
}

const FIND_PUBLIC = {
  name: 'find_public_media_object',
  text: `SELECT ${MEDIA_COLUMNS} FROM media_objects t WHERE t.id = $1 AND NOT EXISTS (
           SELECT FROM wallets w WHERE w.organization_id = t.organization_id AND w.user_id IS NULL AND w.frozen)`,
};

/** Finds an object by its public address; null: it does not exist, or its organization is frozen. */
export async function findPublicMediaObject(postgres: PostgresClient, id: string): Promise<MediaObject | null> {
  const { rows } = await postgres.query<MediaObjectRow>(FIND_PUBLIC, [id]);
  return rows[0] === undefined ? null : toMediaObject(rows[0]);
}

/** In order of their first upload. */
export async function listMediaObjects(
  postgres: PostgresClient,
  { organizationId, ...page }: PageParams & { readonly organizationId: string },
): Promise<Page<MediaObject> | Refused> {
  return readPage(
    postgres,
    page,
    `SELECT ${PAGE_COLUMNS}, ${MEDIA_COLUMNS.replace('t.id, ', '')} FROM media_objects t
      WHERE ${PAGE_CONDITION} AND t.organization_id = $4 ${PAGE_ORDER}`,
    [organizationId],
    (row: MediaObjectRow & { created_us: string }) => toMediaObject(row),
  );
}

/** Removes the row, so that nobody finds the object. The job retire-media removes the bytes (media_removals). */
export async function removeMediaObject(
  postgres: Postgres,
  actor: Actor,
  { organizationId, id }: { readonly organizationId: string; readonly id: string },
): Promise<{ readonly removed: true } | Refused> {
  if (!areUuids(organizationId, id)) return NOT_FOUND;
  return postgres.transaction(async (client) => {
    const { rows } = await client.query<MediaObjectRow>(
      `DELETE FROM media_objects t WHERE t.id = $1 AND t.organization_id = $2 RETURNING ${MEDIA_COLUMNS}`,
      [id, organizationId],
    );
    if (rows[0] === undefined) return NOT_FOUND;
    const { contentType, bytes, createdAtMs } = toMediaObject(rows[0]);
    await releaseStored(client, [{ organizationId, id, bytes }]);
    await recordAudit(client, actor, {
      organizationId,
      action: 'media.remove',
      target: { kind: 'media', id },
      before: { content_type: contentType, bytes, created_at: new Date(createdAtMs).toISOString() },
    });
    return { removed: true };
  });
}

const RETIRE = `DELETE FROM media_objects t WHERE t.id IN (
    SELECT id FROM media_objects WHERE uploaded_at < $1 ORDER BY uploaded_at LIMIT $2 FOR UPDATE SKIP LOCKED
  ) RETURNING t.id, t.organization_id, t.bytes`;

/** Deletes at most `max` objects that were last uploaded before `before`. Returns how many. */
export async function retireMediaObjects(postgres: Postgres, before: Date, max: number): Promise<number> {
  return postgres.transaction(async (client) => {
    const { rows } = await client.query<Pick<MediaObjectRow, 'id' | 'organization_id' | 'bytes'>>(RETIRE, [
      before,
      max,
    ]);
    await releaseStored(
      client,
      rows.map((row) => ({ id: row.id, organizationId: row.organization_id, bytes: Number(row.bytes) })),
    );
    return rows.length;
  });
}

/** Quotas are locked in order of organization, which every transaction keeps, so that none deadlocks. */
async function releaseStored(
  client: PostgresClient,
  gone: readonly { readonly id: string; readonly organizationId: string; readonly bytes: number }[],
): Promise<void> {
  const bytesOf = new Map<string, number>();
  for (const { organizationId, bytes } of gone) bytesOf.set(organizationId, (bytesOf.get(organizationId) ?? 0) + bytes);
  await client.query('INSERT INTO media_removals (id) SELECT unnest($1::uuid[]) ON CONFLICT DO NOTHING', [
    gone.map(({ id }) => id),
  ]);
  for (const [organizationId, bytes] of [...bytesOf].sort(([one], [other]) => (one < other ? -1 : 1)))
    await client.query('UPDATE media_quotas SET stored_bytes = stored_bytes - $2 WHERE organization_id = $1', [
      organizationId,
      bytes,
    ]);
}
