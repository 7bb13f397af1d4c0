// The bytes of one request on their way to a provider: the client's own, with the provider's model spliced in for each attempt.

import type { Offer } from '../catalog/serving-catalog.ts';
import type { ReadRequest } from '../dialects/dialect.ts';
import { spliceModel } from '../dialects/model-splice.ts';
import type { ReceivedRequest } from './receive-request.ts';
import { SLAB_HEADROOM_BYTES } from './slab-pool.ts';

export class RequestBytes {
  /** Where the request lies: its slab, until a splice finds no room in it or a further attempt needs its own copy. */
  private room: { readonly buffer: Buffer };
  private start: number;
  private end: number;
  /** Of the model value within the body. */
  private readonly modelStart: number;
  private modelEnd: number;
  private readonly isForm: boolean;
  private attempts = 0;

  constructor(request: ReceivedRequest, { modelAt }: ReadRequest) {
    const { slab, body, form } = request;
    this.room = slab;
    this.start = slab.bodyStart;
    this.end = slab.bodyStart + body.length;
    this.modelStart = modelAt.start;
    this.modelEnd = modelAt.end;
    this.isForm = form !== null;
  }

  /** The body as it is at present. */
  get body(): Buffer {
    return this.room.buffer.subarray(this.start, this.end);
  }

  /** How much of the room before the body is ours: the head of the upstream request goes there. */
  get headroomBytes(): number {
    return this.start;
  }

  /** The body for an attempt at this offer. */
  bodyFor({ modelJson, modelText }: Offer): Buffer {
    // The socket of an earlier attempt may still be sending from where the request lies: a further one has its own copy.
    if (this.attempts > 0) this.copy();
    this.attempts += 1;
    const model = this.isForm ? modelText : modelJson;
    const spliced = spliceModel(this.room, this.start, this.end, this.modelStart, this.modelEnd, model);
    this.room = spliced;
    this.start = spliced.start;
    this.end = spliced.end;
    this.modelEnd = this.modelStart + model.length;
    return this.body;
  }

  private copy(): void {
    const { body } = this;
    const buffer = Buffer.allocUnsafeSlow(SLAB_HEADROOM_BYTES + body.length);
    body.copy(buffer, SLAB_HEADROOM_BYTES);
    this.room = { buffer };
    this.start = SLAB_HEADROOM_BYTES;
    this.end = buffer.length;
  }
}
