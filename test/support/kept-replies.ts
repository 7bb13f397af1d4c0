// Builds replies as the relay has captured them when it reaches their end.

import type { KeptReply } from '../../src/generation/dialects/dialect.ts';
import { CaptureBuffer } from '../../src/generation/reply/capture-buffer.ts';
import { type SplitPlan, splitBytes } from './byte-splits.ts';

export function keptReply(body: Buffer | string, split: SplitPlan = { kind: 'whole' }, cut = false): KeptReply {
  return keptPieces(splitBytes(Buffer.from(body), split), cut);
}

export function keptPieces(pieces: readonly Buffer[], cut: boolean): KeptReply {
  const kept = new CaptureBuffer();
  for (const piece of pieces) kept.append(piece);
  return { beginning: kept.beginning(), end: kept.end(), condensed: kept.condensedDocument(), cut };
}

/** A stream that ended after these bytes without its last event. */
export function cutReply(body: Buffer | string): KeptReply {
  return keptReply(body, { kind: 'whole' }, true);
}
