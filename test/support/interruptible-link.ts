// A TCP link between an installation and a test's Postgres that can be cut and restored: while it is cut, its
// connections are closed and nobody listens. It can also fall silent: nothing more passes, and neither side is told.

import { connect, createServer, type Socket } from 'node:net';
import pg from 'pg';

export interface InterruptibleLink {
  /** The same database through the link. */
  readonly url: string;
  cut(): Promise<void>;
  mend(): Promise<void>;
  /** Silences the present connections for ever. */
  silence(): void;
}

export async function startInterruptibleLink(to: string): Promise<InterruptibleLink> {
  const { host, port: toPort, user, password, database } = new pg.Client({ connectionString: to });
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    // A local server may listen on a socket in a directory.
    const onwards = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${toPort}`) : connect(toPort, host);
    for (const [one, other] of [
      [socket, onwards],
      [onwards, socket],
    ] as const) {
      sockets.add(one);
      one.on('error', () => one.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject);
        resolve();
      });
    });
  await listen(0);
  const { port } = server.address() as { port: number };
  const account = `${encodeURIComponent(user ?? '')}:${encodeURIComponent(password ?? '')}`;
  return {
    url: `postgres://${account}@127.0.0.1:${port}/${database ?? ''}`,
    cut: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      return closed;
    },
    mend: () => listen(port),
    silence: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
  };
}
