// The admin address for the operator, on loopback by default: /metrics, /healthz (this process lives), /readyz (all
// that should serve, serves), /profile (of a process, with ADMIN_TOKEN).

import { createServer, type IncomingMessage, type Server } from 'node:http';
import { finished } from 'node:stream/promises';
import { claimPort } from '../installation/ports.ts';
import { answerProfile, type ProfileSource } from './answer-profile.ts';
import type { Readiness } from './messages.ts';

export interface AdminServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface AdminServerOptions {
  readonly host: string;
  readonly port: number;
  /** When the port is taken, take the next free one. */
  readonly orNext: boolean;
  readonly metrics: () => Promise<string>;
  /** The readiness of everything that should serve, with the name of each process. */
  readonly readiness: () => Promise<Readiness>;
  /** Absent: /profile does not exist. */
  readonly profiles?: ProfileSource;
}

const PORTS_TRIED_MAX = 100;
const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** null: the port is taken. */
export async function startAdminServer(options: AdminServerOptions): Promise<AdminServer | null> {
  const last = options.orNext ? Math.min(options.port + PORTS_TRIED_MAX, 65_536) : options.port + 1;
  for (let port = options.port; port < last; port++) {
    const claim = await claimPort(options.host, port);
    if (claim === null) continue;
    const server = createServer((request, response) => {
      void answer(request, options).then(
        ({ status, contentType, body }) => {
          response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
        },
        () => response.writeHead(500).end(),
      );
      // The request's body is not read, and a broken connection does not matter.
      finished(response).catch(() => undefined);
    });
    server.requestTimeout = 5_000;
    if (await listen(server, options.host, port))
      return { port, close: () => close(server).finally(() => claim.release()) };
    claim.release();
  }
  return null;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

async function answer(request: IncomingMessage, options: AdminServerOptions): Promise<Answer> {
  const [path, query = ''] = (request.url ?? '/').split('?');
  if (path === '/healthz') return text(200, 'ok\n');
  if (path === '/metrics') return { status: 200, contentType: METRICS_CONTENT_TYPE, body: await options.metrics() };
  if (path === '/readyz') {
    const { notReady, impaired } = await options.readiness();
    const first = notReady.length === 0 ? 'ready' : `not ready: ${notReady.join(', ')}`;
    return text(notReady.length === 0 ? 200 : 503, `${[first, ...impaired].join('\n')}\n`);
  }
  if (path === '/profile' && options.profiles !== undefined) {
    const { method = 'GET', headers } = request;
    const asked = { method, query, authorization: headers.authorization ?? '' };
    const { status, body } = await answerProfile(options.profiles, asked);
    return status === 200 ? { status, contentType: 'application/json', body } : text(status, body);
  }
  return text(404, 'not found: /metrics, /healthz, /readyz are here\n');
}

function text(status: number, body: string): Answer {
  return { status, contentType: 'text/plain; charset=utf-8', body };
}

async function listen(server: Server, host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    );
    server.listen({ host, port, exclusive: true }, () => {
      server.removeAllListeners('error');
      resolve(true);
    });
  });
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
