// Has the table of all columns with encrypted secrets. By this table, secrets are counted by master key, and are moved
// to another master key while gateways serve.

import { providerSecretName } from './catalog/catalog-store.ts';
import { tokenSecretName } from './catalog/provider-tokens.ts';
import { sealedFor as sealedForDetector } from './guardrails/detector-secrets.ts';
import { installationSecretName } from './installation-secrets.ts';
import { ownKeySecretName, previousSecretName } from './own-keys/own-key-rows.ts';
import type { Postgres, PostgresClient } from './pool.ts';
import { keyIdOf, type SecretBox } from './secret-box.ts';
import { sealedFor } from './webhooks/webhooks.ts';

interface SealedColumn {
  readonly words: string;
  readonly table: string;
  readonly column: string;
  /** SQL that identifies a row of the table, as text. */
  readonly id: string;
  /** SQL of the array from which `bindTo` makes the name that the secret is bound to. */
  readonly bound: string;
  readonly bindTo: (bound: readonly string[]) => string;
  /** A statement that updates data derived from the stored bytes. $1: the row; $2: the old bytes; $3: the new ones. */
  readonly updateDerived?: string;
}

/** Names of tables and columns become parts of statements, so they must all be constants. */
const SEALED: readonly SealedColumn[] = [
  {
    words: 'secrets of the installation',
    table: 'installation_secrets',
    column: 'sealed',
    id: 'name',
    bound: 'ARRAY[name]',
    bindTo: ([name = '']) => installationSecretName(name),
  },
  {
    words: 'keys of providers',
    table: 'providers',
    column: 'api_key_sealed',
    id: 'id',
    bound: 'ARRAY[id]',
    bindTo: ([id = '']) => providerSecretName(id),
    // A token is stored with a hash of what it was made from. The hash follows the sealed bytes, so that the token of
    // an unchanged secret is not obtained anew.
    updateDerived: `UPDATE provider_tokens t
        SET made_from = CASE WHEN t.made_from = md5($2::bytea::text || (p.requests->>'token'))
              THEN md5($3::bytea::text || (p.requests->>'token')) ELSE t.made_from END,
            tried_from = CASE WHEN t.tried_from = md5($2::bytea::text || (p.requests->>'token'))
              THEN md5($3::bytea::text || (p.requests->>'token')) ELSE t.tried_from END
       FROM providers p WHERE p.id = $1 AND t.provider_id = p.id`,
  },
  {
    words: 'tokens of providers',
    table: 'provider_tokens',
    column: 'token_sealed',
    id: 'provider_id',
    bound: 'ARRAY[provider_id]',
    bindTo: ([id = '']) => tokenSecretName(id),
  },
  {
    words: 'secrets of webhooks',
    table: 'webhooks',
    column: 'secret_sealed',
    id: 'organization_id',
    bound: 'ARRAY[organization_id::text]',
    bindTo: ([organizationId = '']) => sealedFor(organizationId),
  },
  {
    words: 'secrets of guardrail detectors',
    table: 'guardrail_secrets',
    column: 'secret_sealed',
    id: `(policy_id::text || ' ' || detector)`,
    bound: 'ARRAY[policy_id::text, detector]',
    bindTo: ([policyId = '', detector = '']) => sealedForDetector(policyId, detector),
  },
  {
    words: 'own keys of organizations',
    table: 'own_keys',
    column: 'secret_sealed',
    id: 'id',
    bound: 'ARRAY[organization_id::text, kind, id::text, generation::text]',
    bindTo: (bound) => ownKeyName(bound, ownKeySecretName),
  },
  {
    words: 'own keys before a rotation',
    table: 'own_keys',
    column: 'previous_sealed',
    id: 'id',
    bound: 'ARRAY[organization_id::text, kind, id::text, generation::text]',
    bindTo: (bound) => ownKeyName(bound, previousSecretName),
  },
];

function ownKeyName(
  [organizationId = '', kind = '', id = '', generation = '']: readonly string[],
  nameOf: typeof ownKeySecretName,
): string {
  return nameOf({ organizationId, kind, id }, Number(generation));
}

