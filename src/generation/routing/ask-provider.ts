// Sends one request of the gateway's own to one provider: one attempt, a hard deadline, a bounded reply.

import type { UpstreamCall } from '../../upstream/call.ts';
import type { UpstreamFault } from '../../upstream/call-connection.ts';
import type { ReplyHeaders } from '../../upstream/http1/reply-head.ts';
import type { Complaint } from '../../upstream/key-complaint.ts';
import type { Providers } from '../../upstream/providers.ts';
import type { ReplyHandler } from '../../upstream/reply-handler.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { failedCall, isFailure, type ReportFailedCall } from '../reply/failed-call.ts';
import {
  type LearntFromCalls,
  learnFromHead,
  learnFromRefusedKey,
  learnFromUnreached,
} from '../reply/learn-from-calls.ts';

export interface ProviderPath extends LearntFromCalls {
  readonly providers: Providers;
  readonly reportFailedCall: ReportFailedCall;
}

export interface ProviderCallParams {
  readonly deployment: Deployment;
  /** The organization for whose request this is asked. A pause that the provider asks for is its. */
  readonly organizationId: string;
  readonly dialect: Dialect;
  readonly body: object;
  readonly timeoutMs: number;
}

/** The reply's bytes, or why there are none. `refused`: the provider rejects this one request (4xx). */
export type ProviderReply = Buffer | 'timeout' | 'error' | 'refused';

const REPLY_BYTES_MAX = 262_144;
const HEADERS = ['content-type', 'application/json'];

/** Rejects or throws only for a fault of ours. */
export function askProvider(params: ProviderCallParams, through: ProviderPath): Promise<ProviderReply> {
  const { promise, resolve } = Promise.withResolvers<ProviderReply>();
  const { deployment, dialect, body, timeoutMs } = params;
  const request = {
    method: 'POST',
    api: dialect.api,
    path: dialect.path,
    query: '',
    providerModel: deployment.providerModel,
    streamed: false,
    credential: deployment.credential,
    headers: HEADERS,
    body: bytesOf(withModelAsWanted(body, deployment)),
  } as const;
  const reply = new WholeReply(params, through, resolve);
  reply.call = through.providers.call(deployment.provider, request, reply);
  const timer = setTimeout(() => reply.cut('timeout'), timeoutMs);
  return promise.finally(() => clearTimeout(timer));
}

/** If the provider's address names the model, the body has other members instead of `model`. */
function withModelAsWanted(body: object, { insteadOfModel }: Deployment): object {
  if (insteadOfModel === null) return body;
  const { model: _, ...others } = body as { readonly model?: unknown };
  return { ...(JSON.parse(`{${insteadOfModel.toString()}}`) as object), ...others };
}

/**
 * Strings are made well-formed first: JSON.stringify writes half a surrogate pair as an escape that not every reader
 * accepts.
 */
function bytesOf(body: object): Buffer {
  return Buffer.from(
    JSON.stringify(body, (_, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value)),
  );
}

/** Gathers a reply up to its bound. */
class WholeReply implements ReplyHandler {
  call: UpstreamCall | null = null;
  private readonly params: ProviderCallParams;
  private readonly through: ProviderPath;
  private readonly end: (reply: ProviderReply) => void;
  private readonly chunks: Buffer[] = [];
  private receivedBytes = 0;
  private status = 0;

  constructor(params: ProviderCallParams, through: ProviderPath, end: (reply: ProviderReply) => void) {
    this.params = params;
    this.through = through;
    this.end = end;
  }

  onReplyStart(status: number, headers: ReplyHeaders): void {
    this.status = status;
    if (isFailure(status)) this.report('status');
    learnFromHead(status, headers, this.params, this.through);
  }

  onReplyData(chunk: Buffer): void {
    this.receivedBytes += chunk.length;
    if (this.receivedBytes <= REPLY_BYTES_MAX) this.chunks.push(Buffer.from(chunk));
    else this.cut('error');
  }

  cut(why: 'timeout' | 'error'): void {
    if (this.call?.isOver === false) this.report(why === 'timeout' ? why : 'reply_too_large');
    this.call?.abort();
    this.end(why);
  }

  onReplyPause(): void {
    // The reply is used only once it is complete.
  }

  onReplyEnd(): void {
    this.end(this.status === 200 ? Buffer.concat(this.chunks) : isRefusal(this.status) ? 'refused' : 'error');
  }

  onKeyRefused(status: number, complaint: Complaint): void {
    this.status = status;
    this.report('key_refused');
    learnFromRefusedKey(status, complaint, this.params, this.through);
    this.end('error');
  }

  onReplyFault(fault: UpstreamFault): void {
    this.report(fault);
    if (fault === 'connect_failed') learnFromUnreached(this.params, this.through);
    this.end('error');
  }

  private report(cause: string): void {
    const status = this.status === 0 ? null : this.status;
    this.through.reportFailedCall(failedCall(this.params.deployment, cause, { status }));
  }
}

const REQUEST_TIMEOUT = 408;

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && status !== REQUEST_TIMEOUT;
}
