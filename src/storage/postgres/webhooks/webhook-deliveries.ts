// Stores the queue of webhook messages, which are claimed for an attempt, and then delivered, retried later or given
// up. Posting (post-executions.ts, epochs.ts) inserts a message in the transaction that makes a charge final, so at
// least one attempt follows however often a process dies.

import type { CredentialEvent } from '../../../domain/webhooks/credential-event.ts';
import type { Generation } from '../../../records/generation.ts';
import { GENERATION_COLUMNS, type GenerationRow, toGeneration } from '../ledger/generations.ts';
import type { PostgresClient } from '../pool.ts';

/**
 * Part of the statement that settles executions; it costs nothing without webhooks. Executions paid by a member's own
 * wallet are not sent to the organization, and refused requests are not sent at all.
 */
const ANNOUNCE = `
      INSERT INTO webhook_deliveries (execution_id, organization_id)
      SELECT ended.id, ended.organization_id
        FROM webhooks JOIN ended ON ended.organization_id = webhooks.organization_id LEFT JOIN wallets payer
          ON payer.id = ended.wallet_id
       WHERE webhooks.active AND payer.user_id IS NULL AND ended.outcome <> 'refused'
      ON CONFLICT DO NOTHING`;
export const ANNOUNCE_SETTLED = ANNOUNCE.replaceAll('ended', 'settled');
export const ANNOUNCE_RESOLVED = ANNOUNCE.replaceAll('ended', 'resolved');

/** Must run in the transaction that changes an own key, so that the message is stored exactly if the change is. */
export async function announceCredential(
  client: PostgresClient,
  organizationId: string,
  { type, data }: CredentialEvent,
): Promise<void> {
  await client.query(
    `INSERT INTO webhook_deliveries (execution_id, organization_id, event, data)
     SELECT gen_random_uuid(), organization_id, $2, $3 FROM webhooks WHERE organization_id = $1 AND active`,
    [organizationId, type, JSON.stringify(data)],
  );
}

export interface ClaimedDelivery {
  /** The id of the message, which is that of the execution if the message is about one. */
  readonly executionId: string;
  readonly organizationId: string;
  readonly settledAtMs: number;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  readonly url: string;
  readonly secretSealed: Buffer;
  /** The settled execution, or the name of another event with its data in JSON. */
  readonly content: { readonly generation: Generation } | { readonly event: string; readonly data: string };
}

interface ClaimedRow extends GenerationRow {
  readonly execution_id: string;
  readonly organization_id: string;
  readonly settled_ms: number;
  readonly attempts: number;
  readonly event: string;
  readonly data: string | null;
  readonly url: string;
  readonly secret_sealed: Buffer;
}

/**
 * Claims the oldest messages of each webhook that may be called, up to a number per webhook and in total, for a limited
 * time.
 */
const CLAIM = {
  name: 'claim_webhook_deliveries',
  text: `
    WITH due AS MATERIALIZED (
      SELECT found.execution_id
        FROM webhooks w CROSS JOIN LATERAL (
          SELECT d.execution_id, d.next_attempt_at FROM webhook_deliveries d
           WHERE d.organization_id = w.organization_id AND d.next_attempt_at <= clock_timestamp()
           ORDER BY d.next_attempt_at LIMIT $1 FOR UPDATE SKIP LOCKED
        ) found
       WHERE w.active AND coalesce(w.paused_until <= clock_timestamp(), true) AND w.organization_id <> ALL ($4::uuid[])
       ORDER BY found.next_attempt_at LIMIT $2
    ), claimed AS (
      UPDATE webhook_deliveries d SET attempts = attempts + 1,
        next_attempt_at = clock_timestamp() + make_interval(secs => $3)
        FROM due WHERE d.execution_id = due.execution_id
      RETURNING d.execution_id, d.organization_id, d.settled_at, d.attempts, d.event, d.data
    )
    SELECT ${GENERATION_COLUMNS}, claimed.execution_id, claimed.organization_id, claimed.attempts, claimed.event,
           claimed.data, w.url, w.secret_sealed,
           (extract(epoch FROM claimed.settled_at) * 1000)::double precision AS settled_ms
      FROM claimed JOIN webhooks w ON w.organization_id = claimed.organization_id LEFT JOIN generations g
        ON g.id = claimed.execution_id
     WHERE g.id IS NOT NULL OR claimed.data IS NOT NULL`,
};

