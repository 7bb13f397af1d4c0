// Relays a call that is neither metered nor billed, byte for byte: the operations on saved responses (spec 4.2).

import { Buffer } from 'node:buffer';
import type { Provider } from '../../domain/models/catalog.ts';
import { type ClientWatch, type Exchange, NO_HEADERS } from '../../http/exchange.ts';
import type { Clock } from '../../platform/clock.ts';
import type { UpstreamCall } from '../../upstream/call.ts';
import { providerCredential } from '../../upstream/credential.ts';
import { type ForwardedHeaders, forwardedHeaders } from '../../upstream/header-policy.ts';
import type { UpstreamFault } from '../../upstream/http1/connection.ts';
import { type ReplyHeaders, replyHeader } from '../../upstream/http1/reply-head.ts';
import type { Providers } from '../../upstream/providers.ts';
import type { ReplyHandler } from '../../upstream/reply-handler.ts';
import type { OpenRelay, OpenRelays } from './open-relays.ts';
import { CHUNKED, ReplyWriter, type WriterOwner } from './reply-writer.ts';

export interface PassThroughContext {
  readonly clock: Clock;
  /** The coarse clock looks through them for those out of time. */
  readonly open: OpenRelays;
  readonly providers: Providers;
}

/**
 * Sends the request's method and query to `path` of the provider and relays what it answers. Sees to its end by itself.
 */
export function passThrough(exchange: Exchange, provider: Provider, path: string, context: PassThroughContext): void {
  const headers = forwardedHeaders(exchange.headers);
  if ('kind' in headers) exchange.refuse(headers);
  else new PassThrough(exchange, provider, headers, context).send(path);
}

class PassThrough implements ReplyHandler, OpenRelay, ClientWatch, WriterOwner {
  openIndex = -1;
  private readonly exchange: Exchange;
  private readonly provider: Provider;
  private readonly headers: ForwardedHeaders;
  private readonly context: PassThroughContext;
  private readonly writer: ReplyWriter;
  private call: UpstreamCall | null = null;
  private upstreamEnded = false;
  private readonly startedAtMs: number;
  /** Since when the client has taken nothing of what waits for it; 0: nothing waits. */
  private blockedAtMs = 0;

  constructor(exchange: Exchange, provider: Provider, headers: ForwardedHeaders, context: PassThroughContext) {
    this.exchange = exchange;
    this.provider = provider;
    this.headers = headers;
    this.context = context;
    this.startedAtMs = context.clock.monotonicMs();
    this.writer = new ReplyWriter(exchange, this);
  }

  onRoom(): void {
    this.blockedAtMs = 0;
    this.call?.resume();
    // Not from within the client's socket telling that it has room.
    queueMicrotask(() => this.flush());
  }

  onClientLeft(): void {
    this.call?.abort();
  }

  send(path: string): void {
    this.exchange.watchClient(this);
    if (this.exchange.closed) return;
    this.context.open.add(this);
    const { exchange, provider, headers } = this;
    const { method } = exchange.route;
    const credential = providerCredential(provider);
    this.call = this.context.providers.call(
      provider,
      { method, path, query: exchange.query, credential, headers, body: null },
      this,
    );
  }

  checkTime(nowMs: number): void {
    const { exchange, context } = this;
    if (exchange.closed) {
      context.open.remove(this);
      return;
    }
    const { idleMs, totalMs } = context.providers.timeoutsOf(this.provider);
    const stuck = this.blockedAtMs !== 0 && nowMs - this.blockedAtMs > idleMs;
    if (!stuck && nowMs - this.startedAtMs <= totalMs) return;
    this.call?.abort();
    if (this.writer.begun) exchange.cut();
    else exchange.refuse({ kind: 'upstream_timeout' });
  }

  onReplyStart(status: number, headers: ReplyHeaders): void {
    const length = replyHeader(headers, 'content-length');
    this.writer.start(status, NO_HEADERS, headers, length === undefined ? CHUNKED : Number(length));
  }

  onReplyData(chunk: Buffer): void {
    this.writer.push(Buffer.from(chunk));
  }

  onReplyPause(): void {
    this.flush();
  }

  onReplyEnd(): void {
    this.upstreamEnded = true;
    this.flush();
  }

  onKeyRefused(): void {
    this.exchange.refuse({ kind: 'provider_unavailable' });
  }

  onReplyFault(fault: UpstreamFault): void {
    const { exchange } = this;
    if (fault === 'cut') {
      this.flush();
      exchange.cut();
    } else {
      exchange.refuse({ kind: fault === 'first_byte_timeout' ? 'upstream_timeout' : 'upstream_unreachable' });
    }
  }

  private flush(): void {
    if (this.exchange.closed) return;
    this.writer.flush(this.upstreamEnded);
    if (!this.writer.blocked) return;
    this.call?.pause();
    if (this.blockedAtMs === 0) this.blockedAtMs = this.context.clock.monotonicMs();
  }
}
