// Relays one admitted request to a provider and its reply to the client, byte for byte, and sees that the execution
// ends exactly once.
//
//   waiting --reply--> relaying ---end of it---> settled --last bytes--> closed
//      |                  |                           ^
//      |                  +--cut / client left--------+   (usage as reported, else counted in the worker pool)
//      +--fault: next attempt, or a refusal-----------+
//
// The terminal record is written before the bytes that show the client the end: what it saw complete survives our death
// (DESIGN 4).

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Outcome } from '../../domain/settlement/outcome.ts';
import { OUTCOME_MATRIX } from '../../domain/settlement/outcome-matrix.ts';
import type { ClientWatch } from '../../http/exchange.ts';
import { TickWork } from '../../platform/tick.ts';
import type { UpstreamCall } from '../../upstream/call.ts';
import type { UpstreamFault } from '../../upstream/http1/connection.ts';
import { type ReplyHeaders, replyHeader } from '../../upstream/http1/reply-head.ts';
import type { ReplyHandler } from '../../upstream/reply-handler.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import { isStored, NOT_STORED, type ReplyWatch, type StoredReplyWatch } from '../dialects/dialect.ts';
import { type ExecutionOwner, type MeasuredUsage, NO_USAGE } from '../execution/execution.ts';
import { countUsage, reportedUsage } from '../execution/measure-usage.ts';
import { RequestBytes } from '../request/request-bytes.ts';
import type { StreamProgress } from '../sse/stream-end.ts';
import { UsageChunkFilter } from '../sse/usage-chunk-filter.ts';
import { BurstPace, type PacedStream } from './burst-pace.ts';
import { countQuestion } from './count-question.ts';
import { HeldBytes } from './held-bytes.ts';
import type { OpenRelay } from './open-relays.ts';
import { beginCooldown, FAILOVER_STATUSES } from './provider-refusals.ts';
import type { RelayContext, RelayParams } from './relay-params.ts';
import { RelayedBytes } from './relayed-bytes.ts';
import { type HowItEnded, outcomeOfReply } from './reply-outcome.ts';
import { CHUNKED, ReplyWriter, type WriterOwner } from './reply-writer.ts';

/** How long a reply is read on for its usage after the client left, where the provider's setting says so. */
const DRAIN_TIMEOUT_MS = 120_000;

/** Takes over an admitted request; sees to its end by itself. */
export function relay(question: RelayParams, context: RelayContext): void {
  new Relay(question, context).begin();
}

/**
 * Replies that have come to their end: what they used is read and recorded once all sockets of the tick have been read.
 */
const ended = new TickWork<Relay>((relay) => relay.flush());

class Relay implements ReplyHandler, OpenRelay, PacedStream, ExecutionOwner, ClientWatch, WriterOwner {
  openIndex = -1;
  private readonly question: RelayParams;
  private readonly context: RelayContext;
  private readonly relayed = new RelayedBytes();
  private readonly writer: ReplyWriter;
  /** Of a stream. */
  private pace: BurstPace | null = null;
  private readonly startedAtMs: number;
  private call: UpstreamCall | null = null;
  private deploymentIndex = 0;
  private readonly request: RequestBytes;

  private providerStatus = 0;
  private isStream = false;
  private watch: ReplyWatch | null = null;
  /** null: the provider keeps nothing of the reply. */
  private stored: StoredReplyWatch | null = null;
  private streamProgress: StreamProgress = 'open';
  /** null: nothing is held. */
  private held: HeldBytes | null = null;
  private upstreamEnded = false;
  private cut = false;
  /** The end is being recorded, after its tokens are counted where they must be; the last bytes wait for it. */
  private settling = false;
  private drainUntilMs = 0;
  /** Since when the client has taken nothing of what waits for it; 0: nothing waits. */
  private blockedAtMs = 0;
  /** The client left before it had everything, or took nothing for so long that it was cut off. */
  private clientGone = false;
  private closed = false;

