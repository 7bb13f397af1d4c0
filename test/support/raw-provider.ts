// A provider for tests that gives the test whole requests as bytes, and answers only with the bytes that the test
// writes. With a key it uses TLS.

import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

export interface RawProvider {
  readonly port: number;
  /** Whole requests, in the order in which they arrived. */
  readonly requests: readonly string[];
  /** Every connection so far, in order. */
  readonly sockets: readonly Socket[];
  close(): Promise<void>;
}

/**
 * `answer` is called with each whole request, its connection, and how many came before it, on this connection and on
 * all.
 */
export type Answer = (
  socket: Socket,
  request: string,
  before: { readonly here: number; readonly anywhere: number },
) => void;

export async function startRawProvider(answer: Answer, tls?: TlsOptions): Promise<RawProvider> {
  const requests: string[] = [];
  const sockets: Socket[] = [];
  const accept = (socket: Socket): void => {
    let waiting = '';
    let here = 0;
    sockets.push(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      waiting += bytes.toString('latin1');
      for (let end = endOfRequest(waiting); end !== -1; end = endOfRequest(waiting)) {
        const request = waiting.slice(0, end);
        waiting = waiting.slice(end);
        requests.push(request);
        answer(socket, request, { here, anywhere: requests.length - 1 });
        here += 1;
      }
    });
  };
  const server: Server =
    tls === undefined ? createPlainServer({ allowHalfOpen: true }, accept) : createTlsServer(tls, accept);
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    sockets,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function endOfRequest(bytes: string): number {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return -1;
  const length = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(bytes.slice(0, headEnd + 2))?.[1] ?? 0);
  const end = headEnd + 4 + length;
  return end <= bytes.length ? end : -1;
}