export interface ClaimParams {
  readonly perWebhook: number;
  readonly max: number;
  /** After this time the claim ends, because its process must have died. */
  readonly forSeconds: number;
  /** Organizations that have enough deliveries under way. */
  readonly except: readonly string[];
}

export async function claimDeliveries(
  postgres: PostgresClient,
  { perWebhook, max, forSeconds, except }: ClaimParams,
): Promise<ClaimedDelivery[]> {
  const { rows } = await postgres.query<ClaimedRow>(CLAIM, [perWebhook, max, forSeconds, except]);
  return rows.map((row) => ({
    executionId: row.execution_id,
    organizationId: row.organization_id,
    settledAtMs: Math.floor(row.settled_ms),
    attempt: row.attempts,
    url: row.url,
    secretSealed: row.secret_sealed,
    content: row.data === null ? { generation: toGeneration(row) } : { event: row.event, data: row.data },
  }));
}

export async function deliverySucceeded(
  postgres: PostgresClient,
  { executionId, organizationId }: ClaimedDelivery,
): Promise<void> {
  await postgres.query(
    `WITH delivered AS (DELETE FROM webhook_deliveries WHERE execution_id = $1)
     UPDATE webhooks SET failures = 0, paused_until = NULL, last_success_at = clock_timestamp()
       WHERE organization_id = $2`,
    [executionId, organizationId],
  );
}

export interface FailedDelivery {
  readonly error: string;
  /** null: the message is given up. */
  readonly retryAfterSeconds: number | null;
}

/**
 * Records a failed attempt. From the fifth failure in a row, the webhook is paused after each attempt, for up to a
 * minute, so that an address that is down is not called for each message.
 */
export async function deliveryFailed(
  postgres: PostgresClient,
  { executionId, organizationId }: ClaimedDelivery,
  failed: FailedDelivery,
): Promise<void> {
  await postgres.query(
    `WITH later AS (
       UPDATE webhook_deliveries SET last_error = $3,
         next_attempt_at = clock_timestamp() + make_interval(secs => $4::double precision * (0.9 + random() * 0.2))
       WHERE execution_id = $1
     )
     UPDATE webhooks SET failures = failures + 1, last_error = $3, last_error_at = clock_timestamp(),
       paused_until = CASE WHEN failures >= 4
         THEN clock_timestamp() + make_interval(secs => least(60, power(2, least(failures, 12) - 4))) END
     WHERE organization_id = $2`,
    [executionId, organizationId, failed.error, failed.retryAfterSeconds],
  );
}

/** Deletes messages that were given up long ago, and those of removed webhooks. */
export async function forgetDeliveries(postgres: PostgresClient, olderThanDays: number): Promise<number> {
  const { rowCount } = await postgres.query(
    `DELETE FROM webhook_deliveries d
      WHERE (next_attempt_at IS NULL AND settled_at < now() - make_interval(days => $1))
         OR NOT EXISTS (SELECT FROM webhooks w WHERE w.organization_id = d.organization_id)`,
    [olderThanDays],
  );
  return rowCount;
}

export async function countDeliveries(postgres: PostgresClient): Promise<{ waiting: number; dead: number }> {
  const { rows } = await postgres.query<{ waiting: number; dead: number }>(
    `SELECT count(*) FILTER (WHERE next_attempt_at IS NOT NULL)::integer AS waiting,
      count(*) FILTER (WHERE next_attempt_at IS NULL)::integer AS dead
       FROM webhook_deliveries`,
  );
  return rows[0] ?? { waiting: 0, dead: 0 };
}
