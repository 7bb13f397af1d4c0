// Changes what the client gets of a stream. Metering has read the provider's own bytes in an earlier stage, and a later
// stage withholds the stream's end. A transform is a class with `feed` and `end`, and a line in `transformsOf`.

import { Buffer } from 'node:buffer';
import type { ReplyHeaders } from '../../upstream/http1/reply-head.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import type { OutgoingRequest } from '../request/outgoing-request.ts';
import { UsageChunkFilter } from '../sse/usage-chunk-filter.ts';
import type { CapturedReply } from './capture.ts';

export interface StreamTransform {
  /**
   * Returns what goes on to the client for these bytes; bytes that it holds back follow later. `chunk` is memory of the
   * reply (CaptureBuffer) that does not change until the relay is over: views of it may be kept and returned, and
   * nobody writes to it.
   */
  feed(chunk: Buffer): Buffer;
  /** The stream is complete: returns everything held back. */
  end(): Buffer;
}

function transformsOf(reply: CapturedReply, request: OutgoingRequest): readonly StreamTransform[] {
  if (!reply.isStream) return NONE;
  // The gateway asked for the usage chunk and the client did not, so it is filtered out.
  return request.asksForUsage ? [new UsageChunkFilter()] : NONE;
}

const NONE: readonly StreamTransform[] = [];

export class Transform extends ReplyStage {
  protected readonly next: ReplyHandler;
  private readonly reply: CapturedReply;
  private readonly request: OutgoingRequest;
  private transforms = NONE;

  constructor(next: ReplyHandler, reply: CapturedReply, request: OutgoingRequest) {
    super();
    this.next = next;
    this.reply = reply;
    this.request = request;
  }

  override onReplyStart(status: number, headers: ReplyHeaders): void {
    this.transforms = transformsOf(this.reply, this.request);
    // The transform reads lines, since it must have seen the stream's last event before the end is recorded.
    if (this.transforms !== NONE) this.reply.isReadByLines = true;
    this.next.onReplyStart(status, this.transforms === NONE ? headers : withoutLength(headers));
  }

  override onReplyData(chunk: Buffer): void {
    let rest = chunk;
    for (const transform of this.transforms) rest = transform.feed(rest);
    if (rest.length > 0) this.next.onReplyData(rest);
  }

  override onReplyEnd(): void {
    if (this.transforms !== NONE) this.passRest();
    this.next.onReplyEnd();
  }

  private passRest(): void {
    let rest = EMPTY;
    for (const transform of this.transforms) rest = Buffer.concat([transform.feed(rest), transform.end()]);
    if (rest.length > 0) this.next.onReplyData(rest);
  }
}

const EMPTY = Buffer.alloc(0);

/** The headers of a reply whose bytes a stage may change: its declared length may become wrong. */
export function withoutLength(headers: ReplyHeaders): ReplyHeaders {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name === 'content-length');
  return at === -1 ? headers : headers.toSpliced(at, 2);
}
