// Screens a complete request or reply. The same code runs on the event loop and in a worker thread.

import type { Buffer } from 'node:buffer';
import { BodyScreen, type TextEdit } from './body-screen.ts';
import { type CompiledPolicy, stageOf } from './compile-policy.ts';
import { ExternalTexts, type ExternalVerdicts } from './external-texts.ts';
import { type CloakScopes, Placeholders, type RestorableValues } from './placeholders.ts';
import type { Stage } from './policy.ts';
import type { BlockedBy, StageReport } from './screening-report.ts';
import { KIND, placeNodes, type TextPlaces } from './text-places.ts';

/** A part of a form that is text. */
export interface TextPart {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

export interface WholeBody {
  readonly stage: Stage;
  readonly body: Buffer;
  readonly places: TextPlaces;
  /** null: the body is JSON. */
  readonly parts: readonly TextPart[] | null;
}

/**
 * Of a request: `scopes`, by which its placeholders are made. Of a reply: the `values` of its request's placeholders.
 */
export interface Cloaking {
  readonly scopes: CloakScopes | null;
  readonly values: RestorableValues | null;
  /** What external detectors found in the texts; absent: they are still to be asked. */
  readonly verdicts?: ExternalVerdicts | null;
}

/** Plain data. */
export interface ScreenedWhole {
  /** Sorted and without overlaps; empty if the body stays as it is. */
  readonly edits: readonly TextEdit[];
  readonly report: StageReport;
  readonly blocked: BlockedBy | null;
  /** The request's placeholders whose values its reply gets back, with those values. */
  readonly restorable: readonly (readonly [string, string])[];
  /** The texts that external detectors are to be asked about; absent: there is nothing to ask. */
  readonly texts?: readonly string[];
}

/**
 * Like `screenWhole`, for the event loop: null if there are more than `hitsMax` findings and allowed values, which take
 * too long there.
 */
export function screenFewFindings(
  compiled: CompiledPolicy,
  whole: WholeBody,
  cloaking: Cloaking,
  hitsMax: number,
): ScreenedWhole | null {
  const screened = screen(compiled, whole, cloaking, hitsMax);
  return screened.isOver ? null : screened.whole;
}

export function screenWhole(compiled: CompiledPolicy, whole: WholeBody, cloaking: Cloaking): ScreenedWhole {
  return screen(compiled, whole, cloaking).whole;
}

function screen(
  compiled: CompiledPolicy,
  whole: WholeBody,
  { scopes, values, verdicts = null }: Cloaking,
  hitsMax = Number.POSITIVE_INFINITY,
): { readonly whole: ScreenedWhole; readonly isOver: boolean } {
  const { stage, body, places, parts } = whole;
  const placeholders = scopes === null ? null : new Placeholders(scopes);
  const asks = (stageOf(compiled, stage)?.externals.length ?? 0) > 0;
  const external = asks ? new ExternalTexts(verdicts) : null;
  const bodyScreen = new BodyScreen({ compiled, stage, placeholders, values, external, hitsMax });
  const { request, reply } = placeNodes(places);
  if (parts === null) bodyScreen.json(body, 0, body.length, stage === 'input' ? request : reply);
  else
    for (const { name, start, end } of parts) {
      const [member] = request.members[name.length]?.filter((candidate) => candidate.name === name) ?? [];
      if (member?.node.kind !== KIND.opaque) bodyScreen.plain(body, start, end);
    }
  const { edits, tally } = bodyScreen.result();
  if (external?.isIncomplete === true) tally.miss('external');
  const found: ScreenedWhole = {
    edits,
    report: tally.report(),
    blocked: tally.blocked,
    restorable: placeholders?.entries() ?? [],
    ...(external === null || verdicts !== null ? {} : { texts: external.collected }),
  };
  return { whole: found, isOver: bodyScreen.isOver };
}

/** Whether some text could not be scanned in full, so that the body counts as not screened. */
export function isUnscreened({ not_scanned = [] }: StageReport): boolean {
  return not_scanned.some(
    (reason) => reason === 'malformed' || reason === 'tokens' || reason === 'too_large' || reason === 'timeout',
  );
}
