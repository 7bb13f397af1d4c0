// The platform envelope (spec 7.1). `code` is an opaque identifier, so that no client branches on it. The exception is
// a code that the spec itself publishes (owner_floor, spec 7.8).

import type { RefusalDescription } from '../description.ts';
import { REFUSAL_RULES } from '../refusal-rules.ts';

export interface PlatformEnvelope {
  readonly code: string;
  readonly error: string;
  readonly message?: string;
}

const OPAQUE_CODES: ReadonlyMap<string, string> = new Map(
  Object.keys(REFUSAL_RULES).map((kind) => [kind, opaqueCode(kind)]),
);

export function platformEnvelope(refusal: RefusalDescription): PlatformEnvelope {
  return {
    code: refusal.isCodePublished ? refusal.code : (OPAQUE_CODES.get(refusal.kind) ?? opaqueCode(refusal.kind)),
    error: refusal.summary,
    ...(refusal.advice === null ? {} : { message: refusal.advice }),
  };
}

/**
 * FNV-1a of the kind: the same in every version, so that a reported code can be traced, but without meaning to a
 * client.
 */
function opaqueCode(kind: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < kind.length; index++) hash = Math.imul(hash ^ kind.charCodeAt(index), 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}
