// The bytes of one request on their way to a provider: the client's own, with the provider's model spliced in for each
// attempt, and the question for usage where a deployment's `stream_usage: request` says so (DESIGN 3).

import { HEADROOM_BYTES, type PooledBuffer } from '../../platform/buffer-pool.ts';
import type { BodyInRoom } from '../../upstream/http1/request-head.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { ReadRequest } from '../dialects/dialect.ts';
import { askForUsage, type BodyEdit } from './ask-for-usage.ts';
import { spliceBody } from './body-splice.ts';
import type { ReceivedRequest } from './receive.ts';
import type { ScannedRequest } from './scan/request-scanner.ts';

export class RequestBytes {
  private readonly pooled: PooledBuffer;
  /** Where the request lies: its buffer, until a splice finds no room in it or a further attempt needs a copy. */
  private room: { readonly buffer: Buffer };
  private start: number;
  private end: number;
  /** Of the model value within the body. */
  private readonly modelStart: number;
  private modelEnd: number;
  private readonly modelReceivedEnd: number;
  private readonly isForm: boolean;
  private readonly scanned: ScannedRequest | null;
  private readonly isStreamed: boolean;
  private attempts = 0;
  /** What takes the present attempt's question for usage out again. */
  private unasking: BodyEdit | null = null;

  constructor(request: ReceivedRequest, { modelAt, bounds }: ReadRequest) {
    const { pooled, body, form, scanned } = request;
    this.pooled = pooled;
    this.room = pooled;
    this.start = pooled.bodyStart;
    this.end = pooled.bodyStart + body.length;
    this.modelStart = modelAt.start;
    this.modelEnd = modelAt.end;
    this.modelReceivedEnd = modelAt.end;
    this.isForm = form !== null;
    this.scanned = scanned;
    this.isStreamed = bounds.streamed;
  }

  /** The body as it is at present. */
  get body(): Buffer {
    return this.room.buffer.subarray(this.start, this.end);
  }

  /** The present attempt asks for usage where the client did not. */
  get asksForUsage(): boolean {
    return this.unasking !== null;
  }

  /** The body for an attempt at this deployment. What lies before it is ours. */
  bodyFor({ modelJson, modelText, asksForUsage }: Deployment): BodyInRoom {
    // The socket of an earlier attempt may still be sending from where the request lies: a further one has its own
    // copy, so that nothing is spliced there.
    if (this.attempts > 0) this.copy();
    this.attempts += 1;
    if (this.unasking !== null) this.apply(this.unasking);
    this.unasking = null;
    const model = this.isForm ? modelText : modelJson;
    this.apply({ start: this.modelStart, end: this.modelEnd, replacement: model });
    this.modelEnd = this.modelStart + model.length;
    if (asksForUsage && this.isStreamed) this.askForUsage();
    const { buffer } = this.room;
    return { buffer, start: this.start, end: this.end, pooled: buffer === this.pooled.buffer ? this.pooled : null };
  }

  private askForUsage(): void {
    const options = this.scanned?.valueOf('stream_options') ?? null;
    // What lies behind the model has moved with its end.
    const moved = options !== null && options.start > this.modelStart ? this.modelEnd - this.modelReceivedEnd : 0;
    const edit = askForUsage(
      this.body,
      options === null ? null : { start: options.start + moved, end: options.end + moved },
    );
    if (edit === null) return;
    const { start, end, replacement } = edit;
    this.unasking = {
      start,
      end: start + replacement.length,
      replacement: Buffer.from(this.body.subarray(start, end)),
    };
    this.apply(edit);
  }

  private apply({ start, end, replacement }: BodyEdit): void {
    const spliced = spliceBody(this.room, this.start, this.end, start, end, replacement);
    this.room = spliced;
    this.start = spliced.start;
    this.end = spliced.end;
  }

  private copy(): void {
    const { body } = this;
    const buffer = Buffer.allocUnsafeSlow(HEADROOM_BYTES + body.length);
    body.copy(buffer, HEADROOM_BYTES);
    this.room = { buffer };
    this.start = HEADROOM_BYTES;
    this.end = buffer.length;
  }
}
