// Relays a call that is neither metered nor billed, byte for byte: the operations on saved responses (spec 4.2).
//
// This is not a case of relay.ts, most of which is about things that a pass-through lacks: an execution whose end is
// recorded before the client sees it, further deployments, a reply that is kept for its usage and read on after its
// client has left. What both need has files of its own: the client writer, the screening, the open relays, the time
// limits.

import { Buffer } from 'node:buffer';
import type { Provider } from '../../domain/models/provider.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { ClientWatch } from '../../http/client-watch.ts';
import type { Exchange } from '../../http/exchange.ts';
import { NO_HEADERS } from '../../http/response-headers.ts';
import type { UpstreamCall } from '../../upstream/call.ts';
import type { UpstreamFault } from '../../upstream/call-connection.ts';
import type { Credential } from '../../upstream/credential.ts';
import { type ForwardedHeaders, forwardedHeaders } from '../../upstream/header-policy.ts';
import type { ReplyHeaders } from '../../upstream/http1/reply-head.ts';
import type { Complaint } from '../../upstream/key-complaint.ts';
import type { Providers } from '../../upstream/providers.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import { responses } from '../dialects/responses.ts';
import type { ScreeningWorkers } from '../guardrails/screen-body.ts';
import { screenReplyBefore } from '../guardrails/screen-reply.ts';
import type { ScreenedRelay } from '../guardrails/screen-reply-parts.ts';
import type { Screening } from '../guardrails/screening.ts';
import { endsWithWholeEvent, type StreamEnd, type StreamProgress } from '../sse/stream-end.ts';
import { CapturedReply } from './capture.ts';
import { ClientWriter, type WriterOwner } from './client-writer.ts';
import { isFailure, type ReportFailedCall } from './failed-call.ts';
import { headersFor, type KeyOwner } from './idempotency-key.ts';
import { keyRefusal, type LearntFromCalls, learnFromRefusedKey } from './learn-from-calls.ts';
import type { OpenRelay, OpenRelays } from './open-relays.ts';
import { overdue } from './time-limits.ts';

export interface PassThroughParams {
  readonly exchange: Exchange;
  /** The owner of the request. */
  readonly owner: KeyOwner;
  /** The provider, with the operator's key or an organization's own key. */
  readonly provider: Provider;
  readonly credential: Credential;
  /** The deployment of the own key that is used; null: the operator's key is used. */
  readonly ownDeployment: Deployment | null;
  /** The path at the provider. */
  readonly path: string;
  /** null: no guardrail screens the reply. */
  readonly screening: Screening | null;
}

export interface PassThroughContext extends LearntFromCalls {
  /** Replies under way; the coarse clock ends those that are out of time. */
  readonly open: OpenRelays;
  readonly providers: Providers;
  readonly workers: ScreeningWorkers;
  readonly reportFailedCall: ReportFailedCall;
}

/** Sends the request's method and query to the provider and relays the reply. Ends the exchange by itself. */
export function passThrough(params: PassThroughParams, context: PassThroughContext): void {
  const { exchange } = params;
  const headers = forwardedHeaders(exchange.headers);
  if ('kind' in headers) exchange.refuse(headers);
  else new PassThrough(params, context).send(headers);
}

interface FailureListener {
  failed(cause: string, status: number | null): void;
  keyRefused(status: number, complaint: Complaint): void;
}

/**
 * Copies each chunk, whose memory the next read of the provider's socket overwrites; reports a failed call; and treats
 * a stream that ends without its last event as cut, as the relay does. An empty stream is not cut: a client that asks
 * for the events after the last one gets none.
 */
class CopyChunks extends ReplyStage {
  protected readonly next: ReplyHandler;
  private readonly reply: CapturedReply;
  private readonly failures: FailureListener;
  /** null: the reply is not a readable event stream. */
  private end: StreamEnd | null = null;
  private progress: StreamProgress = 'open';
  private newest: Buffer | null = null;

  constructor(next: ReplyHandler, reply: CapturedReply, failures: FailureListener) {
    super();
    this.next = next;
    this.reply = reply;
    this.failures = failures;
  }

  override onReplyStart(status: number, headers: ReplyHeaders): void {
    if (isFailure(status)) this.failures.failed('status', status);
    this.reply.takeHead(status, headers);
    if (this.reply.isStream) this.end = responses.watchStreamEnd();
    this.next.onReplyStart(status, headers);
  }

