// Says what policies would find in one text, for trying them out: names and positions. Nothing is masked or blocked.

import type { ApiName } from '../models/apis.ts';
import { compilePolicy, stageOf } from './compile-policy.ts';
import { type Finding, resolveOverlaps } from './finding.ts';
import type { Action, Policy, Stage } from './policy.ts';
import { scanText } from './scan-text.ts';

/** The longest text that may be tried: a message, not a document. */
export const TRIED_TEXT_BYTES_MAX = 4_096;

export interface FoundInText {
  readonly policy: string;
  readonly version: number;
  readonly rule: string;
  readonly entity: string;
  readonly action: Action;
  /** Positions of its first character and of the first one after it, in Unicode code points. */
  readonly start: number;
  readonly end: number;
}

export interface TextToTry {
  readonly text: string;
  readonly stage: Stage;
  readonly api: ApiName;
}

export interface TriedText {
  readonly findings: readonly FoundInText[];
  /** Names of the external detectors, which are not called here. */
  readonly notAsked: readonly string[];
}

export function findInText(policies: readonly Policy[], { text, stage, api }: TextToTry): TriedText {
  const compiled = compilePolicy(policies, api);
  if (compiled === null) return { findings: [], notAsked: [] };
  const bytes = Buffer.from(text);
  const findings: Finding[] = [];
  scanText(compiled, stage, bytes, 0, bytes.length, findings);
  return {
    findings: resolveOverlaps(findings).map(({ rule, entity, start, end }) => ({
      policy: rule.policy,
      version: rule.version,
      rule: rule.id,
      entity,
      action: rule.action,
      start: codePoints(bytes, start),
      end: codePoints(bytes, end),
    })),
    notAsked: stageOf(compiled, stage)?.externals.map(({ external }) => external.name) ?? [],
  };
}

/** How many characters begin before a byte. */
function codePoints(bytes: Uint8Array, at: number): number {
  let count = 0;
  for (let index = 0; index < at; index += 1) if (((bytes[index] as number) & 0xc0) !== 0x80) count += 1;
  return count;
}
