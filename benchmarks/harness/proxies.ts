// The proxies of a run: how each is started in front of the stub, which of its processes count, and how a request is
// addressed to it.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../test/support/free-port.ts';
import { endWithThis, startNodeServer, stopChild } from './child-server.ts';
import { onCore, PROXY_CORE } from './cores.ts';
import { descendantsOf } from './cpu-time.ts';

/**
 * The replies that the stubs can give, as the prefix of the request's path (stub/provider-stub.ts; the third number of
 * `json` is the TLS stub's latency).
 */
export const STUB_REPLIES = [
  'json/1024',
  'json/1024/5',
  'events/200/1/5',
  'events/400/16/16',
  'events/1000/1/30000',
] as const;

export type StubReply = (typeof STUB_REPLIES)[number];

export interface Proxy {
  readonly name: string;
  readonly port: number;
  /** The processes whose CPU and memory are the proxy's. */
  readonly pids: readonly number[];
  /** Where and how to request that reply; `exactBytes` is false for a proxy that rewrites bodies. */
  address(reply: StubReply): {
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly model: string;
  };
  readonly exactBytes: boolean;
  stop(): Promise<void>;
}

/** Headers that a client sends to every proxy. */
export const CLIENT_HEADERS: Readonly<Record<string, string>> = {
  authorization: 'Bearer tg-benchmark-0123456789abcdefghijklmnopqrstuvwxyz',
  'user-agent': 'OpenAI/JS 6.0.0',
};

export function modelOf(reply: StubReply): string {
  return `bench/${reply.replaceAll('/', '-')}`;
}

function plainAddress(reply: StubReply): ReturnType<Proxy['address']> {
  return { path: `/${reply}/v1/chat/completions`, headers: CLIENT_HEADERS, model: modelOf(reply) };
}

/** No proxy at all: what the machine, the stub and the load generator cost by themselves. */
export function direct(stubPort: number): Proxy {
  return {
    name: 'direct',
    port: stubPort,
    pids: [],
    address: plainAddress,
    exactBytes: true,
    stop: () => Promise.resolve(),
  };
}

const BARE_RELAY = fileURLToPath(new URL('../relays/bare-relay.ts', import.meta.url));
const FRONT_ONLY = fileURLToPath(new URL('../relays/front-only.ts', import.meta.url));

export function startBareRelay(stubPort: number): Promise<Proxy> {
  return startRelay('bare', BARE_RELAY, stubPort);
}

export function startFrontOnly(stubPort: number): Promise<Proxy> {
  return startRelay('front', FRONT_ONLY, stubPort);
}

async function startRelay(name: string, file: string, stubPort: number): Promise<Proxy> {
  const server = await startNodeServer(PROXY_CORE, file, [`http://127.0.0.1:${stubPort}`]);
  return {
    name,
    port: server.port,
    pids: [server.pid],
    address: plainAddress,
    exactBytes: true,
    stop: () => server.stop(),
  };
}

const NGINX_PATHS = ['/usr/sbin/nginx', '/usr/local/sbin/nginx', '/usr/local/bin/nginx', '/opt/homebrew/bin/nginx'];
const NGINX_CONF = fileURLToPath(new URL('../peers/nginx.conf', import.meta.url));

/**
 * Starts nginx; null if it is not installed. `certificate` is the file of the certificate that the stub shows over TLS;
 * null: the stub listens without TLS.
 */
export async function startNginx(stubPort: number, certificate: string | null = null): Promise<Proxy | null> {
  const nginx = NGINX_PATHS.find((path) => existsSync(path));
  if (nginx === undefined) return null;
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-nginx-'));
  const port = await findFreePort();
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const values: Record<string, string> = {
    DIRECTORY: directory,
    PORT: String(port),
    UPSTREAM_PORT: String(stubPort),
    USER: user,
    ...nginxTls(certificate),
  };
  const conf = readFileSync(NGINX_CONF, 'utf8').replaceAll(
    /@([A-Z_]+)@/g,
    (whole, name: string) => values[name] ?? whole,
  );
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'nginx.conf'), conf);
  const [command, args] = onCore(PROXY_CORE, nginx, ['-p', directory, '-c', join(directory, 'nginx.conf')]);
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  endWithThis(child);
  await untilListening(port);
  const master = child.pid as number;
  // The master listens before it has forked the worker, whose CPU is what counts.
  while (descendantsOf(master).length === 0) await sleep(10);
  return {
    name: 'nginx',
    port,
    pids: [master, ...descendantsOf(master)],
    address: plainAddress,
    exactBytes: true,
    stop: async () => {
      await stopChild(child);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/**
 * TLS 1.3, which Node negotiates: by default nginx 1.22 offers providers TLS 1.2 at most, and then uses AES with 128
 * bits where the product uses 256.
 */
function nginxTls(certificate: string | null): Record<string, string> {
  if (certificate === null) return { SCHEME: 'http', TLS: '' };
  const lines = [
    'proxy_ssl_protocols TLSv1.2 TLSv1.3',
    'proxy_ssl_server_name on',
    'proxy_ssl_name localhost',
    'proxy_ssl_verify on',
    `proxy_ssl_trusted_certificate ${certificate}`,
  ];
  return { SCHEME: 'https', TLS: `${lines.join(';\n      ')};` };
}

const LISTEN_TIMEOUT_MS = 30_000;

export async function untilListening(port: number): Promise<void> {
  const deadlineMs = performance.now() + LISTEN_TIMEOUT_MS;
  while (performance.now() < deadlineMs) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => resolve(false));
    });
    if (open) return;
    await sleep(50);
  }
  throw new Error(`nothing listens on port ${port}`);
}
