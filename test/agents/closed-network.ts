// The way out for agents under test: a proxy on loopback that lets nothing through and remembers who was asked for.

import { createServer } from 'node:http';
import type { Socket } from 'node:net';

export interface ClosedNetwork {
  /** Settings that send a program's calls to anywhere but this machine into the wall. */
  readonly env: Readonly<Record<string, string>>;
  /** Hosts that were asked for, each once, and forgets them. */
  takeAttempts(): string[];
  close(): Promise<void>;
}

export async function startClosedNetwork(): Promise<ClosedNetwork> {
  const attempts = new Set<string>();
  const server = createServer((request, response) => {
    attempts.add(URL.parse(request.url ?? '')?.host ?? String(request.headers.host));
    response.writeHead(403).end();
  });
  server.on('connect', (request, socket: Socket) => {
    attempts.add(request.url ?? '');
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy'];
  const direct = '127.0.0.1,localhost';
  return {
    env: { ...Object.fromEntries(names.map((name) => [name, url])), NO_PROXY: direct, no_proxy: direct },
    takeAttempts() {
      const taken = [...attempts].sort();
      attempts.clear();
      return taken;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
