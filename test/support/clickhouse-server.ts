// A ClickHouse server for tests: the HTTP interface that the client uses, with the embedded engine behind it. A test
// can take it away in two ways.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { gunzipSync } from 'node:zlib';
import type { ClickHouseClient } from '../../src/storage/clickhouse/clickhouse.ts';

export interface ClickHouseServer {
  readonly url: string;
  /** Stops listening, and cuts open connections. */
  stopListening(): Promise<void>;
  listenAgain(): Promise<void>;
  /** `after`: every statement takes effect, but its answer is lost. */
  lose: 'nothing' | 'after';
  /** Running statements whose client has left. */
  readonly left: number;
  /** How many of these a server would cancel: they ask for it in their settings, and do not write. */
  readonly ended: number;
  close(): Promise<void>;
}

/** A server's defaults: http_max_uri_size and http_max_field_value_size. */
const URI_BYTES_MAX = 1_048_576;
const PARAMETER_BYTES_MAX = 131_072;

export async function startClickHouseServer(engine: ClickHouseClient): Promise<ClickHouseServer> {
  const server = createServer({ maxHeaderSize: URI_BYTES_MAX }, (request, response) => {
    response.on('close', () => {
      if (response.writableFinished) return;
      left += 1;
      if (isEndedWithoutClient(request)) ended += 1;
    });
    serve(engine, request, response, front).catch((fault: unknown) => {
      // Like the server, the answer has the error code only in its text.
      if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/plain' });
      response.end(String(fault));
    });
  });
  let port = 0;
  let left = 0;
  let ended = 0;
  const front: ClickHouseServer = {
    get url() {
      return `http://127.0.0.1:${port}`;
    },
    lose: 'nothing',
    get left() {
      return left;
    },
    get ended() {
      return ended;
    },
    stopListening: () => stop(server),
    listenAgain: () => listen(server, port),
    close: () => stop(server),
  };
  await listen(server, 0);
  ({ port } = server.address() as AddressInfo);
  return front;
}

async function serve(
  engine: ClickHouseClient,
  request: IncomingMessage,
  response: ServerResponse,
  front: ClickHouseServer,
): Promise<void> {
  const { search, searchParams } = new URL(request.url ?? '/', 'http://clickhouse');
  if (search.split('&').some((field) => field.length > PARAMETER_BYTES_MAX))
    throw new Error('Code: 1000. HTML Form Exception: Field value too long');
  const body = await buffer(request);
  const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString('utf8');
  const parameters = [...searchParams]
    .filter(([name]) => name.startsWith('param_'))
    .map(([name, value]) => [name.slice('param_'.length), value] as const);
  const result = await engine.exec({
    query: (searchParams.get('query') ?? '') + text,
    query_params: Object.fromEntries(parameters),
  });
  if (front.lose === 'after') {
    result.stream.resume();
    request.socket.destroy();
    return;
  }
  await pipeline(result.stream, response);
}

function isEndedWithoutClient({ url = '/' }: IncomingMessage): boolean {
  const { searchParams } = new URL(url, 'http://clickhouse');
  return (
    Number(searchParams.get('readonly')) > 0 && searchParams.get('cancel_http_readonly_queries_on_client_close') === '1'
  );
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}

async function stop(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}
