// Makes one reply of attempts at several deployments: as long as nothing of a reply was relayed, the next deployment is
// called when a provider cannot be reached, refuses, or does not accept its key.

import { OWN_REPLIES, type OwnReplyMeaning } from '../../domain/own-keys/own-reply.ts';
import type { UpstreamCall } from '../../upstream/call.ts';
import type { UpstreamFault } from '../../upstream/call-connection.ts';
import type { ReplyHeaders } from '../../upstream/http1/reply-head.ts';
import type { Complaint } from '../../upstream/key-complaint.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import { type Deployment, isOwn } from '../catalog/serving-catalog.ts';
import type { OutgoingRequest } from '../request/outgoing-request.ts';
import { failedCall, isFailure } from './failed-call.ts';
import { headersFor, type KeyOwner } from './idempotency-key.ts';
import {
  type Called,
  FAILOVER_STATUSES,
  learnFromHead,
  learnFromRefusedKey,
  learnFromUnreached,
} from './learn-from-calls.ts';
import type { RelayContext, RelayParams } from './relay-params.ts';

export interface FailoverParts {
  readonly params: RelayParams;
  readonly context: RelayContext;
  readonly request: OutgoingRequest;
  /** Told of a fault of ours. Otherwise nobody would learn that an attempt that made no call is over. */
  onOwnFault(fault: unknown): void;
}

export class Failover extends ReplyStage {
  protected readonly next: ReplyHandler;
  /** The present attempt; null before the first. */
  call: UpstreamCall | null = null;
  private readonly parts: FailoverParts;
  private index = 0;
  private reportedIndex = -1;

  constructor(next: ReplyHandler, parts: FailoverParts) {
    super();
    this.next = next;
    this.parts = parts;
  }

  get deployment(): Deployment {
    return this.parts.params.deployments[this.index] as Deployment;
  }

  private get called(): Called {
    return { deployment: this.deployment, organizationId: this.parts.params.organizationId };
  }

  /** Sends the request to the present deployment. */
  attempt(): void {
    const { params, context, request } = this.parts;
    const { deployment } = this;
    try {
      this.call = context.providers.call(
        deployment.provider,
        {
          method: 'POST',
          api: params.dialect.api,
          path: params.dialect.path,
          query: params.exchange.query,
          providerModel: deployment.providerModel,
          streamed: params.read.bounds.streamed,
          credential: deployment.credential,
          headers: headersFor(params.headers, deployment.provider, ownerOf(params)),
          body: request.bodyFor(deployment),
        },
        this,
      );
      params.execution.onCall(this.call.beganAtMs);
    } catch (fault) {
      this.parts.onOwnFault(fault);
    }
  }

  override onReplyStart(status: number, headers: ReplyHeaders): void {
    if (isFailure(status)) this.report('status', status);
    this.noteOwnKey(learnFromHead(status, headers, this.called, this.parts.context), status);
    if (FAILOVER_STATUSES.has(status) && this.moveOn('status', status)) {
      // A provider does not bill a refused request. The rest of the refusal is read, so that the connection can be
      // reused.
      this.call?.discard();
      this.attempt();
      return;
    }
    this.next.onReplyStart(status, headers);
  }

  /** The connection reports an end only once, so a fault of ours while handling the end must end the relay here. */
  override onReplyEnd(): void {
    try {
      this.next.onReplyEnd();
    } catch (fault) {
      this.parts.onOwnFault(fault);
    }
  }

  override onReplyFault(fault: UpstreamFault): void {
    // Any other fault may come after a complete reply, so only the relay can tell what it means.
    const isUnreached = fault === 'connect_failed';
    const { deployment } = this;
    if (isUnreached) {
      this.report(fault, null);
      this.noteOwnKey(learnFromUnreached(this.called, this.parts.context), null);
    }
    try {
      if (isUnreached && this.moveOn(fault, null)) this.attempt();
      // An own key whose provider cannot be reached cannot serve (spec 5.6).
      else if (isUnreached && isOwn(deployment)) this.next.onKeyRefused(0, 'key');
      else this.next.onReplyFault(fault);
    } catch (thrown) {
      this.parts.onOwnFault(thrown);
    }
  }

  override onKeyRefused(status: number, complaint: Complaint): void {
    this.report('key_refused', status);
    const meaning = learnFromRefusedKey(status, complaint, this.called, this.parts.context);
    this.noteOwnKey(meaning, status);
    try {
      if (this.moveOn('key_refused', status, meaning === 'key')) this.attempt();
      else this.next.onKeyRefused(status, complaint);
    } catch (fault) {
      this.parts.onOwnFault(fault);
    }
  }

  /** Reports a failed call, once for each attempt: its first failure. */
  report(cause: string, status: number | null): void {
    if (this.reportedIndex === this.index) return;
    this.reportedIndex = this.index;
    const { params, context } = this.parts;
    const facts = { executionId: params.execution.id, status, attempt: this.index + 1 };
    context.reportFailedCall(failedCall(this.deployment, cause, facts));
  }

  /** Records that an own key could not serve; null: there is nothing to record. */
  private noteOwnKey(meaning: OwnReplyMeaning | null, status: number | null): void {
    const { ownKey } = this.deployment;
    if (meaning === null || ownKey === undefined) return;
    const { reason } = OWN_REPLIES[meaning];
    this.parts.params.execution.onOwnKeyFailed({ credential_id: ownKey.keyId, reason, status });
  }

  /**
   * Goes on to the next deployment; false: there is none, or the client has left. A key's previous secret, in a
   * rotation, is tried only when its present secret is refused.
   */
  private moveOn(cause: string, status: number | null, isSecretRefused = false): boolean {
    const { deployments, exchange, execution } = this.parts.params;
    let next = this.index + 1;
    if (!isSecretRefused && deployments[next]?.ownKey?.isPrevious === true) next += 1;
    if (next >= deployments.length || exchange.closed) return false;
    this.index = next;
    execution.moveTo(this.deployment, cause, status);
    return true;
  }
}

function ownerOf({ organizationId, execution }: RelayParams): KeyOwner {
  return { organizationId, walletId: execution.admission.walletId };
}
