// The one way to a ClickHouse: a server by its URL, or the embedded engine by its directory. Everything after is the
// same client and the same SQL.

import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import type { Clock } from '../../platform/clock.ts';

export type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';

/** What reads, and does nothing else. */
export type ClickHouseReader = Pick<ClickHouseClient, 'query'>;

export type ClickHouseLocation = { readonly url: string } | { readonly directory: string };

const REQUEST_TIMEOUT_MS = 30_000;

export async function createClickHouse(location: ClickHouseLocation, clock: Clock): Promise<ClickHouseClient> {
  if ('directory' in location) {
    // The engine is a library of several hundred megabytes, loaded only where it is used.
    const { openEmbeddedClickHouse } = await import('./embedded-clickhouse.ts');
    return openEmbeddedClickHouse({ directory: location.directory, clock });
  }
  return createClient({
    url: location.url,
    application: 'tollgate',
    // Its failures are thrown and logged by us; left to itself the library prints them as well, headers included.
    log: { level: ClickHouseLogLevel.OFF },
    request_timeout: REQUEST_TIMEOUT_MS,
    compression: { request: true, response: true },
    // A server closes idle connections after some seconds; ours must go first, or an insert meets a dead socket.
    keep_alive: { enabled: true, idle_socket_ttl: 2_500 },
  });
}

/** With these a server ends a statement whose client has left; it does that only for statements that may not write. */
export const SERVER_READ_SETTINGS: ClickHouseSettings = {
  readonly: '2',
  cancel_http_readonly_queries_on_client_close: 1,
};

/**
 * The same client for one reader. Once the signal aborts, no statement begins, nobody waits for the one that runs, and
 * a server is left, which ends it there. The embedded engine has no way to end a statement.
 */
export function readingFor(
  client: ClickHouseReader,
  left: AbortSignal,
  settings: ClickHouseSettings,
): ClickHouseReader {
  return {
    query: async (params) => {
      left.throwIfAborted();
      return client.query({ ...params, abort_signal: left, clickhouse_settings: settings });
    },
  };
}

/**
 * Rows of a query, whose values in JSON are as the server writes them: 64-bit integers and decimals are asked for as
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
