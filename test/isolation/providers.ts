// The providers of a run: real sockets that listen, and the readers that stand still until enough exchanges are over.

import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { SeenPlaceholders } from './guarded.ts';
import type { OwnKeys } from './own-keys.ts';
import { ProviderConnection } from './provider-connection.ts';
import type { ProviderParts, ProviderRun } from './provider-run.ts';
import { PROVIDERS, type ProviderId } from './world.ts';

const STALL_MS_MAX = 1_500;
const TLS_FILE = (name: string): Buffer =>
  readFileSync(fileURLToPath(new URL(`../support/tls/localhost-${name}.pem`, import.meta.url)));

export class Providers implements ProviderRun {
  ownKeys: OwnKeys | null = null;
  placeholders = new SeenPlaceholders();
  readonly urls = new Map<ProviderId, string>();
  readonly parts: ProviderParts;
  private readonly servers: Server[] = [];
  private readonly sockets = new Set<Socket>();
  /** Stalled readers, the oldest first. */
  private readonly stalled: { readonly untilExchanges: number; readonly resume: () => void }[] = [];

  constructor(parts: ProviderParts) {
    this.parts = parts;
  }

  async listen(): Promise<void> {
    for (const { id, isTls } of PROVIDERS) {
      const accept = (socket: Socket): void => {
        this.sockets.add(socket);
        socket.once('close', () => this.sockets.delete(socket));
        new ProviderConnection(this, id, socket).begin();
      };
      const server: Server = isTls
        ? createTlsServer({ key: TLS_FILE('key'), cert: TLS_FILE('certificate') }, accept)
        : createPlainServer({ allowHalfOpen: true, noDelay: true }, accept);
      server.on('tlsClientError', () => undefined);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 1_024, resolve));
      const { port } = server.address() as AddressInfo;
      this.urls.set(id, isTls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`);
      this.servers.push(server);
    }
  }

  stall(resume: () => void): void {
    this.stalled.push({ untilExchanges: this.parts.watch().exchanges + 40, resume });
    setTimeout(() => this.release(Number.POSITIVE_INFINITY, 1), STALL_MS_MAX).unref();
  }

  /** Lets stalled readers read on once enough exchanges are over. */
  release(exchanges: number, most = Number.POSITIVE_INFINITY): void {
    for (let left = most; left > 0; left -= 1) {
      const [oldest] = this.stalled;
      if (oldest === undefined || oldest.untilExchanges > exchanges) return;
      this.stalled.shift();
      oldest.resume();
    }
  }

  async close(): Promise<void> {
    const closed = this.servers.map((server) => new Promise((resolve) => server.close(resolve)));
    for (const socket of this.sockets) socket.destroy();
    await Promise.all(closed);
  }
}
