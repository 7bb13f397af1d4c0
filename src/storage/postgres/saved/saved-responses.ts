// Saved responses (spec 4.2): which provider keeps which response, and whose it is. Another organization's or payer's
// is not found.

import type { TerminalRecord } from '../../../records/execution-record.ts';
import type { PostgresClient } from '../pool.ts';
import { ITEM_ID, ITEMS_MAX } from './saved-items.ts';

export interface SavedResponse {
  readonly provider: string;
  /** The public id that served. */
  readonly model: string;
  readonly providerModel: string;
  /** What a continuation would carry into its own input; null where it is not known. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

interface SavedResponseRow {
  readonly provider: string;
  readonly model: string;
  readonly provider_model: string;
  readonly input_tokens: string | null;
  readonly output_tokens: string | null;
}

/**
 * What is kept as an id. It is the provider's word: one that Postgres can neither hold as text nor put into an index
 * would refuse the posting of an execution, which is money, for the sake of a look-up.
 */
const RESPONSE_ID = /^[\x21-\x7e]{1,256}$/;

/**
 * Part of the statement that posts executions (post-executions.ts), whose sixth parameter is savedAsJson. An id comes
 * twice only if a provider gives it twice: the newest execution has it. Ids are UUIDv7, so the greater is the newer.
 */
export const SAVE_RESPONSES = `
    INSERT INTO saved_responses AS stored
      (organization_id, response_id, wallet_id, provider, model, provider_model, execution_id, input_tokens,
        output_tokens, created_at)
    SELECT DISTINCT ON ("organizationId", "responseId")
           "organizationId", "responseId", "walletId", "provider", "model", "providerModel", "id", "inputTokens",
             "outputTokens",
           to_timestamp("endedAtMs" / 1000)
      FROM json_to_recordset($6::json) AS record (
             "organizationId" uuid, "responseId" text, "walletId" uuid, "provider" text, "model" text,
               "providerModel" text, "id" uuid,
             "inputTokens" bigint, "outputTokens" bigint, "endedAtMs" double precision)
     -- Only executions that this posting settles. "IS TRUE" keeps Postgres from joining two lists of the batch,
     -- whose lengths it cannot know.
     WHERE ("id" IN (SELECT id FROM settled)) IS TRUE
     ORDER BY "organizationId", "responseId", "id" DESC
    ON CONFLICT (organization_id, response_id) DO UPDATE SET
      wallet_id = excluded.wallet_id, provider = excluded.provider, model = excluded.model,
        provider_model = excluded.provider_model,
      execution_id = excluded.execution_id, input_tokens = excluded.input_tokens,
        output_tokens = excluded.output_tokens,
      created_at = excluded.created_at
      WHERE stored.execution_id < excluded.execution_id`;

/** What the parameter of SAVE_RESPONSES and SAVE_ITEMS is for these executions: most batches have no saved response. */
export function savedAsJson(terminals: readonly TerminalRecord[]): string {
  const saved = terminals.filter(
    ({ responseId, status }) => status === 200 && typeof responseId === 'string' && RESPONSE_ID.test(responseId),
  );
  return JSON.stringify(saved.map(toColumns));
}

/**
 * Only what the statement reads: a record holds labels of clients, in which there may be characters that Postgres does
 * not take.
 */
function toColumns(record: TerminalRecord): Record<string, unknown> {
  const { organizationId, responseId, walletId, provider, model, providerModel, id, usage, endedAtMs } = record;
  const itemIds = (record.itemIds ?? []).filter((itemId) => ITEM_ID.test(itemId)).slice(0, ITEMS_MAX);
  const inputTokens = usage?.inputTokens ?? null;
  const outputTokens = usage?.outputTokens ?? null;
  return {
    organizationId,
    responseId,
    walletId,
    provider,
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
 * `walletId` is the payer's, null where the organization is not billed. An id is known here once its execution is
 * posted.
 */
export async function findSavedResponse(
  postgres: PostgresClient,
  wanted: { organizationId: string; walletId: string | null; responseId: string },
): Promise<SavedResponse | null> {
  if (!RESPONSE_ID.test(wanted.responseId)) return null;
  const { rows } = await postgres.query<SavedResponseRow>(
    {
      name: 'find_saved_response',
      text: `SELECT provider, model, provider_model, input_tokens, output_tokens FROM saved_responses
              WHERE organization_id = $1 AND response_id = $2 AND wallet_id IS NOT DISTINCT FROM $3`,
    },
    [wanted.organizationId, wanted.responseId, wanted.walletId],
  );
  const row = rows[0];
  if (row === undefined) return null;
  return {
    provider: row.provider,
    model: row.model,
    providerModel: row.provider_model,
    inputTokens: row.input_tokens === null ? null : Number(row.input_tokens),
    outputTokens: row.output_tokens === null ? null : Number(row.output_tokens),
  };
}

/** Whether any organization has a response under this id. */
export async function isSavedResponse(postgres: PostgresClient, responseId: string): Promise<boolean> {
  if (!RESPONSE_ID.test(responseId)) return false;
  const { rowCount } = await postgres.query(
    { name: 'is_saved_response', text: 'SELECT 1 FROM saved_responses WHERE response_id = $1 LIMIT 1' },
    [responseId],
  );
  return rowCount > 0;
}

/** How many responses were forgotten, and their items with them: those whose execution ended before the instant. */
export async function forgetSavedResponses(postgres: PostgresClient, before: Date): Promise<number> {
  await postgres.query('DELETE FROM saved_items WHERE created_at < $1', [before]);
  const { rowCount } = await postgres.query('DELETE FROM saved_responses WHERE created_at < $1', [before]);
  return rowCount;
}
