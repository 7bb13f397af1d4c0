// Relays a call that is neither metered nor billed, byte for byte: the operations on saved responses (spec 4.2).

import { Buffer } from 'node:buffer';
import type { Provider } from '../../domain/models/catalog.ts';
import { type ClientWatch, type Exchange, NO_HEADERS } from '../../http/exchange.ts';
import type { Clock } from '../../platform/clock.ts';
import { type ForwardedHeaders, forwardedHeaders, ownUpstreamHeaders } from '../../upstream/header-policy.ts';
import type { UpstreamFault } from '../../upstream/http1/connection.ts';
import { type ReplyHeaders, replyHeader } from '../../upstream/http1/reply-head.ts';
import type { ReplyListener, UpstreamCall, UpstreamOrigin } from '../../upstream/origin.ts';
import { upstreamPath } from '../../upstream/upstream-path.ts';
import type { OpenRelay, OpenRelays } from './open-relays.ts';
import { CHUNKED, ReplyWriter, type WriterOwner } from './reply-writer.ts';

export interface PassThroughContext {
  readonly clock: Clock;
  /** The coarse clock looks through them for those out of time. */
  readonly open: OpenRelays;
  originOf(provider: Provider): UpstreamOrigin;
  pathPrefixOf(provider: Provider): string;
  onUpstreamFault(provider: Provider, fault: UpstreamFault): void;
  onKeyRefused(provider: Provider, status: number): void;
}

/**
 * Sends the request's method and query to `path` of the provider and relays what it answers. Sees to its end by itself.
 */
export function passThrough(exchange: Exchange, provider: Provider, path: string, context: PassThroughContext): void {
  const headers = forwardedHeaders(exchange.headers);
  if ('kind' in headers) exchange.refuse(headers);
  else new PassThrough(exchange, provider, headers, context).send(path);
}

class PassThrough implements ReplyListener, OpenRelay, ClientWatch, WriterOwner {
  openIndex = -1;
  private readonly exchange: Exchange;
  private readonly provider: Provider;
  private readonly headers: ForwardedHeaders;
  private readonly context: PassThroughContext;
  private readonly writer: ReplyWriter;
  private call: UpstreamCall | null = null;
  private upstreamEnded = false;
  private retriedStale = false;
  private path = '';
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
    this.path = path;
    this.exchange.watchClient(this);
    if (this.exchange.closed) return;
    this.context.open.add(this);
    this.attempt();
  }

  checkTime(nowMs: number): void {
    const { exchange, context } = this;
    if (exchange.closed) {
      context.open.remove(this);
      return;
    }
    const { idleMs, totalMs } = context.originOf(this.provider).timeouts;
    const stuck = this.blockedAtMs !== 0 && nowMs - this.blockedAtMs > idleMs;
    if (!stuck && nowMs - this.startedAtMs <= totalMs) return;
    this.call?.abort();
    if (this.writer.begun) exchange.cut();
    else exchange.refuse({ kind: 'upstream_timeout' });
  }

  private attempt(): void {
    const { exchange, provider, context } = this;
    const request = {
      method: exchange.route.method,
      path: upstreamPath(context.pathPrefixOf(provider), this.path, exchange.query),
      ownHeaders: ownUpstreamHeaders(provider),
      headers: this.headers,
      body: null,
    };
    this.call = context.originOf(provider).call(request, this, this.retriedStale);
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

  onKeyRefused(status: number): void {
    this.context.onKeyRefused(this.provider, status);
    this.exchange.refuse({ kind: 'provider_unavailable' });
  }

  onReplyFault(fault: UpstreamFault): void {
    const { exchange } = this;
    this.context.onUpstreamFault(this.provider, fault);
    if (fault === 'cut') {
      this.flush();
      exchange.cut();
    } else if (fault === 'stale_connection' && !this.retriedStale && !exchange.closed) {
      this.retriedStale = true;
      this.attempt();
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