  constructor(question: RelayParams, context: RelayContext) {
    this.question = question;
    this.context = context;
    this.startedAtMs = context.clock.monotonicMs();
    this.writer = new ReplyWriter(question.exchange, this);
    this.request = new RequestBytes(question.request, question.read);
  }

  begin(): void {
    this.context.open.add(this);
    try {
      const { exchange } = this.question;
      exchange.watchClient(this);
      // The client may have left while credit was borrowed or the start was recorded: then nothing is sent.
      if (!exchange.closed) this.attempt();
      else if (!this.clientGone) this.onClientLeft();
    } catch (fault) {
      this.fail(fault);
    }
  }

  private get deployment(): Deployment {
    return this.question.deployments[this.deploymentIndex] as Deployment;
  }

  /** Sends the request to the present deployment. */
  private attempt(): void {
    const { dialect, exchange, headers } = this.question;
    this.call = this.context.providers.call(
      this.deployment.provider,
      {
        method: 'POST',
        path: dialect.upstreamPath,
        query: exchange.query,
        credential: this.deployment.credential,
        headers,
        body: this.request.bodyFor(this.deployment),
      },
      this,
    );
  }

  onReplyStart(status: number, headers: ReplyHeaders): void {
    const { organizationId } = this.question;
    beginCooldown(status, headers, { deployment: this.deployment, organizationId }, this.context);
    if (FAILOVER_STATUSES.has(status) && this.nextDeployment()) {
      // Nothing of this reply was relayed, and a provider does not bill it: the next deployment serves (DESIGN 3).
      this.call?.discard();
      this.attemptNext();
      return;
    }
    if (status < 300) this.context.cooldowns.served(this.deployment);
    this.providerStatus = status;
    const length = replyHeader(headers, 'content-length');
    this.isStream = replyHeader(headers, 'content-type')?.startsWith('text/event-stream') ?? false;
    // The client did not ask for the chunk that tells the usage: it is metered and left out.
    const filter = this.isStream && status < 300 && this.request.asksForUsage ? new UsageChunkFilter() : null;
    this.writer.start(
      status,
      this.question.ownHeaders,
      headers,
      length === undefined ? CHUNKED : Number(length),
      filter,
    );
    if (status < 300) this.watchReply();
  }

  private watchReply(): void {
    const { dialect, read } = this.question;
    if (isStored(read.bounds)) this.stored = dialect.watchStoredReply?.() ?? null;
    if (dialect.watchReply !== undefined) this.watch = dialect.watchReply(this.isStream, read.bounds.answers);
    else if (this.isStream) this.watch = dialect.watchStreamEnd();
  }

  onReplyData(read: Buffer): void {
    const { execution } = this.question;
    if (execution.firstByteAtMs === null) execution.firstByteAtMs = this.context.clock.monotonicMs();
    const chunk = this.relayed.append(read);
    if (this.watch !== null) this.streamProgress = this.watch.feed(chunk) ?? 'open';
    if (this.isStream) this.stored?.feed(chunk);
    if (this.question.exchange.closed) return;
    if (this.streamProgress === 'open') this.writer.push(chunk);
    else (this.held ??= new HeldBytes()).hold(chunk, this.writer);
  }

  /**
   * All that one read of the provider's socket brought goes out together (PERFORMANCE 4), and of a burst what several
   * would.
   */
  onReplyPause(): void {
    const mayWait = this.isStream && this.streamProgress === 'open' && !this.question.exchange.closed;
    if (mayWait) (this.pace ??= new BurstPace(this)).take(this.context.clock.monotonicMs(), this.writer.pendingBytes);
    else this.flush();
  }

  onReplyEnd(): void {
    // A stream that did not finish must not look finished, however cleanly the provider ended it.
    if (this.isUnfinishedStream()) this.cut = true;
    else this.upstreamEnded = true;
    ended.add(this);
  }

  private isUnfinishedStream(): boolean {
    if (!this.isStream || this.watch === null || this.streamProgress !== 'open') return false;
    return this.question.dialect.isWholeWithoutEnd?.(this.relayed.end()) !== true;
  }

