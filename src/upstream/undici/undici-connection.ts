// One dispatcher of undici for one address, directly or through a proxy, over one connection at a time. It keeps the
// socket from the first step of connecting, so that it can end any step: undici itself waits five minutes for a proxy
// that does not answer CONNECT.

import type { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher, ProxyAgent, Socks5ProxyAgent } from 'undici';
import { HEAD_BYTES_MAX, KEEP_ALIVE_MS, KEEP_ALIVE_MS_MAX } from '../connection-limits.ts';
import type { NameLookups } from '../http1/name-lookups.ts';
import type { TlsOptions } from '../tls-files.ts';
import type { Carrier } from './exchange.ts';

export interface UndiciConnectionParams {
  readonly origin: string;
  /** The address of a proxy; null: none. */
  readonly proxy: string | null;
  /** 2: many exchanges share the connection. */
  readonly http: 1 | 2;
  readonly tls: TlsOptions;
  readonly connectMs: number;
  readonly names: NameLookups;
}

const STREAMS_MAX = 1_000;

/** undici's own time limits of a reply are off, because exchange.ts has ours. */
const LIMITS = {
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveTimeout: KEEP_ALIVE_MS,
  keepAliveMaxTimeout: KEEP_ALIVE_MS_MAX,
  maxHeaderSize: HEAD_BYTES_MAX,
};

/**
 * How many sockets may be opened for a request before it goes out. Where a socket is lost before that, undici opens
 * another one for ever, for example behind a proxy that sends more than its answer to CONNECT.
 */
const SOCKETS_MAX = 2;

export class UndiciConnection implements Carrier {
  readonly dispatcher: Dispatcher;
  readonly isShared: boolean;
  readonly openedAtMs: number;
  idleSinceMs: number;
  openExchanges = 0;
  /** How many exchanges the present socket has carried to their end. */
  exchanges = 0;
  /** A request has gone out on the present socket. */
  isUp = false;
  /** How many sockets were opened since a request last went out. */
  private socketsInVain = 0;
  /** The socket to the proxy, or to the provider where there is no proxy. */
  private socket: Socket | null = null;

  constructor(params: UndiciConnectionParams, nowMs: number) {
    this.isShared = params.http === 2;
    this.openedAtMs = nowMs;
    this.idleSinceMs = nowMs;
    this.dispatcher = this.makeDispatcher(params);
  }

  private makeDispatcher({ origin, proxy, http, tls, connectMs, names }: UndiciConnectionParams): Dispatcher {
    const allowH2 = http === 2;
    const options = { ...LIMITS, allowH2, pipelining: allowH2 ? STREAMS_MAX : 1, connections: 1 };
    const { ca, ...ownCertificate } = tls;
    const providerTls = {
      ...ownCertificate,
      ...(ca === undefined ? {} : { ca: [...ca] }),
      timeout: connectMs,
      allowH2,
    };
    const lookup = names.lookup;
    if (proxy === null) return new Client(origin, { ...options, connect: this.watched({ ...providerTls, lookup }) });
    // The name of a proxy is looked up as those of providers are.
    const connect = this.watched({ lookup, timeout: connectMs, allowH2: false });
    if (/^socks5?:/.test(proxy))
      return new Socks5ProxyAgent(proxy, { ...options, connect, connectTimeout: connectMs, requestTls: providerTls });
    return new ProxyAgent({
      ...options,
      uri: proxy,
      proxyTunnel: true,
      clientFactory: (url) => new Client(url, { connect, headersTimeout: connectMs }),
      requestTls: providerTls,
    });
  }

  /** undici's own connector; the socket that it opens is kept in `socket`. */
  private watched(options: buildConnector.BuildOptions): buildConnector.connector {
    const connect = buildConnector(options) as (...params: Parameters<buildConnector.connector>) => Socket;
    return (params, callback) => {
      // undici opens another socket when the last one has ended; the new one has carried no exchange yet.
      this.exchanges = 0;
      this.isUp = false;
      this.socketsInVain += 1;
      if (this.socketsInVain > SOCKETS_MAX) {
        callback(new Error('each connection was lost before a request could go out'), null);
        return;
      }
      this.socket = connect(params, callback);
    };
  }

  /** A request goes out, so the connection is up all the way to the provider. */
  onSent(): void {
    this.isUp = true;
    this.socketsInVain = 0;
  }

  /** Ends it now, with everything that is under way on it. */
  destroy(reason: Error): void {
    this.dispatcher.destroy(reason).catch(() => undefined);
    // No client of undici owns a socket that is connecting, or that was handed from the proxy's client to the
    // provider's.
    this.socket?.destroy();
  }

  /** Ends it once nothing is under way on it. Never rejects. */
  close(): Promise<void> {
    return this.dispatcher.close().catch(() => undefined);
  }
}
