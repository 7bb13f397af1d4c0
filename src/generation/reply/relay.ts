// Relays one admitted request to a provider and its reply to the client, and sees that the execution ends exactly once.
// A call without an execution is pass-through.ts.
//
//   provider -> failover -> capture -> transform -> (screen ->) coalesce -> withhold end -> client writer -> client
//
//   waiting --head--> relaying --end of it--> settling --recorded--> settled --last bytes--> closed
//      |                 |                       ^
//      +--no reply-------+--cut / client left----+   (usage as reported, else counted in the worker pool)
//
// The terminal record is written before the bytes that show the client the end.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { ClientWatch } from '../../http/client-watch.ts';
import type { ExecutionOwner } from '../execution/execution.ts';
import { type ScreenReply, screenReplyBefore } from '../guardrails/screen-reply.ts';
import type { ScreenedRelay } from '../guardrails/screen-reply-parts.ts';
import { OutgoingRequest } from '../request/outgoing-request.ts';
import { Capture, CapturedReply } from './capture.ts';
import { ClientWriter, type WriterOwner } from './client-writer.ts';
import { Coalesce } from './coalesce.ts';
import { Failover } from './failover.ts';
import { keyRefusal } from './learn-from-calls.ts';
import type { OpenRelay } from './open-relays.ts';
import type { RelayContext, RelayParams } from './relay-params.ts';
import { settle } from './settle.ts';
import { DRAIN_TIMEOUT_MS, overdue } from './time-limits.ts';
import { Transform } from './transform.ts';
import { type EndRecorder, type ReplyEnd, WithholdEnd } from './withhold-end.ts';

/** Takes over an admitted request and ends it by itself: nothing is returned or thrown. */
export function relay(params: RelayParams, context: RelayContext): void {
  new Relay(params, context).begin();
}

class Relay implements OpenRelay, ClientWatch, WriterOwner, EndRecorder, ExecutionOwner, ScreenedRelay {
  openIndex = -1;
  readonly params: RelayParams;
  readonly context: RelayContext;
  readonly request: OutgoingRequest;
  private readonly startedAtMs: number;
  private readonly reply = new CapturedReply();
  private readonly writer: ClientWriter;
  private readonly end: WithholdEnd;
  private readonly failover: Failover;
  /** null: no guardrail screens the reply. */
  private readonly screenReply: ScreenReply | null;
  private drainUntilMs = 0;

  constructor(params: RelayParams, context: RelayContext) {
    const { reply } = this;
    const { exchange, screening, dialect } = params;
    const { clock, workers } = context;
    this.params = params;
    this.context = context;
    this.startedAtMs = clock.monotonicMs();
    this.request = new OutgoingRequest(params.request, params.read);
    this.writer = new ClientWriter(exchange, params.ownHeaders, clock, this);
    this.end = new WithholdEnd(this.writer, reply, this);
    const coalesce = new Coalesce(this.end, { reply, clock, writer: this.writer, source: this });
    const parts = { reply, dialect, exchange, workers, clock, relay: this };
    this.screenReply = screenReplyBefore(coalesce, screening, parts);
    const transform = new Transform(this.screenReply ?? coalesce, reply, this.request);
    this.failover = new Failover(new Capture(transform, reply, params, clock), this);
  }

  begin(): void {
    const { exchange } = this.params;
    this.context.open.add(this);
    try {
      exchange.watchClient(this);
      // If the client left while credit was leased or the start was recorded, nothing is sent.
      if (!exchange.closed) this.failover.attempt();
      else this.leave();
    } catch (fault) {
      this.onOwnFault(fault);
    }
  }

  get isScreening(): boolean {
    return this.screenReply?.isScreening === true;
  }

  settle(end: ReplyEnd): void {
    const { reply } = this;
    if (reply.state !== 'waiting' && reply.state !== 'relaying') return;
    reply.state = 'settling';
    try {
      if (end !== 'clean' && end !== 'client_left') this.failover.report(end, null);
      const { params, request, context, keyRefusal } = this;
      settle(end, { reply, params, request: request.body, workers: context.workers, keyRefusal }, this);
    } catch (fault) {
      this.onOwnFault(fault);
    }
  }

  onRecorded(): void {
    if (this.reply.state !== 'settling') return;
    this.reply.state = 'settled';
    this.end.onRecorded();
  }

  onUnrecorded(fault: unknown): void {
    this.onOwnFault(fault);
  }

  /** The refusal that the client gets when no key was accepted. */
  get keyRefusal(): Refusal {
    const { provider } = this.failover.deployment;
    return (provider.own === undefined ? null : this.params.serviceRefusal) ?? keyRefusal(provider);
  }

  pause(): void {
    this.failover.call?.pause();
  }

  resume(): void {
    this.failover.call?.resume();
  }

  onRoom(): void {
    this.resume();
    // Later in this tick: the client's socket must not be written to from within its own callback that reports room.
    queueMicrotask(() => this.end.onReplyPause());
  }

  /** The client is gone: the call is cut, or read on for its usage where the provider's setting says so. */
  onClientLeft(): void {
    const { call, deployment } = this.failover;
    const { state } = this.reply;
    this.writer.drop();
    const isOpen = state === 'waiting' || state === 'relaying';
    if (isOpen && deployment.provider.onDisconnect === 'drain' && call?.sent === true && this.drainUntilMs === 0) {
      this.drainUntilMs = this.context.clock.monotonicMs() + DRAIN_TIMEOUT_MS;
      call.neverResend();
      call.resume();
    } else {
      this.leave();
    }
  }

  abortCall(): void {
    this.failover.call?.abort();
  }

  refuseInstead(refusal: Refusal): void {
    this.writer.refuseInstead(refusal);
  }

  private leave(): void {
    this.abortCall();
    this.screenReply?.leave();
    this.end.leave();
  }

  /** Called from the coarse clock: ends what is out of time. */
  checkTime(nowMs: number): void {
    const { startedAtMs, drainUntilMs, reply, failover } = this;
    if (reply.state === 'closed') return;
    const isOpen = reply.state === 'waiting' || reply.state === 'relaying';
    // If a fault of ours kept the end of the call from the relay, only this check ends the relay.
    if (isOpen && failover.call?.isOver === true && !this.isScreening)
      throw new Error('a call has ended, and its relay has not heard of it');
    const { exchange } = this.params;
    const timeouts = this.context.providers.timeoutsOf(failover.deployment.provider);
    const { blockedSinceMs } = this.writer;
    switch (overdue({ startedAtMs, blockedSinceMs, drainUntilMs }, timeouts, nowMs)) {
      case 'client':
        exchange.cut();
        this.onClientLeft();
        break;
      case 'drain':
        this.leave();
        break;
      case 'total':
        failover.call?.fail('total_timeout');
        break;
      case null:
    }
  }

  onOver(): void {
    this.close();
  }

  /**
   * A fault of ours (the spool takes no records, a bug): the client must not take what it has received for complete.
   */
  onOwnFault(fault: unknown): void {
    const { exchange, execution } = this.params;
    try {
      this.abortCall();
      exchange.fail(fault);
    } finally {
      execution.giveUp(exchange.status === 0 ? null : exchange.status);
      this.close();
    }
  }

  private close(): void {
    if (this.reply.state === 'closed') return;
    this.reply.state = 'closed';
    this.context.open.remove(this);
    this.reply.bytes.release();
    this.params.exchange.watchClient(null);
    // The relay's hold on the body's buffer ends; a connection that still sends from the buffer has a hold of its own.
    this.context.buffers.release(this.params.request.pooled);
  }
}
