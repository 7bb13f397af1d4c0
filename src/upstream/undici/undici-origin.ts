// The connections of undici to one address: for providers behind a proxy or over HTTP/2, and for all of them where
// UPSTREAM_CLIENT says so.

import { type Clock, systemClock } from '../../platform/clock.ts';
import { type CallObserver, type ProviderOrigin, startCall, type UpstreamCall } from '../call.ts';
import { KEEP_ALIVE_MS_MAX, LENT_MS_MAX, type UpstreamTimeouts } from '../connection-limits.ts';
import type { NameLookups } from '../http1/name-lookups.ts';
import type { UpstreamRequest } from '../http1/request-head.ts';
import type { ReplyHandler } from '../reply-handler.ts';
import type { TlsOptions } from '../tls-files.ts';
import { type ExchangeEnd, type ExchangeOwner, GIVEN_UP, UndiciExchange } from './exchange.ts';
import { watchStreamEnds } from './stream-ends.ts';
import { UndiciConnection } from './undici-connection.ts';

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

export class UndiciOrigin implements ProviderOrigin, ExchangeOwner {
  readonly origin: string;
  readonly host: string;
  readonly clock: Clock;
  readonly timeouts: UpstreamTimeouts;
  openCalls = 0;
  private readonly params: UndiciParams;
  private readonly open = new Map<UndiciExchange, UndiciConnection>();
  /** Over HTTP/1.1 each exchange has a connection to itself: these are idle. */
  private readonly free: UndiciConnection[] = [];
  /** Over HTTP/2 all exchanges go over this one. */
  private shared: UndiciConnection | null = null;
  private closing = false;

  constructor(params: UndiciParams) {
    this.params = params;
    this.origin = params.origin;
    this.host = new URL(params.origin).host;
    this.clock = params.clock ?? systemClock;
    this.timeouts = params.timeouts;
    if (params.http === 2) watchStreamEnds();
  }

  call(request: UpstreamRequest, handler: ReplyHandler, observer?: CallObserver): UpstreamCall {
    return startCall(this, request, handler, observer);
  }

  connect(nowMs: number, onNewConnection: boolean): UndiciExchange {
    const lent = this.params.http === 2 ? this.takeShared(nowMs) : this.takeFree(nowMs, onNewConnection);
    const exchange = new UndiciExchange(this, lent);
    lent.openExchanges += 1;
    this.open.set(exchange, lent);
    return exchange;
  }

  private takeFree(nowMs: number, onNewConnection: boolean): UndiciConnection {
    while (!onNewConnection) {
      const kept = this.free.pop();
      if (kept === undefined) break;
      if (nowMs - kept.openedAtMs < LENT_MS_MAX) return kept;
      void kept.close();
    }
    return this.make(nowMs);
  }

  private takeShared(nowMs: number): UndiciConnection {
    if (this.shared !== null && nowMs - this.shared.openedAtMs >= LENT_MS_MAX) this.replaceShared();
    this.shared ??= this.make(nowMs);
    return this.shared;
  }

  /** New exchanges get another connection; those that are under way end on this one. */
  private replaceShared(): void {
    void this.shared?.close();
    this.shared = null;
  }

  private make(nowMs: number): UndiciConnection {
    return new UndiciConnection({ ...this.params, connectMs: this.timeouts.connectMs }, nowMs);
  }

  onSent(exchange: UndiciExchange): void {
    this.open.get(exchange)?.onSent();
  }

  onOver(exchange: UndiciExchange, how: ExchangeEnd): void {
    const lent = this.open.get(exchange);
    this.open.delete(exchange);
    if (lent === undefined) return;
    lent.openExchanges -= 1;
    if (this.params.http === 2) this.keepOrEndShared(lent, how);
    else if (how !== 'whole') lent.destroy(GIVEN_UP);
    else this.keepOrEnd(lent);
  }

  private keepOrEnd(lent: UndiciConnection): void {
    const nowMs = this.clock.monotonicMs();
    if (this.closing || nowMs - lent.openedAtMs >= LENT_MS_MAX) {
      void lent.close();
      return;
    }
    lent.exchanges += 1;
    lent.idleSinceMs = nowMs;
    this.free.push(lent);
  }

  /**
   * A shared connection gets no new exchanges once it was lost, or once an exchange on it ran out of time, since then
   * it may be lost. The exchanges that it has may end.
   */
  private keepOrEndShared(lent: UndiciConnection, how: ExchangeEnd): void {
    if (how === 'whole') lent.exchanges += 1;
    if ((how === 'out_of_time' || how === 'lost') && lent === this.shared) this.shared = null;
    if (lent.openExchanges > 0 || (lent === this.shared && lent.isUp)) return;
    if (lent === this.shared) this.shared = null;
    // Not in the tick in which a stream was opened (exchange.ts says why).
    setImmediate(() => lent.destroy(GIVEN_UP));
  }

  trim(): void {
    const nowMs = this.clock.monotonicMs();
    for (const exchange of this.open.keys()) exchange.checkTime(nowMs);
    const idle = this.free.filter(({ idleSinceMs }) => nowMs - idleSinceMs > KEEP_ALIVE_MS_MAX);
    if (idle.length === 0) return;
    for (const connection of idle) void connection.close();
    const kept = this.free.filter((one) => !idle.includes(one));
    this.free.length = 0;
    this.free.push(...kept);
  }

  async close(): Promise<void> {
    this.closing = true;
    const ending = [...this.free, ...(this.shared === null ? [] : [this.shared])].map((one) => one.close());
    this.free.length = 0;
    await Promise.all(ending);
  }
}
