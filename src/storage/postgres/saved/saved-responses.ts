// Stores which provider keeps saved responses (spec 4.2), and who owns them. A response of another organization or
// payer is not found.

import { isKeptItemId, isKeptResponseId, KEPT_ITEMS_MAX } from '../../../domain/stored-objects/kept-ids.ts';
import type { TerminalRecord } from '../../../records/execution-record.ts';
import type { PostgresClient } from '../pool.ts';

export interface SavedResponse {
  readonly provider: string;
  /** The organization's own key in whose account the response is; null: it is in the operator's account. */
  readonly ownKeyId: string | null;
  /** The public id of the model that served. */
  readonly model: string;
  readonly providerModel: string;
  /** The tokens that a continuation would add to its own input; null where they are unknown. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

interface SavedResponseRow {
  readonly provider: string;
  readonly own_key_id: string | null;
  readonly model: string;
  readonly provider_model: string;
  readonly input_tokens: string | null;
  readonly output_tokens: string | null;
}

/**
 * A part of the statement that posts executions (post-executions.ts), whose sixth parameter is the result of
 * savedAsJson. If a provider gives an id twice, the newest execution keeps it. Execution ids are UUIDv7, so a greater
 * id is newer.
 */
export const SAVE_RESPONSES = `
    INSERT INTO saved_responses AS stored
      (organization_id, response_id, wallet_id, provider, own_key_id, model, provider_model, execution_id,
        input_tokens, output_tokens, created_at)
    SELECT DISTINCT ON ("organizationId", "responseId")
           "organizationId", "responseId", "walletId", "provider", "ownKeyId", "model", "providerModel", "id",
             "inputTokens", "outputTokens",
           to_timestamp("endedAtMs" / 1000)
      FROM json_to_recordset($6::json) AS record (
             "organizationId" uuid, "responseId" text, "walletId" uuid, "provider" text, "ownKeyId" uuid, "model" text,
               "providerModel" text, "id" uuid,
             "inputTokens" bigint, "outputTokens" bigint, "endedAtMs" double precision)
     -- Only executions that this posting settles. "IS TRUE" keeps Postgres from joining two lists of the batch,
     -- whose lengths it cannot know.
     WHERE ("id" IN (SELECT id FROM settled)) IS TRUE
     ORDER BY "organizationId", "responseId", "id" DESC
    ON CONFLICT (organization_id, response_id) DO UPDATE SET
      wallet_id = excluded.wallet_id, provider = excluded.provider, own_key_id = excluded.own_key_id,
        model = excluded.model, provider_model = excluded.provider_model,
      execution_id = excluded.execution_id, input_tokens = excluded.input_tokens,
        output_tokens = excluded.output_tokens,
      created_at = excluded.created_at
      WHERE stored.execution_id < excluded.execution_id`;

/** The parameter of SAVE_RESPONSES and SAVE_ITEMS for these executions. Most batches have no saved response. */
export function savedAsJson(terminals: readonly TerminalRecord[]): string {
  const saved = terminals.filter(
    ({ responseId, status }) => status === 200 && typeof responseId === 'string' && isKeptResponseId(responseId),
  );
  return JSON.stringify(saved.map(toColumns));
}

/**
 * Keeps only the fields that the statement reads. The labels of clients in a record may contain characters that
 * Postgres refuses.
 */
function toColumns(record: TerminalRecord): Record<string, unknown> {
  const { organizationId, responseId, walletId, provider, model, providerModel, id, usage, endedAtMs } = record;
  const itemIds = (record.itemIds ?? []).filter(isKeptItemId).slice(0, KEPT_ITEMS_MAX);
  const ownKeyId = record.credentialId ?? null;
  const inputTokens = usage?.inputTokens ?? null;
  const outputTokens = usage?.outputTokens ?? null;
  return {
    organizationId,
    responseId,
    walletId,
    provider,
    ownKeyId,
    model,
    providerModel,
    id,
    itemIds,
    inputTokens,
    outputTokens,
    endedAtMs,
  };
}

/**
 * `walletId`: the payer's; null in an organization that is not billed. A response is found once its execution was
 * posted.
 */
export async function findSavedResponse(
  postgres: PostgresClient,
  wanted: { organizationId: string; walletId: string | null; responseId: string },
): Promise<SavedResponse | null> {
  if (!isKeptResponseId(wanted.responseId)) return null;
  const { rows } = await postgres.query<SavedResponseRow>(
    {
      name: 'find_saved_response',
      text: `SELECT provider, own_key_id, model, provider_model, input_tokens, output_tokens FROM saved_responses
              WHERE organization_id = $1 AND response_id = $2 AND wallet_id IS NOT DISTINCT FROM $3`,
    },
    [wanted.organizationId, wanted.responseId, wanted.walletId],
  );
  const row = rows[0];
  if (row === undefined) return null;
  return {
    provider: row.provider,
    ownKeyId: row.own_key_id,
    model: row.model,
    providerModel: row.provider_model,
    inputTokens: row.input_tokens === null ? null : Number(row.input_tokens),
    outputTokens: row.output_tokens === null ? null : Number(row.output_tokens),
  };
}

/** Whether any organization has a response under this id. */
export async function isSavedResponse(postgres: PostgresClient, responseId: string): Promise<boolean> {
  if (!isKeptResponseId(responseId)) return false;
  const { rowCount } = await postgres.query(
    { name: 'is_saved_response', text: 'SELECT 1 FROM saved_responses WHERE response_id = $1 LIMIT 1' },
    [responseId],
  );
  return rowCount > 0;
}

/** Deletes responses and items whose execution ended before an instant; returns the number of responses. */
export async function forgetSavedResponses(postgres: PostgresClient, before: Date): Promise<number> {
  await postgres.query('DELETE FROM saved_items WHERE created_at < $1', [before]);
  const { rowCount } = await postgres.query('DELETE FROM saved_responses WHERE created_at < $1', [before]);
  return rowCount;
}
