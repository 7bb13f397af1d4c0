// Checks whether a port is free and claims it. Gateways share it with SO_REUSEPORT, which would let two installations
// share it by mistake. So it is probed without that option and claimed while the supervisor lives.

import { createServer, type Server } from 'node:net';

export interface PortClaim {
  readonly port: number;
  release(): void;
}

/** Claims the port; null: another program on this machine uses it. */
export async function claimPort(host: string, port: number): Promise<PortClaim | null> {
  const claim = await listen({ path: `\0tollgate-port-${port}` });
  if (claim === 'taken') return null;
  const probe = await listen({ host, port, exclusive: true }).catch((error: unknown) => {
    claim?.close();
    throw error;
  });
  if (probe === 'taken') {
    claim?.close();
    return null;
  }
  await new Promise((resolve) => (probe === null ? resolve(null) : probe.close(resolve)));
  return { port, release: () => claim?.close() };
}

const PORTS_TRIED_MAX = 100;

/** Claims the first free port from `port` on. */
export async function claimNextPort(host: string, port: number): Promise<PortClaim | null> {
  for (let candidate = port; candidate < Math.min(port + PORTS_TRIED_MAX, 65_536); candidate++) {
    const claim = await claimPort(host, candidate);
    if (claim !== null) return claim;
  }
  return null;
}

/**
 * An abstract socket name (Linux) is held by exactly one process and disappears with it. null on other systems, where
 * two starts within the same second are not detected.
 */
async function listen(
  where: { path: string } | { host: string; port: number; exclusive: true },
): Promise<Server | 'taken' | null> {
  if ('path' in where && process.platform !== 'linux') return null;
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.unref();
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve('taken') : reject(error),
    );
    server.listen(where, () => resolve(server));
  });
}
