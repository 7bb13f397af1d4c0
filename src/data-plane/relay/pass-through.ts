// Relays a call that is neither metered nor billed, byte for byte: the operations on saved responses (spec 4.2).

import type { Provider } from '../../domain/models/catalog.ts';
import type { Exchange } from '../../http/exchange.ts';
import { replyHeaders, upstreamHeaders } from './header-policy.ts';
import { CHUNKED, ReplyWriter } from './reply-writer.ts';
import type { ReplyHeaders, ReplyListener, UpstreamCall, UpstreamFault, UpstreamOrigin } from './upstream.ts';

export interface PassThroughContext {
  originOf(provider: Provider): UpstreamOrigin;
  pathPrefixOf(provider: Provider): string;
  onUpstreamFault(provider: Provider, fault: UpstreamFault): void;
}

/** Sends the request's method and query to `path` of the provider and relays what it answers. Sees to its end by itself. */
export function passThrough(exchange: Exchange, provider: Provider, path: string, context: PassThroughContext): void {
  new PassThrough(exchange, provider, context).send(path);
}

class PassThrough implements ReplyListener {
  private readonly exchange: Exchange;
  private readonly provider: Provider;
  private readonly context: PassThroughContext;
  private readonly writer: ReplyWriter;
  private call: UpstreamCall | null = null;
  private upstreamEnded = false;
  private flushScheduled = false;
  private retriedStale = false;
  private path = '';

  constructor(exchange: Exchange, provider: Provider, context: PassThroughContext) {
    this.exchange = exchange;
    this.provider = provider;
    this.context = context;
    this.writer = new ReplyWriter(exchange, () => {
      this.call?.resume();
      this.scheduleFlush();
    });
  }

  send(path: string): void {
    this.path = path;
    this.exchange.onAbort(() => this.call?.abort());
    if (!this.exchange.closed) this.attempt();
  }

  private attempt(): void {
    const { exchange, provider, context } = this;
    const query = exchange.query === '' ? '' : `?${exchange.query}`;
    const request = {
      method: exchange.route.method,
      path: `${context.pathPrefixOf(provider)}${this.path}${query}`,
      headers: upstreamHeaders(exchange.headers, provider),
      body: null,
    };
    this.call = context.originOf(provider).call(request, this, this.retriedStale);
  }

  onReplyStart(status: number, headers: ReplyHeaders): void {
    const length = headers['content-length'];
    this.writer.start(status, replyHeaders(headers, []), typeof length === 'string' ? Number(length) : CHUNKED);
    this.scheduleFlush();
  }

  onReplyData(chunk: Buffer): void {
    this.writer.push(chunk);
    this.scheduleFlush();
  }

  onReplyEnd(): void {
    this.upstreamEnded = true;
    this.scheduleFlush();
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

  private scheduleFlush(): void {
    if (this.flushScheduled) return;
    this.flushScheduled = true;
    queueMicrotask(() => {
      this.flushScheduled = false;
      this.flush();
    });
  }

  private flush(): void {
    if (this.exchange.closed) return;
    this.writer.flush(this.upstreamEnded);
    if (this.writer.blocked) this.call?.pause();
  }
}
