// The connections of undici to one address: for providers behind a proxy or over HTTP/2, and for all of them where
// UPSTREAM_CLIENT says so.

import { Client, type Dispatcher, ProxyAgent, Socks5ProxyAgent } from 'undici';
import { type Clock, systemClock } from '../../platform/clock.ts';
import { type CallObserver, type ProviderOrigin, startCall, type UpstreamCall } from '../call.ts';
import type { NameLookups } from '../http1/name-lookups.ts';
import type { UpstreamRequest } from '../http1/request-head.ts';
import { LENT_MS_MAX, type UpstreamTimeouts } from '../origin.ts';
import type { ReplyHandler } from '../reply-handler.ts';
import type { TlsOptions } from '../tls-files.ts';
import { cancelStreams } from './cancel-streams.ts';
import { type ExchangeOwner, UndiciExchange } from './exchange.ts';

export interface UndiciParams {
  readonly origin: string;
  readonly timeouts: UpstreamTimeouts;
  /** The address of a proxy; null: none. */
  readonly proxy: string | null;
  /** 2: many exchanges share one connection. */
  readonly http: 1 | 2;
  readonly tls: TlsOptions;
  readonly clock?: Clock;
  readonly names: NameLookups;
}

const STREAMS_MAX = 1_000;
/** How long undici keeps a connection idle where the server does not say, as our own client does. */
const KEEP_ALIVE_MS = 4_000;
const KEEP_ALIVE_MS_MAX = 60_000;

/** A dispatcher, with when it was made and how often it was used. */
interface Lendable {
  readonly dispatcher: Dispatcher;
  readonly sinceMs: number;
  idleSinceMs: number;
  exchanges: number;
}

export class UndiciOrigin implements ProviderOrigin, ExchangeOwner {
  readonly origin: string;
  readonly host: string;
  readonly clock: Clock;
  readonly timeouts: UpstreamTimeouts;
  openCalls = 0;
  private readonly params: UndiciParams;
  private readonly open = new Map<UndiciExchange, Lendable>();
  /** Over HTTP/1.1 without a proxy each exchange has a client of one connection to itself: these are idle. */
  private readonly free: Lendable[] = [];
  /** Behind a proxy, or over HTTP/2: all exchanges go over this one. */
  private shared: Lendable | null = null;
  private closing = false;

  constructor(params: UndiciParams) {
    this.params = params;
    this.origin = params.origin;
    this.host = new URL(params.origin).host;
    this.clock = params.clock ?? systemClock;
    this.timeouts = params.timeouts;
    if (params.http === 2) cancelStreams();
  }

  call(request: UpstreamRequest, handler: ReplyHandler, observer?: CallObserver): UpstreamCall {
    return startCall(this, request, handler, observer);
  }

  connect(nowMs: number, onNewConnection: boolean): UndiciExchange {
    const isShared = this.params.proxy !== null || this.params.http === 2;
    const lent = isShared ? this.takeShared(nowMs) : this.takeFree(nowMs, onNewConnection);
    const exchange = new UndiciExchange(this, lent.dispatcher, () => lent.exchanges > 0 && !isShared);
    this.open.set(exchange, lent);
    return exchange;
  }

  private takeFree(nowMs: number, onNewConnection: boolean): Lendable {
    while (!onNewConnection) {
      const kept = this.free.pop();
      if (kept === undefined) break;
      if (nowMs - kept.sinceMs < LENT_MS_MAX) return kept;
      this.end(kept.dispatcher);
    }
    return this.made(
      new Client(this.origin, { ...LIMITS, allowH2: false, connect: this.connectOptions(), pipelining: 1 }),
      nowMs,
    );
  }

  private takeShared(nowMs: number): Lendable {
    if (this.shared !== null && nowMs - this.shared.sinceMs >= LENT_MS_MAX) {
      this.end(this.shared.dispatcher);
      this.shared = null;
    }
    this.shared ??= this.made(this.makeShared(), nowMs);
    return this.shared;
  }

  private makeShared(): Dispatcher {
    const { proxy, http } = this.params;
    const allowH2 = http === 2;
    const pipelining = allowH2 ? STREAMS_MAX : 1;
    const options = { ...LIMITS, allowH2, pipelining };
    if (proxy === null) return new Client(this.origin, { ...options, connect: this.connectOptions() });
    if (/^socks5?:/.test(proxy))
      return new Socks5ProxyAgent(proxy, {
        ...options,
        connectTimeout: this.timeouts.connectMs,
        requestTls: this.tls(),
      });
    // Its name is looked up as those of providers are.
    const proxyTls = { lookup: this.params.names.lookup, timeout: this.timeouts.connectMs };
    return new ProxyAgent({
      ...options,
      uri: proxy,
      proxyTunnel: true,
      proxyTls,
      requestTls: { ...this.tls(), allowH2 },
    });
  }

  private connectOptions(): object {
    return { ...this.tls(), timeout: this.timeouts.connectMs, lookup: this.params.names.lookup };
  }

  private tls(): { readonly ca?: string[]; readonly cert?: string; readonly key?: string } {
    const { ca, ...ownCertificate } = this.params.tls;
    return { ...ownCertificate, ...(ca === undefined ? {} : { ca: [...ca] }) };
  }

  private made(dispatcher: Dispatcher, nowMs: number): Lendable {
    const lendable = { dispatcher, sinceMs: nowMs, idleSinceMs: nowMs, exchanges: 0 };
    // undici opens another connection where the last one has ended, and that one is not used yet.
    dispatcher.on('connect', () => {
      lendable.exchanges = 0;
    });
    return lendable;
  }

  onOver(exchange: UndiciExchange, isWhole: boolean): void {
    const lent = this.open.get(exchange);
    this.open.delete(exchange);
    if (lent === undefined || lent === this.shared) return;
    const nowMs = this.clock.monotonicMs();
    if (!isWhole || this.closing || nowMs - lent.sinceMs >= LENT_MS_MAX) {
      this.end(lent.dispatcher);
      return;
    }
    lent.exchanges += 1;
    lent.idleSinceMs = nowMs;
    this.free.push(lent);
  }

  trim(): void {
    const nowMs = this.clock.monotonicMs();
    for (const exchange of this.open.keys()) exchange.checkTime(nowMs);
    const idle = this.free.filter(({ idleSinceMs }) => nowMs - idleSinceMs > KEEP_ALIVE_MS_MAX);
    if (idle.length === 0) return;
    for (const { dispatcher } of idle) this.end(dispatcher);
    const kept = this.free.filter((one) => !idle.includes(one));
    this.free.length = 0;
    this.free.push(...kept);
  }

  async close(): Promise<void> {
    this.closing = true;
    const ending = [...this.free, ...(this.shared === null ? [] : [this.shared])].map(({ dispatcher }) =>
      dispatcher.close().catch(() => undefined),
    );
    this.free.length = 0;
    await Promise.all(ending);
  }

  /** Ends a dispatcher once nothing is under way on it. */
  private end(dispatcher: Dispatcher): void {
    dispatcher.close().catch(() => undefined);
  }
}

/** Time limits are ours (exchange.ts). */
const LIMITS = {
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveTimeout: KEEP_ALIVE_MS,
  keepAliveMaxTimeout: KEEP_ALIVE_MS_MAX,
  maxHeaderSize: 65_536,
};
