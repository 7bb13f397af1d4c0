// Stores the access tokens of providers that take a token instead of a key: which tokens are due, who has claimed them
// for an attempt, and how the attempts ended.

import type { TokenFields } from '../../../domain/configuration/schema/token-schema.ts';
import type { TlsSettings } from '../../../domain/models/provider.ts';
import type { TokenHealth } from '../../../domain/models/provider-health.ts';
import { notifyCatalogChanged } from '../changes.ts';
import type { Postgres, PostgresClient } from '../pool.ts';

/** Identifies the account and the secret of a row of `providers p`. Another of either needs another token. */
export const MADE_FROM = `md5(p.api_key_sealed::text || (p.requests->>'token'))`;

/** The name to which a provider's sealed token is bound. */
export function tokenSecretName(providerId: string): string {
  return `token of provider ${providerId}`;
}

export interface DueToken {
  readonly providerId: string;
  readonly settings: TokenFields;
  readonly secretSealed: Buffer;
  readonly madeFrom: string;
  readonly proxy: string | undefined;
  readonly tls: TlsSettings | undefined;
  /** The number of attempts in a row that failed. */
  readonly failures: number;
}

/** How long one process has for an attempt. */
const CLAIM_SECONDS = 60;

/** Claims due tokens that no other process has claimed. A token is also due if its settings were not tried yet. */
export async function claimDueTokens(postgres: PostgresClient): Promise<readonly DueToken[]> {
  await postgres.query(
    `INSERT INTO provider_tokens (provider_id) SELECT id FROM providers WHERE requests ? 'token'
     ON CONFLICT DO NOTHING`,
  );
  const { rows } = await postgres.query<DueToken & Record<string, unknown>>(
    `UPDATE provider_tokens t SET claimed_until = clock_timestamp() + make_interval(secs => ${CLAIM_SECONDS})
       FROM providers p
      WHERE p.id = t.provider_id AND p.requests ? 'token'
        AND coalesce(t.claimed_until <= clock_timestamp(), true)
        AND (t.tried_from IS DISTINCT FROM ${MADE_FROM} OR t.next_attempt_at <= clock_timestamp())
     RETURNING p.id AS "providerId", p.requests->'token' AS settings, p.api_key_sealed AS "secretSealed",
               ${MADE_FROM} AS "madeFrom", p.requests->>'proxy' AS proxy, p.requests->'tls' AS tls,
               CASE WHEN t.tried_from = ${MADE_FROM} THEN t.failures ELSE 0 END AS failures`,
  );
  return rows.map((row) => ({ ...row, proxy: row.proxy ?? undefined, tls: row.tls ?? undefined }));
}

export interface ObtainedToken {
  readonly sealed: Buffer;
  readonly lifeSeconds: number;
  readonly renewAfterSeconds: number;
}

/** Stores an obtained token and notifies every gateway. */
export async function keepToken(
  postgres: Postgres,
  { providerId, madeFrom }: DueToken,
  { sealed, lifeSeconds, renewAfterSeconds }: ObtainedToken,
): Promise<void> {
  await postgres.transaction(async (client) => {
    await client.query(
      `UPDATE provider_tokens
          SET token_sealed = $2, made_from = $3, tried_from = $3, failures = 0, failure = NULL, claimed_until = NULL,
              obtained_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => $4),
              next_attempt_at = clock_timestamp() + make_interval(secs => $5)
        WHERE provider_id = $1`,
      [providerId, sealed, madeFrom, lifeSeconds, renewAfterSeconds],
    );
    await notifyCatalogChanged(client);
  });
}

/** Records a failed attempt. Returns for how many seconds the present token is still valid; 0: there is none. */
export async function tokenFailed(
  postgres: PostgresClient,
  { providerId, madeFrom, failures }: DueToken,
  { failure, retryAfterSeconds }: { readonly failure: string; readonly retryAfterSeconds: number },
): Promise<number> {
  const { rows } = await postgres.query<{ left: number }>(
    `UPDATE provider_tokens
        SET tried_from = $2, failures = $3, failure = $4, claimed_until = NULL,
            next_attempt_at = clock_timestamp() + make_interval(secs => $5)
      WHERE provider_id = $1
      RETURNING CASE WHEN made_from = $2
        THEN greatest(0, extract(epoch FROM expires_at - clock_timestamp())) ELSE 0 END::double precision AS left`,
    [providerId, madeFrom, failures + 1, failure, retryAfterSeconds],
  );
  return rows[0]?.left ?? 0;
}

interface TokenRow extends Record<string, unknown> {
  readonly provider_id: string;
  readonly expires_ms: number | null;
  readonly obtained_ms: number | null;
  readonly failure: string | null;
  readonly next_ms: number | null;
}

/** The state of the token of each provider that takes one, for its present account and secret. */
export async function readTokenHealth(client: PostgresClient): Promise<ReadonlyMap<string, TokenHealth>> {
  const { rows } = await client.query<TokenRow>(
    `SELECT p.id AS provider_id,
            CASE WHEN t.made_from = ${MADE_FROM} THEN ${milliseconds('t.expires_at')} END AS expires_ms,
            CASE WHEN t.made_from = ${MADE_FROM} THEN ${milliseconds('t.obtained_at')} END AS obtained_ms,
            CASE WHEN t.tried_from = ${MADE_FROM} THEN t.failure END AS failure,
            CASE WHEN t.tried_from = ${MADE_FROM} THEN ${milliseconds('t.next_attempt_at')} END AS next_ms
       FROM providers p LEFT JOIN provider_tokens t ON t.provider_id = p.id
      WHERE p.requests ? 'token'`,
  );
  return new Map(
    rows.map((row) => [
      row.provider_id,
      {
        expiresAtMs: row.expires_ms,
        obtainedAtMs: row.obtained_ms,
        failure: row.failure,
        nextAttemptAtMs: row.next_ms,
      },
    ]),
  );
}

function milliseconds(column: string): string {
  return `(extract(epoch FROM ${column}) * 1000)::double precision`;
}
