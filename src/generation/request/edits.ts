// The body that goes to a provider: the client's own bytes and a sorted list of edits. Each attempt begins with the
// client's bytes again, and nothing is copied or written over: what goes out is the pieces between the edits and the
// replacements, in order.

import { Buffer } from 'node:buffer';
import type { OutgoingBody } from '../../upstream/http1/request-head.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { ReadRequest } from '../dialects/dialect.ts';
import { askForUsage } from './ask-for-usage.ts';
import type { ReceivedRequest } from './receive.ts';

/** `replacement` in the place of the bytes from `start` to `end` of the client's body. */
export interface BodyEdit {
  readonly start: number;
  readonly end: number;
  readonly replacement: Buffer;
}

/** A client's request on its way to providers: `bodyFor` gives each attempt its body. */
export class OutgoingRequest {
  /**
   * The present attempt asks for usage where the client did not: the client must not see the reply's chunk that tells
   * it.
   */
  asksForUsage = false;
  private readonly request: ReceivedRequest;
  private readonly read: ReadRequest;

  constructor(request: ReceivedRequest, read: ReadRequest) {
    this.request = request;
    this.read = read;
  }

  /** As the client sent it. */
  get body(): Buffer {
    return this.request.body;
  }

  /** The body for an attempt at this deployment. */
  bodyFor({ modelJson, modelText, asksForUsage }: Deployment): OutgoingBody {
    const { request, read } = this;
    const { start, end } = read.modelAt;
    const model: BodyEdit = { start, end, replacement: request.form === null ? modelJson : modelText };
    const usage = asksForUsage && read.bounds.streamed ? usageEdit(request) : null;
    this.asksForUsage = usage !== null;
    const edits = usage === null ? [model] : usage.start < start ? [usage, model] : [model, usage];
    return { pieces: applyEdits(request.body, edits), pooled: request.pooled };
  }
}

function usageEdit({ body, scanned }: ReceivedRequest): BodyEdit | null {
  return askForUsage(body, scanned?.valueOf('stream_options') ?? null);
}

/** `edits`: sorted by where they begin, and none overlaps another. */
export function applyEdits(body: Buffer, edits: readonly BodyEdit[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const { start, end, replacement } of edits) {
    if (start > at) pieces.push(body.subarray(at, start));
    if (replacement.length > 0) pieces.push(replacement);
    at = end;
  }
  if (at < body.length) pieces.push(body.subarray(at));
  return pieces;
}

/** The model id as JSON, quotes included: made once per catalog entry. */
export function jsonModelId(modelId: string): Buffer {
  return Buffer.from(JSON.stringify(modelId));
}
