// Reads ended executions from the ledger as terminal records, from which facts are compared, repaired and made anew.

import { firstExecutionIdAt } from '../../../platform/execution-id.ts';
import type { TerminalRecord } from '../../../records/execution-record.ts';
import type { PostgresClient } from '../pool.ts';
import { AS_RECORD } from './generation-columns.ts';

/** Executions that were admitted from `fromMs` until before `untilMs` and ended before `endedBeforeMs`. */
export interface GenerationWindow {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly endedBeforeMs: number;
}

/**
 * Ids contain their millisecond and are the primary key, so a range of ids serves as the index of a range of time. An
 * id is made at admission; the margin covers a clock that was set back, while ids run ahead of it (RFC 9562, 6.2).
 */
const ID_MARGIN_MS = 300_000;

const IN_WINDOW = `id >= $1 AND id < $2 AND admitted_at >= to_timestamp($3::double precision / 1000)
  AND admitted_at < to_timestamp($4::double precision / 1000)
  AND ended_at < to_timestamp($5::double precision / 1000)`;

function windowValues({ fromMs, untilMs, endedBeforeMs }: GenerationWindow): unknown[] {
  return [...idRange(fromMs, untilMs), fromMs, untilMs, endedBeforeMs];
}

/** A range of ids with all executions that were admitted between these instants, and some others. */
export function idRange(fromMs: number, untilMs: number): readonly [fromId: string, untilId: string] {
  return [firstExecutionIdAt(fromMs - ID_MARGIN_MS), firstExecutionIdAt(untilMs + ID_MARGIN_MS)];
}

export interface GenerationHour {
  readonly hourMs: number;
  readonly executions: number;
  readonly pending: number;
  readonly charged: bigint;
}

/** The hours (UTC) that have ended executions, first to last. Money in pico-dollars. */
export async function countGenerationsPerHour(
  postgres: PostgresClient,
  window: GenerationWindow,
): Promise<GenerationHour[]> {
  const { rows } = await postgres.query<{ hour: string; executions: number; pending: number; charged: string }>(
    `SELECT floor(extract(epoch FROM admitted_at) / 3600)::bigint AS hour, count(*)::integer AS executions,
            (count(*) FILTER (WHERE billing_status = 'pending'))::integer AS pending,
              coalesce(sum(charge), 0)::text AS charged
       FROM generations WHERE ${IN_WINDOW} GROUP BY hour ORDER BY hour`,
    windowValues(window),
  );
  return rows.map((row) => ({
    hourMs: Number(row.hour) * 3_600_000,
    executions: row.executions,
    pending: row.pending,
    charged: BigInt(row.charged),
  }));
}

/** The window must be short enough for its executions to fit in memory. */
export async function readEndedExecutions(
  postgres: PostgresClient,
  window: GenerationWindow,
): Promise<TerminalRecord[]> {
  const { rows } = await postgres.query<{ record: TerminalRecord }>(
    `SELECT (${AS_RECORD}) AS record FROM generations WHERE ${IN_WINDOW} ORDER BY id`,
    windowValues(window),
  );
  return rows.map((row) => row.record);
}

/** The record of an ended execution of an organization; null: there is none. */
export async function findEndedExecution(
  postgres: PostgresClient,
  wanted: { readonly id: string; readonly organizationId: string },
): Promise<TerminalRecord | null> {
  const { rows } = await postgres.query<{ record: TerminalRecord }>(
    `SELECT (${AS_RECORD}) AS record FROM generations WHERE id = $1 AND organization_id = $2 AND ended_at IS NOT NULL`,
    [wanted.id, wanted.organizationId],
  );
  return rows[0]?.record ?? null;
}

/**
 * The executions of an epoch (begun at `sinceMs`) that reconciliation resolved; they have no terminal record in any
 * spool.
 */
export async function readKilledExecutions(
  postgres: PostgresClient,
  epoch: number,
  sinceMs: number,
): Promise<TerminalRecord[]> {
  const { rows } = await postgres.query<{ record: TerminalRecord }>(
    `SELECT (${AS_RECORD}) AS record FROM generations
      WHERE id >= $1 AND epoch = $2 AND outcome = 'process_killed' ORDER BY id`,
    [firstExecutionIdAt(sinceMs - ID_MARGIN_MS), epoch],
  );
  return rows.map((row) => row.record);
}

/** When the oldest execution of the ledger was admitted; null: it has none. */
export async function findFirstAdmission(postgres: PostgresClient): Promise<Date | null> {
  const { rows } = await postgres.query<{ first: Date | null }>('SELECT min(admitted_at) AS first FROM generations');
  return rows[0]?.first ?? null;
}
