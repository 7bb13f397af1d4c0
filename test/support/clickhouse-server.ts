// A ClickHouse server for tests: the HTTP interface that the client speaks, with the embedded engine behind it. It can be away, in two ways.

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
  close(): Promise<void>;
}

export async function startClickHouseServer(engine: ClickHouseClient): Promise<ClickHouseServer> {
  const server = createServer((request, response) => {
    serve(engine, request, response, front).catch((fault: unknown) => {
      // As the server does it: the code stands in the text.
      if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/plain' });
      response.end(String(fault));
    });
  });
  let port = 0;
  const front: ClickHouseServer = {
    get url() {
      return `http://127.0.0.1:${port}`;
    },
    lose: 'nothing',
    stopListening: () => stop(server),
    listenAgain: () => listen(server, port),
    close: () => stop(server),
  };
  await listen(server, 0);
  ({ port } = server.address() as AddressInfo);
  return front;
}

async function serve(engine: ClickHouseClient, request: IncomingMessage, response: ServerResponse, front: ClickHouseServer): Promise<void> {
  const { searchParams } = new URL(request.url ?? '/', 'http://clickhouse');
  const body = await buffer(request);
  const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString('utf8');
  const parameters = [...searchParams].filter(([name]) => name.startsWith('param_')).map(([name, value]) => [name.slice('param_'.length), value] as const);
  const result = await engine.exec({ query: (searchParams.get('query') ?? '') + text, query_params: Object.fromEntries(parameters) });
  if (front.lose === 'after') {
    result.stream.resume();
    request.socket.destroy();
    return;
  }
  await pipeline(result.stream, response);
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
