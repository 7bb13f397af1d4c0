// Looks up generation records (spec 4.5). An execution of another organization or payer is not found.

import { type Generation, SHOWN } from '../../../records/generation.ts';
import type { PostgresClient } from '../pool.ts';

/** A row by column; counts and amounts are texts. */
export interface GenerationRow {
  readonly id: string;
  readonly [column: string]: unknown;
}

/** The shown columns, for a table named `g`. */
const SHOWN_COLUMNS = SHOWN.map(({ column }) => `g.${column}`).join(', ');
export const GENERATION_COLUMNS = `${SHOWN_COLUMNS}, g.model_route ->> 'requested' AS virtual_model,
  g.provider <> '' AS has_provider`;
const LISTED_MAX = 100;

/** `id` must be a UUID: Postgres throws for any other text. */
export async function findGeneration(
  postgres: PostgresClient,
  wanted: { id: string; organizationId: string; walletId: string | null },
): Promise<Generation | null> {
  const { rows } = await postgres.query<GenerationRow>(
    {
      name: 'find_generation',
      text: `SELECT ${GENERATION_COLUMNS} FROM generations g WHERE id = $1 AND organization_id = $2
        AND wallet_id IS NOT DISTINCT FROM $3`,
    },
    [wanted.id, wanted.organizationId, wanted.walletId],
  );
  return rows[0] === undefined ? null : toGeneration(rows[0]);
}

/** Newest first. Several executions can match, since clients choose this id and need not make it unique. */
export async function listGenerationsByClientRequestId(
  postgres: PostgresClient,
  wanted: { clientRequestId: string; organizationId: string; walletId: string | null },
): Promise<Generation[]> {
  // Postgres has no NUL in texts, so no such value was ever recorded.
  if (wanted.clientRequestId.includes('\0')) return [];
  const { rows } = await postgres.query<GenerationRow>(
    {
      name: 'list_generations_by_client_request_id',
      text: `SELECT ${GENERATION_COLUMNS} FROM generations g
              WHERE organization_id = $1 AND client_request_id = $2 AND wallet_id IS NOT DISTINCT FROM $3
              ORDER BY id DESC LIMIT ${LISTED_MAX}`,
    },
    [wanted.organizationId, wanted.clientRequestId, wanted.walletId],
  );
  return rows.map(toGeneration);
}

/** Deletes the records of requests that were refused before an instant. Their facts are kept like all others. */
export async function forgetRefusedRequests(postgres: PostgresClient, before: Date): Promise<number> {
  const { rowCount } = await postgres.query("DELETE FROM generations WHERE outcome = 'refused' AND admitted_at < $1", [
    before,
  ]);
  return rowCount;
}

export function toGeneration(row: GenerationRow): Generation {
  const shown = SHOWN.map(({ field, kind, column }) => {
    const value = row[column] ?? null;
    return [field, kind === 'bytes' && value !== null ? Number(value) : value];
  });
  const computed = { virtualModel: row['virtual_model'] ?? null, hasProvider: row['has_provider'] };
  return { ...Object.fromEntries(shown), ...computed } as unknown as Generation;
}
