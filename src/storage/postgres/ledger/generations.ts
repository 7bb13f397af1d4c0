// Look-ups of generation records (spec 4.5). Another organization's or payer's execution is not found.

import type { BillingStatus } from '../../../domain/settlement/outcome.ts';
import type { Generation } from '../../../records/generation.ts';
import type { PostgresClient } from '../pool.ts';

export interface GenerationRow {
  readonly id: string;
  /** The public id that served; a request through an alias is recorded under it (spec 2.3). */
  readonly model: string;
  readonly streamed: boolean;
  readonly input_tokens: string | null;
  readonly output_tokens: string | null;
  readonly billing_status: BillingStatus;
  readonly charge: string | null;
  readonly rated_cost: string | null;
  readonly authorized_amount: string | null;
}

/** Of a table named `g`. */
export const GENERATION_COLUMNS =
  'g.id, g.model, g.streamed, g.input_tokens, g.output_tokens, g.billing_status, g.charge, g.rated_cost, g.authorized_amount';
const LISTED_MAX = 100;

/** `id` must be a UUID: Postgres refuses anything else as a fault. */
export async function findGeneration(
  postgres: PostgresClient,
  wanted: { id: string; organizationId: string; walletId: string | null },
): Promise<Generation | null> {
  const { rows } = await postgres.query<GenerationRow>(
    {
      name: 'find_generation',
      text: `SELECT ${GENERATION_COLUMNS} FROM generations g WHERE id = $1 AND organization_id = $2 AND wallet_id IS NOT DISTINCT FROM $3`,
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
  return {
    id: row.id,
    model: row.model,
    streamed: row.streamed,
    inputTokens: row.input_tokens === null ? null : Number(row.input_tokens),
    outputTokens: row.output_tokens === null ? null : Number(row.output_tokens),
    billingStatus: row.billing_status,
    charge: row.charge === null ? null : BigInt(row.charge),
    ratedCost: row.rated_cost === null ? null : BigInt(row.rated_cost),
    authorizedAmount: row.authorized_amount === null ? null : BigInt(row.authorized_amount),
  };
}