export interface SealedCount {
  readonly words: string;
  readonly keyId: string;
  readonly count: number;
}

/** Counts secrets by kind and by the id of the master key that they are stored under. */
export async function countSealedSecrets(postgres: PostgresClient): Promise<readonly SealedCount[]> {
  const counts: SealedCount[] = [];
  for (const { words, table: TABLE, column: COLUMN } of SEALED) {
    const { rows } = await postgres.query<{ head: Buffer; count: number }>(
      `SELECT substring(${COLUMN} FROM 1 FOR 9) AS head, count(*)::integer AS count FROM ${TABLE}
        WHERE ${COLUMN} IS NOT NULL GROUP BY 1 ORDER BY 1`,
    );
    // Secrets of both formats can be stored under one key.
    const byKey = Map.groupBy(rows, ({ head }) => keyIdOf(head));
    for (const [keyId, ofKey] of byKey)
      counts.push({ words, keyId, count: ofKey.reduce((sum, { count }) => sum + count, 0) });
  }
  return counts;
}

export interface Rewrapped {
  readonly rewrapped: number;
  /** Secrets that are damaged, or stored under a master key that is not known here. */
  readonly unreadable: number;
}

const BATCH_MAX = 500;

/** Moves every secret to the current master key. The next run moves secrets that are changed meanwhile. */
export async function rewrapSecrets(postgres: Postgres, box: SecretBox): Promise<Rewrapped> {
  let [rewrapped, unreadable] = [0, 0];
  for (const sealed of SEALED) {
    let after: string | null = null;
    for (;;) {
      const batch = await readBatch(postgres, sealed, box.keyId, after);
      for (const row of batch) {
        const moved = tryRewrap(box, row.sealed, sealed.bindTo(row.bound));
        if (moved === 'unreadable') unreadable += 1;
        else if (moved !== null) rewrapped += await replace(postgres, sealed, { ...row, moved });
      }
      after = batch.at(-1)?.id ?? null;
      if (after === null) break;
    }
  }
  return { rewrapped, unreadable };
}

interface SealedRow extends Record<string, unknown> {
  readonly id: string;
  readonly bound: readonly string[];
  readonly sealed: Buffer;
}

/** Reads secrets under another master key, and those of the first format, which have no data key. */
async function readBatch(
  postgres: PostgresClient,
  { table: TABLE, column: COLUMN, id: ID, bound: BOUND }: SealedColumn,
  keyId: string,
  after: string | null,
): Promise<readonly SealedRow[]> {
  const { rows } = await postgres.query<SealedRow>(
    `SELECT ${ID}::text AS id, ${BOUND} AS bound, ${COLUMN} AS sealed FROM ${TABLE}
      WHERE substring(${COLUMN} FROM 1 FOR 9) <> $1 AND ($2::text IS NULL OR ${ID}::text > $2)
      ORDER BY ${ID}::text LIMIT $3`,
    [Buffer.concat([Buffer.of(2), Buffer.from(keyId, 'hex')]), after, BATCH_MAX],
  );
  return rows;
}

function tryRewrap(box: SecretBox, sealed: Buffer, bindTo: string): Buffer | null | 'unreadable' {
  try {
    return box.rewrap(sealed, bindTo);
  } catch {
    return 'unreadable';
  }
}

async function replace(
  postgres: Postgres,
  { table: TABLE, column: COLUMN, id: ID, updateDerived }: SealedColumn,
  row: { readonly id: string; readonly sealed: Buffer; readonly moved: Buffer },
): Promise<number> {
  const values = [row.id, row.sealed, row.moved];
  return postgres.transaction(async (client) => {
    const { rowCount } = await client.query(
      `UPDATE ${TABLE} SET ${COLUMN} = $3 WHERE ${ID}::text = $1 AND ${COLUMN} = $2`,
      values,
    );
    if (rowCount > 0 && updateDerived !== undefined) await client.query(updateDerived, values);
    return rowCount;
  });
}
