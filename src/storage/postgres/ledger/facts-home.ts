// Ensures that all machines that share this Postgres keep their request facts in one ClickHouse. A report reads only
// one ClickHouse, so with a second one it would show half of the facts.
//
// The first jobs process registers its ClickHouse by the id stored inside it (identify-clickhouse.ts), whatever its
// hosts are called; any other ClickHouse is refused. An embedded ClickHouse belongs to one process, which holds a lock
// while it runs, so that a copied data directory is refused as well.

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Log } from '../../../platform/log.ts';
import type { PostgresClient } from '../pool.ts';

export interface FactsHome {
  /** The id of the ClickHouse. */
  readonly id: string;
  readonly kind: 'embedded' | 'server';
  /** The machine whose jobs process registered it, for messages only. */
  readonly machine: string;
}

/** The facts are kept in another ClickHouse; this process must not start a second place. */
export class FactsElsewhere extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FactsElsewhere';
  }
}

/** The number of the advisory lock; no other lock uses it. */
const EMBEDDED_LOCK = 7_060_155_443;

export async function readFactsHome(
  postgres: PostgresClient,
): Promise<(FactsHome & { readonly registeredAt: Date }) | null> {
  const { rows } = await postgres.query<FactsHome & { registered_at: Date }>(
    'SELECT clickhouse_id AS id, kind, machine, registered_at FROM facts_home',
  );
  const row = rows[0];
  return row === undefined
    ? null
    : { id: row.id, kind: row.kind, machine: row.machine, registeredAt: row.registered_at };
}

/**
 * Registers the ClickHouse when none is registered; when a server replaces an embedded one, which is how an
 * installation outgrows its machine; or when the registered embedded one was lost. It is known to be lost if this
 * Postgres is embedded in the same data directory (`sharesDataDirectory`), because that directory now has another
 * ClickHouse. Otherwise throws FactsElsewhere. Only one process at a time may call this.
 */
export async function claimFactsHome(
  postgres: PostgresClient,
  home: FactsHome,
  sharesDataDirectory = false,
): Promise<'known' | 'registered' | 'moved' | 'lost'> {
  const present = await readFactsHome(postgres);
  if (present?.id === home.id) return 'known';
  const isOutgrown = present?.kind === 'embedded' && home.kind === 'server';
  const isLost = present?.kind === 'embedded' && home.kind === 'embedded' && sharesDataDirectory;
  if (present !== null && (!(isOutgrown || isLost) || (await isEmbeddedInUse(postgres))))
    throw new FactsElsewhere(explain(present, home));
  await postgres.query(
    `INSERT INTO facts_home (clickhouse_id, kind, machine) VALUES ($1, $2, $3)
     ON CONFLICT (is_only) DO UPDATE
       SET clickhouse_id = excluded.clickhouse_id, kind = excluded.kind, machine = excluded.machine,
           registered_at = now()`,
    [home.id, home.kind, home.machine],
  );
  if (present === null) return 'registered';
  return isLost ? 'lost' : 'moved';
}

/** Removes the registration; the next jobs process that starts registers its own. */
export async function releaseFactsHome(postgres: PostgresClient): Promise<void> {
  await postgres.query('DELETE FROM facts_home');
}

/** Whether a running process has the registered embedded ClickHouse open, as far as Postgres knows. */
export async function isEmbeddedInUse(postgres: PostgresClient): Promise<boolean> {
  const { rowCount } = await postgres.query(
    `SELECT FROM pg_locks
      WHERE locktype = 'advisory' AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (classid::bigint << 32) + objid::bigint = $1`,
    [EMBEDDED_LOCK],
  );
  return rowCount > 0;
}

function explain(present: FactsHome, home: FactsHome): string {
  const where =
    present.kind === 'embedded'
      ? `the embedded ClickHouse of ${present.machine}`
      : `a ClickHouse server that ${present.machine} registered`;
  const ours = home.kind === 'embedded' ? 'an embedded ClickHouse of its own' : 'another ClickHouse server';
  return (
    `the facts of this installation are in ${where}, and this process has ${ours}: reports would show half. ` +
    'Give every machine the same CLICKHOUSE_URL. If the other place is gone for good, as when this machine has lost ' +
    `its disk, run "tollgate facts release --machine ${present.machine}": the next jobs process that starts ` +
    'registers its own, and makes the facts there anew from the ledger.'
  );
}

export interface EmbeddedLock {
  release(): Promise<void>;
}

const ATTEMPTS = 20;
const RETRY_MS = 500;
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Holds the lock of the embedded ClickHouse for the life of this process, on a connection of its own. The connection of
 * a killed predecessor takes a moment to end. Throws FactsElsewhere when another process has the lock.
 */
export async function lockEmbedded({ url, log }: { readonly url: string; readonly log: Log }): Promise<EmbeddedLock> {
  let closed = false;
  let client = await connectAndLock(url, ATTEMPTS);
  const keep = (): void => {
    client.once('end', () => {
      if (!closed) void again();
    });
  };
  const again = async (): Promise<void> => {
    while (!closed) {
      try {
        client = await connectAndLock(url, ATTEMPTS);
        if (closed) await client.end();
        else keep();
        return;
      } catch (error) {
        log.error({ err: error }, 'the lock of the embedded ClickHouse could not be taken again');
        await sleep(RETRY_MS);
      }
    }
  };
  keep();
  return {
    async release() {
      closed = true;
      await client.end().catch(() => undefined);
    },
  };
}

async function connectAndLock(url: string, attempts: number): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'tollgate facts',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  });
  client.on('error', () => undefined); // 'end' follows
  await client.connect();
  for (let attempt = 1; ; attempt += 1) {
    const { rows } = await client.query<{ held: boolean }>('SELECT pg_try_advisory_lock($1) AS held', [EMBEDDED_LOCK]);
    if (rows[0]?.held === true) return client;
    if (attempt === attempts) {
      await client.end().catch(() => undefined);
      throw new FactsElsewhere(
        'another process has an embedded ClickHouse open for this database, perhaps on a copy of this data ' +
          'directory: reports would show half. Stop that one, or give every machine the same CLICKHOUSE_URL',
      );
    }
    await sleep(RETRY_MS);
  }
}
