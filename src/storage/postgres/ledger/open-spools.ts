// Tells how far the spool of each running gateway is posted. Also has the notifications by which gateways of different
// machines tell each other how far their spools are written, and ask jobs to post.

import type { PostgresClient } from '../pool.ts';

/** Asks the gateways of other machines how far their spools are written. The payload says who asks. */
export const SPOOLS_ASKED_CHANNEL = 'tollgate_spools_asked';
/** The answers to that question, which every gateway gets. */
export const SPOOLS_TOLD_CHANNEL = 'tollgate_spools_told';

/** Tells every jobs process that a look-up waits for records that are not posted yet. */
export const POSTING_WANTED_CHANNEL = 'tollgate_posting_wanted';

/** An epoch that is not closed, with the cursor of its newest posted segment. */
export interface OpenSpool {
  readonly epoch: number;
  /** null: no record of it was posted yet. */
  readonly posted: { readonly segment: number; readonly offset: number } | null;
  /** The time since the epoch began, or since the last posting from it. */
  readonly quietMs: number;
}

interface OpenSpoolRow {
  readonly epoch: string;
  readonly segment: number | null;
  readonly posted_offset: string | null;
  readonly quiet_ms: number;
}

export async function listOpenSpools(postgres: PostgresClient): Promise<OpenSpool[]> {
  const { rows } = await postgres.query<OpenSpoolRow>({
    name: 'list_open_spools',
    text: `SELECT e.epoch, c.segment, c.posted_offset::text,
                  (extract(epoch FROM now() - greatest(e.started_at, c.updated_at)) * 1000)::double precision
                    AS quiet_ms
             FROM process_epochs e LEFT JOIN LATERAL (
               SELECT segment, posted_offset, updated_at FROM spool_cursors WHERE epoch = e.epoch
                ORDER BY segment DESC LIMIT 1) c ON true
            WHERE e.returned_at IS NULL AND e.kind = 'gateway'`,
  });
  return rows.map((row) => ({
    epoch: Number(row.epoch),
    posted: row.segment === null ? null : { segment: row.segment, offset: Number(row.posted_offset) },
    quietMs: row.quiet_ms,
  }));
}

export async function notifyAboutSpools(postgres: PostgresClient, channel: string, payload: string): Promise<void> {
  await postgres.query('SELECT pg_notify($1, $2)', [channel, payload]);
}
