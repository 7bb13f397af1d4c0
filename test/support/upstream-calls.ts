// Calls to providers as tests see them: everything a listener was told, and the promise of its end.

import type { Clock } from '../../src/platform/clock.ts';
import type { EgressGuard } from '../../src/platform/egress/egress-guard.ts';
import { type CallObserver, UpstreamCall } from '../../src/upstream/call.ts';
import type { UpstreamFault } from '../../src/upstream/call-connection.ts';
import type { UpstreamTimeouts } from '../../src/upstream/connection-limits.ts';
import { NameLookups } from '../../src/upstream/http1/name-lookups.ts';
import type { ReplyHeaders } from '../../src/upstream/http1/reply-head.ts';
import type { UpstreamRequest } from '../../src/upstream/http1/request-head.ts';
import { UpstreamOrigin } from '../../src/upstream/origin.ts';

/** A clock that stands still until it is told. */
export class HeldClock implements Clock {
  timeMs = 1_000;
  nowMs(): number {
    return this.timeMs;
  }
  monotonicMs(): number {
    return this.timeMs;
  }
}

export interface ToldReply {
  status: number | null;
  headers: ReplyHeaders;
  body: string;
  /** `end`, or the fault; null while none was told. */
  end: 'end' | 'key_refused' | UpstreamFault | null;
}

/**
 * What one listener was told, and how to wait for it. Being told anything after the end, or the end twice, is an error.
 */
export class ToldCall {
  readonly reply: ToldReply = { status: null, headers: [], body: '', end: null };
  readonly ended: Promise<ToldReply>;
  readonly started: Promise<ToldReply>;
  call!: UpstreamCall;
  onStart: () => void = () => undefined;
  onData: () => void = () => undefined;

  constructor(
    origin: UpstreamOrigin,
    request: Partial<UpstreamRequest>,
    onNewConnection: boolean,
    observer?: CallObserver,
  ) {
    const { reply } = this;
    const ended = Promise.withResolvers<ToldReply>();
    const started = Promise.withResolvers<ToldReply>();
    this.ended = ended.promise;
    this.started = started.promise;
    const open = (): void => {
      if (reply.end !== null) throw new Error(`told after ${reply.end}`);
    };
    const whole: UpstreamRequest = { method: 'POST', path: '/', headers: [], body: Buffer.from('{}'), ...request };
    this.call = new UpstreamCall(
      origin,
      whole,
      {
        onReplyStart: (status, headers) => {
          open();
          Object.assign(reply, { status, headers });
          started.resolve(reply);
          this.onStart();
        },
        onReplyData: (chunk) => {
          open();
          reply.body += chunk.toString('latin1');
          this.onData();
        },
        onReplyPause: open,
        onReplyEnd: () => {
          open();
          reply.end = 'end';
          ended.resolve(reply);
        },
        onKeyRefused: () => {
          open();
          reply.end = 'key_refused';
          ended.resolve(reply);
        },
        onReplyFault: (fault) => {
          open();
          reply.end = fault;
          ended.resolve(reply);
        },
      },
      observer,
    );
    this.call.send(onNewConnection);
    // What is not observed sees the faults of its one connection.
    if (observer === undefined) this.call.neverResend();
  }
}

export function originAt(
  url: string,
  clock: Clock,
  timeouts: Partial<UpstreamTimeouts> = {},
  guard?: EgressGuard,
): UpstreamOrigin {
  return new UpstreamOrigin(
    url,
    { connectMs: 5_000, firstByteMs: 120_000, idleMs: 90_000, totalMs: 3_600_000, ...timeouts },
    clock,
    new NameLookups(clock),
    {},
    guard,
  );
}

export function callTo(
  origin: UpstreamOrigin,
  request: Partial<UpstreamRequest> = {},
  onNewConnection = false,
  observer?: CallObserver,
): ToldCall {
  return new ToldCall(origin, request, onNewConnection, observer);
}
