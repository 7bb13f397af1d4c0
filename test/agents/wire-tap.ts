// Stands between an agent and the gateway as a plain TCP relay: every byte passes as it is, and a copy is read
// afterwards as HTTP/1.1.

import { connect, createServer, type Socket } from 'node:net';

export interface TappedExchange {
  readonly method: string;
  readonly path: string;
  readonly requestHeaders: ReadonlyMap<string, string>;
  readonly requestBody: Buffer;
  /** null: no status line came back. */
  readonly status: number | null;
  readonly responseHeaders: ReadonlyMap<string, string>;
  readonly responseBody: Buffer;
  /** The response came whole, by its own framing. */
  readonly complete: boolean;
  /** The agent was the first to end the connection. */
  readonly clientLeft: boolean;
}

export interface WireTap {
  readonly url: string;
  /** Every request so far in the order of their first bytes. */
  exchanges(): TappedExchange[];
  close(): Promise<void>;
}

interface Connection {
  readonly sent: Chunk[];
  readonly received: Chunk[];
  firstToEnd: 'client' | 'gateway' | null;
}

interface Chunk {
  readonly order: number;
  readonly bytes: Buffer;
}

interface Message {
  readonly startLine: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly complete: boolean;
  /** Where it begins in its direction of the connection. */
  readonly at: number;
}

export async function startWireTap(targetUrl: string): Promise<WireTap> {
  const target = new URL(targetUrl);
  const connections: Connection[] = [];
  const sockets = new Set<Socket>();
  let order = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    const connection: Connection = { sent: [], received: [], firstToEnd: null };
    connections.push(connection);
    const join = (from: Socket, to: Socket, kept: Chunk[]) => {
      sockets.add(from);
      from.on('data', (bytes: Buffer) => {
        kept.push({ order, bytes });
        order += 1;
      });
      from.pipe(to);
      // A reset of one side is a reset of the other, and the copy says that the message is not whole.
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroySoon();
      });
    };
    client
      .once('end', () => (connection.firstToEnd ??= 'client'))
      .once('error', () => (connection.firstToEnd ??= 'client'));
    upstream
      .once('end', () => (connection.firstToEnd ??= 'gateway'))
      .once('error', () => (connection.firstToEnd ??= 'gateway'));
    join(client, upstream, connection.sent);
    join(upstream, client, connection.received);
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    exchanges: () =>
      connections
        .flatMap(readExchanges)
        .sort((left, right) => left.order - right.order)
        .map(({ exchange }) => exchange),
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function readExchanges({ sent, received, firstToEnd }: Connection): { exchange: TappedExchange; order: number }[] {
  const requests = readMessages(joinChunks(sent), () => false);
  const methods = requests.map(({ startLine }) => startLine.split(' ')[0] ?? '');
  const responses = readMessages(joinChunks(received), (index) => methods[index] === 'HEAD');
  return requests.map((request, index) => {
    const response = responses[index];
    const status = Number(response?.startLine.split(' ')[1]);
    const exchange: TappedExchange = {
      method: methods[index] ?? '',
      path: request.startLine.split(' ')[1] ?? '',
      requestHeaders: request.headers,
      requestBody: request.body,
      status: Number.isNaN(status) ? null : status,
      responseHeaders: response?.headers ?? new Map(),
      responseBody: response?.body ?? Buffer.alloc(0),
      complete: request.complete && response?.complete === true,
      clientLeft: firstToEnd === 'client',
    };
    return { exchange, order: orderAt(sent, request.at) };
  });
}

function joinChunks(chunks: readonly Chunk[]): Buffer {
  return Buffer.concat(chunks.map(({ bytes }) => bytes));
}

function orderAt(chunks: readonly Chunk[], at: number): number {
  let end = 0;
  for (const { order, bytes } of chunks) {
    end += bytes.length;
    if (at < end) return order;
  }
  return Number.POSITIVE_INFINITY;
}

function readMessages(bytes: Buffer, withoutBody: (index: number) => boolean): Message[] {
  const messages: Message[] = [];
  let at = 0;
  for (;;) {
    const headEnd = bytes.indexOf('\r\n\r\n', at);
    if (headEnd === -1) return messages;
    const [startLine = '', ...lines] = bytes.toString('latin1', at, headEnd).split('\r\n');
    const headers = new Map(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const bodyAt = headEnd + 4;
    if (/^HTTP\/1\.1 1\d\d/.test(startLine) && !startLine.startsWith('HTTP/1.1 101')) {
      at = bodyAt;
      continue;
    }
    const bodiless = withoutBody(messages.length) || /^HTTP\/1\.1 (101|204|304)/.test(startLine);
    const { body, end, complete } = bodiless
      ? { body: Buffer.alloc(0), end: bodyAt, complete: true }
      : readBody(bytes, bodyAt, headers);
    messages.push({ startLine, headers, body, complete, at });
    at = end;
  }
}

function readBody(
  bytes: Buffer,
  at: number,
  headers: ReadonlyMap<string, string>,
): { body: Buffer; end: number; complete: boolean } {
  if (headers.get('transfer-encoding')?.toLowerCase() === 'chunked') return readChunks(bytes, at);
  const length = Number(headers.get('content-length') ?? 0);
  const body = bytes.subarray(at, at + length);
  return { body, end: at + body.length, complete: body.length === length };
}

function readChunks(bytes: Buffer, start: number): { body: Buffer; end: number; complete: boolean } {
  const pieces: Buffer[] = [];
  let at = start;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const size = lineEnd === -1 ? Number.NaN : Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    const dataAt = lineEnd + 2;
    const end = dataAt + size + 2;
    if (!Number.isNaN(size)) pieces.push(bytes.subarray(dataAt, dataAt + size));
    // What came of a chunk counts as read: the line end behind it may travel with the next one.
    if (Number.isNaN(size) || end > bytes.length)
      return { body: Buffer.concat(pieces), end: bytes.length, complete: false };
    if (size === 0) return { body: Buffer.concat(pieces), end, complete: true };
    at = end;
  }
}
