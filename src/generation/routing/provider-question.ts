// One question to one provider: one attempt, a hard deadline, a bounded reply, over the provider's own connections.

import type { Provider } from '../../domain/models/catalog.ts';
import type { Clock } from '../../platform/clock.ts';
import { ownUpstreamHeaders } from '../../upstream/header-policy.ts';
import type { UpstreamFault } from '../../upstream/http1/connection.ts';
import { replyHeader } from '../../upstream/http1/reply-head.ts';
import type { UpstreamCall, UpstreamOrigin } from '../../upstream/origin.ts';
import type { Cooldowns } from '../admission/cooldowns.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import { COOLDOWN_STATUSES } from '../reply/failover-statuses.ts';

export interface ProviderPath {
  readonly originOf: (provider: Provider) => UpstreamOrigin;
  readonly pathPrefixOf: (provider: Provider) => string;
  readonly onUpstreamFault: (provider: Provider, fault: UpstreamFault) => void;
  readonly onKeyRefused: (provider: Provider, status: number) => void;
  readonly cooldowns: Cooldowns;
  readonly clock: Clock;
}

export interface ProviderCallParams {
  readonly deployment: Deployment;
  /** Whose request it is asked for: who waits when the provider asks for a pause. */
  readonly organizationId: string;
  /** Without the provider's own prefix. */
  readonly path: string;
  readonly body: object;
  readonly timeoutMs: number;
}

/**
 * The reply's bytes, or why there are none. `refused`: the provider wants nothing to do with this one question (4xx).
 */
export type ProviderReply = Buffer | 'timeout' | 'error' | 'refused';

const REPLY_BYTES_MAX = 262_144;
const HEADERS = ['content-type', 'application/json'];

/** Never rejects. */
export function askProvider(question: ProviderCallParams, through: ProviderPath): Promise<ProviderReply> {
  return new ProviderExchange(question, through).reply;
}

/** JSON.stringify writes half of a surrogate pair as an escape that not every reader takes. */
function bytesOf(body: object): Buffer {
  return Buffer.from(
    JSON.stringify(body, (_, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value)),
  );
}

class ProviderExchange {
  readonly reply: Promise<ProviderReply>;
  private readonly question: ProviderCallParams;
  private readonly bytes: Buffer;
  private readonly through: ProviderPath;
  private readonly end: (reply: ProviderReply) => void;
  private readonly chunks: Buffer[] = [];
  private received = 0;
  private status = 0;
  private call: UpstreamCall | null = null;
  private retriedStale = false;

  constructor(question: ProviderCallParams, through: ProviderPath) {
    this.question = question;
    this.bytes = bytesOf(question.body);
    this.through = through;
    const { promise, resolve } = Promise.withResolvers<ProviderReply>();
    const timer = setTimeout(() => {
      this.call?.abort();
      resolve('timeout');
    }, question.timeoutMs);
    this.end = (reply) => {
      clearTimeout(timer);
      resolve(reply);
    };
    this.reply = promise;
    this.send();
  }

  private send(): void {
    const { provider } = this.question.deployment;
    const path = this.through.pathPrefixOf(provider) + this.question.path;
    this.call = this.through
      .originOf(provider)
      .call(
        { method: 'POST', path, ownHeaders: ownUpstreamHeaders(provider), headers: HEADERS, body: this.bytes },
        this,
        this.retriedStale,
      );
  }

  onReplyStart(status: number, headers: readonly string[]): void {
    this.status = status;
    if (!COOLDOWN_STATUSES.has(status)) return;
    const { clock, cooldowns } = this.through;
    const { deployment, organizationId } = this.question;
    const now = { monotonicMs: clock.monotonicMs(), wallClockMs: clock.nowMs() };
    cooldowns.begin(deployment, organizationId, replyHeader(headers, 'retry-after') ?? null, now);
  }

  onReplyData(chunk: Buffer): void {
    this.received += chunk.length;
    if (this.received <= REPLY_BYTES_MAX) {
      this.chunks.push(Buffer.from(chunk));
      return;
    }
    this.call?.abort();
    this.end('error');
  }

  onReplyPause(): void {
    // Nothing goes on from here before the end.
  }

  onReplyEnd(): void {
    this.end(this.status === 200 ? Buffer.concat(this.chunks) : isRefusal(this.status) ? 'refused' : 'error');
  }

  onKeyRefused(status: number): void {
    this.through.onKeyRefused(this.question.deployment.provider, status);
    this.end('error');
  }

  onReplyFault(fault: UpstreamFault): void {
    this.through.onUpstreamFault(this.question.deployment.provider, fault);
    // A kept connection that turned out dead carried nothing anywhere: that was no attempt.
    if (fault === 'stale_connection' && !this.retriedStale) {
      this.retriedStale = true;
      this.send();
      return;
    }
    this.end('error');
  }
}

const REQUEST_TIMEOUT = 408;

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && status !== REQUEST_TIMEOUT;
}
