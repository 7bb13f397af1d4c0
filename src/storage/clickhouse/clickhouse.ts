// Opens a ClickHouse client: for a server by its URL, or for the embedded engine by its data directory. Everything else
// uses the same client and the same SQL for both.

import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import type { Clock } from '../../platform/clock.ts';

export type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';

type Queries = Pick<ClickHouseClient, 'query'>;

/** The part of a client that only reads. */
export interface ClickHouseReader extends Queries {
  /** A second connection, whose statements run at the same time as those of this one. Absent: this one runs all. */
  readonly secondConnection?: Queries;
}

export type ClickHouseLocation = { readonly url: string } | { readonly directory: string };

const REQUEST_TIMEOUT_MS = 30_000;

export async function createClickHouse(location: ClickHouseLocation, clock: Clock): Promise<ClickHouseClient> {
  if ('directory' in location) {
    // The engine is a library of several hundred megabytes, so it is loaded only when it is used.
    const { readEngineLibrary } = await import('./read-engine-library.ts');
    await readEngineLibrary();
    const { openEmbeddedClickHouse } = await import('./embedded-clickhouse.ts');
    return openEmbeddedClickHouse({ directory: location.directory, clock });
  }
  return createClient({
    url: location.url,
    application: 'tollgate',
    // We log its failures ourselves when they are thrown. The library would print them as well, headers included.
    log: { level: ClickHouseLogLevel.OFF },
    request_timeout: REQUEST_TIMEOUT_MS,
    compression: { request: true, response: true },
    // A server closes idle connections after some seconds. Ours must be closed earlier, or an insert would meet a dead
    // socket.
    keep_alive: { enabled: true, idle_socket_ttl: 2_500 },
  });
}

/**
 * With these settings a server cancels a statement when its client disconnects, which it does only for read-only
 * statements.
 */
export const SERVER_READ_SETTINGS: ClickHouseSettings = {
  readonly: '2',
  cancel_http_readonly_queries_on_client_close: 1,
};

/**
 * A client that stops with a signal. After the abort no further statement is started, nobody waits for the running one,
 * and the connection to a server is closed, so the server cancels it. The embedded engine cannot cancel a statement.
 */
export function readingFor(
  client: ClickHouseReader,
  signal: AbortSignal,
  settings: ClickHouseSettings,
): ClickHouseReader {
  const reading = (queries: Queries): Queries => ({
    query: async (params) => {
      signal.throwIfAborted();
      return queries.query({ ...params, abort_signal: signal, clickhouse_settings: settings });
    },
  });
  return {
    ...reading(client),
    ...(client.secondConnection === undefined ? {} : { secondConnection: reading(client.secondConnection) }),
  };
}

/**
 * The rows of a query, with values as the server writes them in JSON. 64-bit integers and decimals must be selected as
 * text.
 */
export async function selectRows<Row>(
  client: ClickHouseReader,
  query: string,
  parameters: Record<string, unknown> = {},
): Promise<Row[]> {
  const result = await client.query({ query, query_params: parameters, format: 'JSONEachRow' });
  return result.json<Row>();
}
