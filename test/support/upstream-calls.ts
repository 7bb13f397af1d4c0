// Calls to providers as tests see them: every event that a listener received, and a promise of the end.

import type { Clock } from '../../src/platform/clock.ts';
import type { EgressGuard } from '../../src/platform/egress/egress-guard.ts';
import { type CallObserver, UpstreamCall } from '../../src/upstream/call.ts';
import type { UpstreamFault } from '../../src/upstream/call-connection.ts';
import type { UpstreamTimeouts } from '../../src/upstream/connection-limits.ts';
import { NameLookups } from '../../src/upstream/http1/name-lookups.ts';
import type { ReplyHeaders } from '../../src/upstream/http1/reply-head.ts';
import type { UpstreamRequest } from '../../src/upstream/http1/request-head.ts';
import { UpstreamOrigin } from '../../src/upstream/origin.ts';

/** A clock that advances only when the test says so. */
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
  /** `end`, or the fault; null: the call has not ended. */
  end: 'end' | 'key_refused' | UpstreamFault | null;
}

/** The events of one listener, and how to wait for them. An event after the end, or a second end, is an error. */
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
    // Without an observer the call is never sent a second time, so that the test sees the faults of its one connection.
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
