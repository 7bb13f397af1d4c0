// Stores which provider keeps the items of saved responses (spec 4.2), and who owns them. An item of another
// organization or payer is not found.

import { isKeptItemId } from '../../../domain/stored-objects/kept-ids.ts';
import type { PostgresClient } from '../pool.ts';

export interface SavedItem {
  readonly provider: string;
  /** The organization's own key in whose account the item is; null: it is in the operator's account. */
  readonly ownKeyId: string | null;
  readonly responseId: string;
  /** Output tokens of the whole response; null where they are unknown. */
  readonly outputTokens: number | null;
}

interface SavedItemRow {
  readonly item_id: string;
  readonly provider: string;
  readonly own_key_id: string | null;
  readonly response_id: string;
  readonly output_tokens: string | null;
}

/** A part of the statement that posts executions. It uses the same parameter as SAVE_RESPONSES. */
export const SAVE_ITEMS = `
    INSERT INTO saved_items AS stored (organization_id, item_id, wallet_id, provider, own_key_id, response_id,
      execution_id, output_tokens, created_at)
    SELECT DISTINCT ON ("organizationId", item_id)
           "organizationId", item_id, "walletId", "provider", "ownKeyId", "responseId", "id", "outputTokens",
             to_timestamp("endedAtMs" / 1000)
      FROM json_to_recordset($6::json) AS record (
             "organizationId" uuid, "responseId" text, "walletId" uuid, "provider" text, "ownKeyId" uuid, "id" uuid,
               "itemIds" text[], "outputTokens" bigint,
             "endedAtMs" double precision), unnest("itemIds") AS item_id
     WHERE ("id" IN (SELECT id FROM settled)) IS TRUE
     ORDER BY "organizationId", item_id, "id" DESC
    ON CONFLICT (organization_id, item_id) DO UPDATE SET
      wallet_id = excluded.wallet_id, provider = excluded.provider, own_key_id = excluded.own_key_id,
        response_id = excluded.response_id, execution_id = excluded.execution_id,
      output_tokens = excluded.output_tokens, created_at = excluded.created_at
      WHERE stored.execution_id < excluded.execution_id`;

/**
 * `walletId`: the payer's; null in an organization that is not billed. An item is found once its execution was posted.
 */
export async function findSavedItems(
  postgres: PostgresClient,
  {
    organizationId,
    walletId,
    itemIds,
  }: { organizationId: string; walletId: string | null; itemIds: readonly string[] },
): Promise<ReadonlyMap<string, SavedItem>> {
  const { rows } = await postgres.query<SavedItemRow>(
    {
      name: 'find_saved_items',
      text: `SELECT item_id, provider, own_key_id, response_id, output_tokens FROM saved_items
              WHERE organization_id = $1 AND item_id = ANY ($2::text[]) AND wallet_id IS NOT DISTINCT FROM $3`,
    },
    [organizationId, itemIds.filter(isKeptItemId), walletId],
  );
  return new Map(
    rows.map((row) => [
      row.item_id,
      {
        provider: row.provider,
        ownKeyId: row.own_key_id,
        responseId: row.response_id,
        outputTokens: row.output_tokens === null ? null : Number(row.output_tokens),
      },
    ]),
  );
}
