// The front on node:http, for systems where uWebSockets.js has no binary, and for gateways without a proxy in front,
// since its parser reads requests strictly.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { ClientRequest, ConnectionWatch, Front, FrontMethod, RequestHandler } from './front.ts';
import { NodeConnection } from './node-connection.ts';
import { NodeResponse } from './node-response.ts';
import { RouteTable } from './route-table.ts';

const OPTIONS = {
  maxHeaderSize: 16_384,
  // As with uWebSockets.js, a connection without a whole head, or without a request, is closed after ten seconds.
  // request-body.ts limits how long a body may take.
  headersTimeout: 10_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  requestTimeout: 0,
};

export class NodeFront implements Front {
  private readonly server: Server;
  private readonly routes = new RouteTable<RequestHandler>();
  private readonly connections = new WeakMap<Socket, NodeConnection>();

  constructor() {
    this.server = createServer(OPTIONS, (request, response) => this.serve(request, response));
    // node:http would leave out headers beyond 2,000. The size of a head is bounded.
    this.server.maxHeadersCount = 0;
  }

  handle(method: FrontMethod, pattern: string, handler: RequestHandler): void {
    this.routes.add(method === 'any' ? null : method, pattern, handler);
  }

  watchConnections(watch: ConnectionWatch): void {
    this.server.on('connection', (socket: Socket) => {
      const connection = new NodeConnection(socket);
      this.connections.set(socket, connection);
      // A client that has ended its side has left, as with uWebSockets.js. Destroying the socket makes this known in
      // this tick.
      socket.once('end', () => {
        if (connection.answering !== null) socket.destroy();
      });
      socket.once('close', () => watch.onClosed());
      if (!watch.onOpened(connection.address)) socket.destroy();
    });
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.connections.get(socket);
    if (connection === undefined || connection.isOver) return;
    // As with uWebSockets.js, a client that does not wait for its answer loses the connection, and reaches no handler.
    if (connection.answering !== null) return void socket.destroy();
    // The parser also accepts HTTP/1.0, and takes a head of 2.0 for one of 1.1. A target need not be a path.
    if (request.httpVersion !== '1.1') return refuse(505, response, connection);
    const asked = new NodeRequest(request);
    const found = this.routes.find(asked.getMethod(), asked.getUrl());
    if (found === null) return refuse(400, response, connection);
    asked.parameters = found.parameters;
    found.handler(new NodeResponse(request, response, connection), asked);
  }

  listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      // Not `once`: a connection that cannot be accepted is an error event, too.
      this.server.on('error', (error) => reject(new Error(`cannot listen on ${host}:${port}`, { cause: error })));
      // Not every system lets processes share a port; elsewhere one process has it.
      this.server.listen({ host, port, reusePort: SHARES_PORTS }, resolve);
    });
  }

  stopListening(): void {
    // The HTTP server's own `close` would also close the connections that wait for a request.
    NetServer.prototype.close.call(this.server);
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

const SHARES_PORTS = process.platform === 'linux' || process.platform === 'freebsd';

function refuse(status: number, response: ServerResponse, connection: NodeConnection): void {
  connection.isOver = true;
  response.writeHead(status, { connection: 'close', 'content-length': 0 }).end();
}

class NodeRequest implements ClientRequest {
  parameters: readonly string[] = [];
  private readonly request: IncomingMessage;
  private readonly target: string;
  private readonly queryAt: number;

  constructor(request: IncomingMessage) {
    this.request = request;
    this.target = request.url ?? '';
    this.queryAt = this.target.indexOf('?');
  }

  getMethod(): string {
    return (this.request.method ?? '').toLowerCase();
  }

  getUrl(): string {
    return this.queryAt === -1 ? this.target : this.target.slice(0, this.queryAt);
  }

  getQuery(): string | undefined {
    return this.queryAt === -1 ? undefined : this.target.slice(this.queryAt + 1);
  }

  getParameter(index: number): string | undefined {
    return this.parameters[index];
  }

  forEach(take: (name: string, value: string) => void): void {
    const { rawHeaders } = this.request;
    for (let index = 0; index < rawHeaders.length; index += 2)
      take((rawHeaders[index] as string).toLowerCase(), asUtf8(rawHeaders[index + 1] as string));
  }
}

/** node:http hands on a character for each byte. */
function asUtf8(value: string): string {
  return NOT_ASCII.test(value) ? Buffer.from(value, 'latin1').toString('utf8') : value;
}

const NOT_ASCII = /[\x80-\xff]/;
