// A ClickHouse server for tests: the HTTP interface that the client speaks, with the embedded engine behind it. It can
// be away, in two ways.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { gunzipSync } from 'node:zlib';
import type { ClickHouseClient } from '../../src/storage/clickhouse/clickhouse.ts';

export interface ClickHouseServer {
  readonly url: string;
  /** Nobody listens any more, and what was connected is cut. */
  stopListening(): Promise<void>;
  listenAgain(): Promise<void>;
  /** `after`: every statement takes effect and its answer is lost. */
  lose: 'nothing' | 'after';
  /** Statements under way whose client has left. */
  readonly left: number;
  /** Of them those a server ends for that: it wants to be asked to, and they may not write. */
  readonly ended: number;
  close(): Promise<void>;
}

/** As a server has them of its own accord: http_max_uri_size and http_max_field_value_size. */
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
      // As the server does it: the code stands in the text.
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
