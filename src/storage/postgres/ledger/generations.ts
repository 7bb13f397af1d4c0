// Look-ups of generation records (spec 4.5). Another organization's or payer's execution is not found.

import { type Generation, SHOWN } from '../../../records/generation.ts';
import type { PostgresClient } from '../pool.ts';

/** By column; counts and amounts are texts. */
export interface GenerationRow {
  readonly id: string;
  readonly [column: string]: unknown;
}

/** Of a table named `g`. */
export const GENERATION_COLUMNS = SHOWN.map(({ column }) => `g.${column}`).join(', ');
const LISTED_MAX = 100;

/** `id` must be a UUID: Postgres refuses anything else as a fault. */
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

/** Newest first. A value can match several executions; it is the client's own and need not be unique. */
export async function listGenerationsByClientRequestId(
  postgres: PostgresClient,
  wanted: { clientRequestId: string; organizationId: string; walletId: string | null },
): Promise<Generation[]> {
  // No value with a NUL was ever recorded, and Postgres takes none as text.
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

/** The records of requests that were refused before an instant; their facts stay for as long as the others'. */
export async function forgetRefusedRequests(postgres: PostgresClient, before: Date): Promise<number> {
  const { rowCount } = await postgres.query("DELETE FROM generations WHERE outcome = 'refused' AND admitted_at < $1", [
    before,
  ]);
  return rowCount;
}

export function toGeneration(row: GenerationRow): Generation {
  return Object.fromEntries(
    SHOWN.map(({ field, kind, column }) => {
      const value = row[column] ?? null;
      return [field, kind === 'bytes' && value !== null ? Number(value) : value];
    }),
  ) as unknown as Generation;
}
