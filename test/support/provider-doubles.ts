// The simulated provider in the shapes of the known ones, in the test's process: over https by their own host names
// behind a proxy, and over http by a path. The bytes of requests and answers are kept.

import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { PRESETS, type Preset, type PresetName } from '../../src/domain/configuration/presets.ts';
import type { CallEnd } from '../../src/simulator/call-log.ts';
import { startSimulator } from '../../src/simulator/server.ts';

/** The certificate of all hosts of the presets, which is its own authority. */
export const PROVIDERS_CERTIFICATE = fileURLToPath(new URL('./tls/providers-certificate.pem', import.meta.url));
const KEY = fileURLToPath(new URL('./tls/providers-key.pem', import.meta.url));

export interface DoubleExchange {
  readonly host: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly status: number;
  readonly reply: Buffer;
}

export interface ProviderDoubles {
  readonly url: string;
  /** The address of a proxy behind which the hosts of all presets are doubles. */
  readonly proxyUrl: string;
  /** Where the hosts of all presets listen, over TLS. */
  readonly tlsPort: number;
  readonly exchanges: readonly DoubleExchange[];
  /** The log entries of ended calls, in their order. */
  readonly ends: readonly CallEnd[];
  /** The address of a server that is only this double, such as a local server. */
  addressAs(name: PresetName): Promise<string>;
  stop(): Promise<void>;
}

/** The fields of `with` for each preset that needs them. */
const PRESET_WITH: Readonly<Partial<Record<string, Readonly<Record<string, string>>>>> = {
  azure: { resource: 'acme-eu' },
  'azure-classic': { resource: 'acme-eu' },
  'azure-anthropic': { resource: 'acme-eu' },
  bedrock: { region: 'eu-west-1' },
  'bedrock-mantle': { region: 'eu-west-1' },
};

/** A provider entry of the configuration file with only the preset; a proxy leads it to its double. */
export function presetProvider(name: PresetName, apiKey: string): Readonly<Record<string, unknown>> {
  const values = PRESET_WITH[name];
  return { preset: name, api_key: apiKey, ...(values === undefined ? {} : { with: values }) };
}

/** The same provider, called directly: the path of the double stands before that of the preset. */
export function directProvider(name: PresetName, apiKey: string, doubles: ProviderDoubles) {
  const preset: Preset = PRESETS[name];
  const { pathname } = new URL(preset.provider.base_url.replaceAll(/\{\w+\}/g, 'x'));
  return {
    ...presetProvider(name, apiKey),
    base_url: `${doubles.url}/as/${name}${pathname === '/' ? '' : pathname}`,
  };
}

export async function startProviderDoubles(): Promise<ProviderDoubles> {
  const exchanges: DoubleExchange[] = [];
  const ends: CallEnd[] = [];
  const open = new Set<Socket>();
  const log = {
    write: (line: { readonly type: string }) => {
      if (line.type === 'end') ends.push(line as CallEnd);
    },
    close: () => undefined,
  };
  const startDouble = async (as?: string) => {
    const { url, server } = await startSimulator({ host: '127.0.0.1', port: 0, log, delayMs: 0, as });
    server.prependListener('request', (request, response) => keep(request, response, exchanges));
    return { url, server };
  };
  const usual = await startDouble();
  const locals: Awaited<ReturnType<typeof startDouble>>[] = [];
  const tls = createTlsServer({ cert: readFileSync(PROVIDERS_CERTIFICATE), key: readFileSync(KEY) }, (socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    usual.server.emit('connection', socket);
  });
  const proxy = createServer((_, response) => response.writeHead(405).end());
  proxy.on('connect', (_: IncomingMessage, socket: Socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    socket.write('HTTP/1.1 200 Connected\r\n\r\n', () => tls.emit('connection', socket));
  });
  for (const server of [proxy, tls]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: usual.url,
    proxyUrl: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    tlsPort: (tls.address() as AddressInfo).port,
    exchanges,
    ends,
    async addressAs(name) {
      const local = await startDouble(name);
      locals.push(local);
      return new URL(local.url).host;
    },
    async stop() {
      for (const socket of open) socket.destroy();
      const servers = [usual.server, ...locals.map(({ server }) => server), proxy];
      await new Promise((resolve) => tls.close(resolve));
      await Promise.all(
        servers.map((server) => {
          server.closeAllConnections();
          return new Promise((resolve) => server.close(resolve));
        }),
      );
    },
  };
}

function keep(request: IncomingMessage, response: ServerResponse, exchanges: DoubleExchange[]): void {
  const arrived: Buffer[] = [];
  const answered: Buffer[] = [];
  request.on('data', (chunk: Buffer) => arrived.push(chunk));
  const write = response.write.bind(response) as (...all: unknown[]) => boolean;
  const end = response.end.bind(response) as (...all: unknown[]) => ServerResponse;
  response.write = ((chunk: string | Uint8Array, ...rest: []) => {
    answered.push(Buffer.from(chunk as Uint8Array));
    return write(chunk, ...rest);
  }) as typeof response.write;
  response.end = ((...args: unknown[]) => {
    // A short reply passes its last bytes here: node:http does not call `write` for them.
    if (typeof args[0] === 'string' || Buffer.isBuffer(args[0])) answered.push(Buffer.from(args[0] as Uint8Array));
    exchanges.push({
      host: request.headers.host ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(arrived),
      status: response.statusCode,
      reply: Buffer.concat(answered),
    });
    return end(...args);
  }) as typeof response.end;
}