  override onReplyData(chunk: Buffer): void {
    const copy = Buffer.from(chunk);
    const lines = this.reply.lines?.feed(copy) ?? copy;
    if (this.end !== null) {
      this.progress = this.end.feed(lines);
      this.newest = lines;
    }
    this.next.onReplyData(this.reply.isReadByLines ? lines : copy);
  }

  override onReplyEnd(): void {
    if (this.newest === null || isWhole(this.progress, this.newest)) this.next.onReplyEnd();
    else this.onReplyFault('cut');
  }

  override onReplyFault(fault: UpstreamFault): void {
    this.failures.failed(fault, null);
    this.next.onReplyFault(fault);
  }

  override onKeyRefused(status: number, complaint: Complaint): void {
    this.failures.failed('key_refused', status);
    this.failures.keyRefused(status, complaint);
    this.next.onKeyRefused(status, complaint);
  }
}

/** The last event may lack its line ends. */
function isWhole(progress: StreamProgress, newest: Buffer): boolean {
  return progress === 'ended' || (progress === 'ending' && endsWithWholeEvent(newest));
}

class PassThrough implements OpenRelay, ClientWatch, WriterOwner, ScreenedRelay {
  openIndex = -1;
  private readonly exchange: Exchange;
  private readonly params: PassThroughParams;
  private readonly context: PassThroughContext;
  private readonly writer: ClientWriter;
  private readonly startedAtMs: number;
  private call: UpstreamCall | null = null;
  private isOver = false;

  constructor(params: PassThroughParams, context: PassThroughContext) {
    const { exchange } = params;
    this.exchange = exchange;
    this.params = params;
    this.context = context;
    this.startedAtMs = context.clock.monotonicMs();
    this.writer = new ClientWriter(exchange, NO_HEADERS, context.clock, this);
  }

  send(headers: ForwardedHeaders): void {
    const { exchange, context } = this;
    const { provider, owner, credential, path } = this.params;
    context.open.add(this);
    exchange.watchClient(this);
    if (exchange.closed) {
      this.onOver();
      return;
    }
    const { method } = exchange.route;
    // The provider keeps the response under its id alone, whichever model made it.
    const target = { api: 'responses', path, query: exchange.query, providerModel: '', streamed: false } as const;
    const sent = headersFor(headers, provider, owner);
    const request = { ...target, method, credential, headers: sent, body: null };
    const failures: FailureListener = {
      failed: (cause, status) =>
        context.reportFailedCall({ execution_id: null, provider: provider.id, model: null, cause, status, attempt: 1 }),
      keyRefused: (status, complaint) => this.learnFromRefusal(status, complaint),
    };
    try {
      const reply = new CapturedReply();
      const { workers, clock } = context;
      const parts = { reply, dialect: responses, exchange, workers, clock, relay: this };
      const screened = screenReplyBefore(this.writer, this.params.screening, parts);
      const chunks = new CopyChunks(screened ?? this.writer, reply, failures);
      this.call = context.providers.call(provider, request, chunks);
    } catch (fault) {
      this.onOwnFault(fault);
    }
  }

  /** A complaint about scope teaches nothing: a key that may not read stored responses may still generate. */
  private learnFromRefusal(status: number, complaint: Complaint): void {
    const { ownDeployment: deployment } = this.params;
    if (deployment !== null && complaint !== 'scope')
      learnFromRefusedKey(status, complaint, { deployment }, this.context);
  }

  checkTime(nowMs: number): void {
    const { exchange, startedAtMs } = this;
    const { blockedSinceMs } = this.writer;
    const timeouts = this.context.providers.timeoutsOf(this.params.provider);
    const late = overdue({ startedAtMs, blockedSinceMs, drainUntilMs: 0 }, timeouts, nowMs);
    if (late === 'client') {
      exchange.cut();
      this.onClientLeft();
    } else if (late === 'total') {
      this.call?.fail('total_timeout');
    }
  }

  pause(): void {
    this.call?.pause();
  }

  onRoom(): void {
    this.call?.resume();
    // Later in this tick: the client's socket must not be written to from within its own callback that reports room.
    queueMicrotask(() => this.writer.onReplyPause());
  }

  abortCall(): void {
    this.call?.abort();
  }

  refuseInstead(refusal: Refusal): void {
    this.writer.refuseInstead(refusal);
  }

  onClientLeft(): void {
    this.abortCall();
    this.onOver();
  }

  onOver(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.context.open.remove(this);
  }

  get keyRefusal(): Refusal {
    return keyRefusal(this.params.provider);
  }

  onOwnFault(fault: unknown): void {
    this.abortCall();
    this.exchange.fail(fault);
    this.onOver();
  }
}