  onReplyFault(fault: UpstreamFault): void {
    if (fault === 'cut') {
      this.cut = true;
      this.flush();
      return;
    }
    try {
      // Another attempt is made only when no byte was sent (DESIGN 3).
      if (fault === 'connect_failed' && this.nextDeployment()) this.attempt();
      else if (fault === 'first_byte_timeout') this.refuse('no_reply', fault, { kind: 'upstream_timeout' });
      else
        this.refuse(fault === 'connect_failed' ? 'connect_failed' : 'no_reply', fault, {
          kind: 'upstream_unreachable',
        });
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  onKeyRefused(): void {
    if (this.nextDeployment()) this.attemptNext();
    else this.refuse('provider_refused', 'provider_key_refused', { kind: 'provider_unavailable' });
  }

  /** What throws here must not leave a call that nobody waits for. */
  private attemptNext(): void {
    try {
      this.attempt();
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  private refuse(outcome: Outcome, errorCode: string, refusal: Refusal): void {
    this.endWithoutReply(outcome, errorCode, () => {
      this.question.exchange.refuse(refusal, this.question.ownHeaders);
      this.close();
    });
  }

  /** Goes on to the next deployment; false when there is none. */
  private nextDeployment(): boolean {
    if (this.deploymentIndex + 1 >= this.question.deployments.length || this.question.exchange.closed) return false;
    this.deploymentIndex += 1;
    this.question.execution.moveTo(this.deployment);
    return true;
  }

  private endWithoutReply(outcome: Outcome, errorCode: string, onRecorded: () => void): void {
    const status = outcome === 'aborted_before_first_byte' ? null : 502;
    this.settling = true;
    const ending = { outcome, status, errorCode, measured: NO_USAGE, responseBytes: 0, responseId: null };
    this.question.execution.end(ending, { onRecorded, onUnrecorded: (fault) => this.fail(fault) });
  }

  onRecorded(): void {
    this.flush();
  }

  onUnrecorded(fault: unknown): void {
    this.fail(fault);
  }

  flush(): void {
    if (this.closed) return;
    try {
      this.flushNow();
    } catch (fault) {
      this.fail(fault);
    }
  }

  private flushNow(): void {
    const { exchange, execution } = this.question;
    if (!execution.settled && (this.upstreamEnded || this.cut || this.streamProgress === 'ended')) {
      // The bytes that show the client the end wait for the record of it.
      this.settle(this.howItEnded());
      return;
    }
    if (exchange.closed) {
      if (this.upstreamEnded || this.cut) this.close();
      return;
    }
    if (execution.settled) this.held?.release(this.writer);
    this.writer.flush(this.upstreamEnded);
    // Backpressure: the provider is not read while the client's socket is full.
    if (this.writer.blocked) {
      this.call?.pause();
      if (this.blockedAtMs === 0) this.blockedAtMs = this.context.clock.monotonicMs();
    } else if (this.cut) exchange.cut();
    if (exchange.closed) this.close();
  }

  pause(): void {
    this.call?.pause();
  }

  resume(): void {
    this.call?.resume();
  }

  write(): boolean {
    this.flush();
    return !this.closed && !this.settling && !this.writer.blocked;
  }

  onRoom(): void {
    this.blockedAtMs = 0;
    this.call?.resume();
    // Not from within the client's socket telling that it has room.
    queueMicrotask(() => this.flush());
  }

  private howItEnded(): HowItEnded {
    return this.cut ? 'cut' : this.clientGone ? 'client_left' : 'clean';
  }

  /**
   * Ends the execution: `flush` goes on once its end is recorded, after a count of its tokens where the provider
   * reported none.
   */
  private settle(how: HowItEnded): void {
    if (this.settling) return;
    this.settling = true;
    const { dialect, read } = this.question;
    const failed = this.providerStatus >= 300;
    const report = failed
      ? NO_USAGE
      : reportedUsage(dialect, {
          bounds: read.bounds,
          relayed: this.relayed,
          watch: this.watch,
          cut: how !== 'clean',
          clientLeft: how === 'client_left',
        });
    const { providerStatus } = this;
    const outcome = outcomeOfReply({
      providerStatus,
      how,
      report,
      endedBy: this.watch?.endedBy ?? null,
      relayedBytes: this.relayed.totalBytes,
    });
    const rule = OUTCOME_MATRIX[outcome].chargeRule;
    if (rule === 'nothing') this.end(outcome, NO_USAGE);
    else if (report.usage !== null || !dialect.countable) this.end(outcome, report);
    else
      countUsage(
        countQuestion(this.question, this.request.body, this.relayed, this.isStream),
        this.context.workers,
        report,
      )
        .then((measured) => this.end(outcome, measured))
        .catch((fault: unknown) => this.fail(fault));
  }

  private end(outcome: Outcome, measured: MeasuredUsage): void {
    const status = this.writer.begun || !this.clientGone ? this.providerStatus : null;
    const errorCode = this.providerStatus >= 300 ? `provider_${this.providerStatus}` : null;
    const ids =
      this.stored?.read({ beginning: this.relayed.beginning(), end: this.relayed.end(), cut: this.cut }) ?? NOT_STORED;
    this.question.execution.end(
      { outcome, status, errorCode, measured, responseBytes: this.relayed.totalBytes, ...ids },
      this,
    );
  }

  /** The client is gone: the call is cut, or read on for its usage where the provider's setting says so. */
  onClientLeft(): void {
    // Whole already, in this very turn: nothing was cut.
    if (this.upstreamEnded) this.flush();
    this.clientGone = true;
    this.writer.drop();
    if (this.question.execution.settled) {
      // Only the last bytes had still to be written.
      this.call?.abort();
      this.close();
      return;
    }
    if (this.settling) {
      // The recording goes on; `flush` then finds nothing more to wait for.
      this.call?.abort();
      this.upstreamEnded = true;
      return;
    }
    if (this.deployment.provider.onDisconnect === 'drain' && this.call?.sent === true && this.drainUntilMs === 0) {
      this.drainUntilMs = this.context.clock.monotonicMs() + DRAIN_TIMEOUT_MS;
      this.call.neverResend();
      this.call.resume();
      return;
    }
    this.leave();
  }

  private leave(): void {
    this.call?.abort();
    // `flush` finds nothing more to wait for once the end is recorded.
    this.upstreamEnded = true;
    if (this.providerStatus === 0) this.endWithoutReply('aborted_before_first_byte', 'client_left', () => this.close());
    else this.settle('client_left');
  }

  /** Called from the coarse clock: ends what is out of time. */
  checkTime(nowMs: number): void {
    if (this.closed) return;
    const { exchange } = this.question;
    const { totalMs, idleMs } = this.context.providers.timeoutsOf(this.deployment.provider);
    if (
      this.blockedAtMs !== 0 &&
      !exchange.closed &&
      (nowMs - this.blockedAtMs > idleMs || nowMs - this.startedAtMs > totalMs)
    ) {
      // A client that takes nothing must not hold its provider, its money and this process for ever: it counts as gone.
      exchange.cut();
      this.onClientLeft();
    } else if (!this.settling && this.drainUntilMs !== 0 && nowMs > this.drainUntilMs) {
      this.leave();
    } else if (
      nowMs - this.startedAtMs > totalMs &&
      !this.upstreamEnded &&
      !this.cut &&
      !(this.settling && this.providerStatus === 0)
    ) {
      this.call?.fail(this.providerStatus === 0 ? 'first_byte_timeout' : 'cut');
    }
  }

  /** A fault of ours (the spool does not take records, a bug): the client must not take what it has for complete. */
  private fail(fault: unknown): void {
    this.call?.abort();
    this.question.exchange.fail(fault);
    this.close();
  }

  private close(): void {
    if (this.closed) return;
    this.closed = true;
    this.context.open.remove(this);
    this.relayed.release();
    this.question.exchange.watchClient(null);
    // A connection that still sends from it holds it, too.
    this.context.buffers.release(this.question.request.pooled);
  }
}
