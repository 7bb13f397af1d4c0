// Puts another value into a request body where it lies: the model's, and nothing else unless the operator has asked for
// more. Every other byte goes out as it came (DESIGN 3).

import { Buffer } from 'node:buffer';
import { copyInto, moveWithin } from '../../platform/move-bytes.ts';

export interface SplicedBody {
  /** The pooled buffer's own buffer, or a fresh one when neither side had room. */
  readonly buffer: Buffer;
  readonly start: number;
  readonly end: number;
}

/** The model id as JSON, quotes included: made once per catalog entry. */
export function jsonModelId(modelId: string): Buffer {
  return Buffer.from(JSON.stringify(modelId));
}

/**
 * Puts `replacement` where the value stands and closes or opens the gap by moving the shorter side into its room.
 * `bodyStart` and `bodyEnd` are offsets in the buffer; `valueStart` and `valueEnd` are offsets in the body, as
 * the scanner gives them. Bytes of the buffer outside the body count as free room. After this the scanner's offsets no
 * longer hold.
 */
export function spliceBody(
  pooled: { readonly buffer: Buffer },
  bodyStart: number,
  bodyEnd: number,
  valueStart: number,
  valueEnd: number,
  replacement: Buffer,
): SplicedBody {
  const { buffer } = pooled;
  const from = bodyStart + valueStart;
  const to = bodyStart + valueEnd;
  const growth = replacement.length - (valueEnd - valueStart);
  const prefixFits = growth <= bodyStart;
  const suffixFits = bodyEnd + growth <= buffer.length;
  const prefixIsShorter = valueStart <= bodyEnd - to;

  if (prefixFits && (prefixIsShorter || !suffixFits)) {
    if (growth !== 0) moveWithin(buffer, bodyStart - growth, bodyStart, from);
    copyInto(buffer, from - growth, replacement);
    return { buffer, start: bodyStart - growth, end: bodyEnd };
  }
  if (suffixFits) {
    if (growth !== 0) moveWithin(buffer, to + growth, to, bodyEnd);
    copyInto(buffer, from, replacement);
    return { buffer, start: bodyStart, end: bodyEnd + growth };
  }
  const fresh = Buffer.concat([buffer.subarray(bodyStart, from), replacement, buffer.subarray(to, bodyEnd)]);
  return { buffer: fresh, start: 0, end: fresh.length };
}
