// Decides where a body, or an event of a stream, is screened (small ones on the event loop, larger ones in the worker
// pool), and how long that may take.

import { type CompiledPolicy, stageOf } from '../../domain/guardrails/compile-policy.ts';
import { packedOf } from '../../domain/guardrails/compiled-by-key.ts';
import { unpackEdits } from '../../domain/guardrails/packed-edits.ts';
import type { RestorableValues } from '../../domain/guardrails/placeholders.ts';
import type { Stage } from '../../domain/guardrails/policy.ts';
import type { LargeEvent, ScreenEventInput, ScreenEventOutput } from '../../domain/guardrails/screen-event-task.ts';
import type { ScreenTextInput, ScreenTextOutput } from '../../domain/guardrails/screen-text-task.ts';
import {
  type Cloaking,
  type ScreenedWhole,
  screenFewFindings,
  type WholeBody,
} from '../../domain/guardrails/screen-whole.ts';
import type { TextPlaces } from '../../domain/guardrails/text-places.ts';
import { begunFlag } from '../../platform/begun-flag.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import type { EventBytes } from './event-lines.ts';

/** The part of the worker pool that this file needs. */
export type ScreeningWorkers = Pick<WorkerPool<'screen-event' | 'screen-text'>, 'run'>;

/**
 * A body of this size takes 0.1 ms if it is prose, 5 to 10 ms for the worst known text. A hand-over to a worker costs
 * the event loop 0.04 to 0.07 ms.
 */
const INLINE_BYTES_MAX = 32_768;
/** The limit with an organization's own patterns, which are slower, and may be slow on purpose. */
const INLINE_OWN_BYTES_MAX = 4_096;
/**
 * The most bytes times instructions of the patterns. The worst text for the worst pattern takes some 20 ns for each.
 */
const INLINE_PATTERN_WORK_MAX = 409_600;
/** The most bytes times how often each byte may be examined for words, at some 10 ns each. */
const INLINE_WORD_WORK_MAX = 327_680;
/** The least limit, whatever the rules are, since a text is taken in slices of the limit. */
const INLINE_BYTES_MIN = 16;
/** Replacing one finding takes some 5 µs, looking up one that may pass about 1 µs. */
const INLINE_HITS_MAX = 500;
/** A megabyte takes some milliseconds, the worst one found 160. Screening that takes three times that is given up. */
const WORK_MS = 250;
const WORK_MS_PER_MEGABYTE = 250;
/** How long to wait for a thread, which another request's largest body may occupy for eight seconds. */
const WAIT_MS = 10_000;

const NOT_IN_TIME: ScreenedWhole = {
  edits: [],
  report: { action: 'none', not_scanned: ['timeout'] },
  blocked: null,
  restorable: [],
};

/** How much of a body, or of an event of a stream, is screened on the event loop. */
export function inlineBytesMax(compiled: CompiledPolicy, stage: Stage): number {
  const { patterns = [], words = [] } = stageOf(compiled, stage) ?? {};
  const patternSize = patterns.reduce((sum, { set }) => sum + set.size, 0);
  const wordLooks = words.reduce((sum, { search }) => sum + search.looksPerByte, 0);
  const most = Math.min(
    patterns.length === 0 ? INLINE_BYTES_MAX : INLINE_OWN_BYTES_MAX,
    Math.floor(INLINE_PATTERN_WORK_MAX / patternSize),
    Math.floor(INLINE_WORD_WORK_MAX / wordLooks),
  );
  return Math.max(INLINE_BYTES_MIN, most);
}

export function screenBody(
  compiled: CompiledPolicy,
  whole: WholeBody,
  cloaking: Cloaking,
  workers: ScreeningWorkers,
): ScreenedWhole | Promise<ScreenedWhole> {
  const isSmall = whole.body.length <= inlineBytesMax(compiled, whole.stage);
  const screened = isSmall ? screenFewFindings(compiled, whole, cloaking, INLINE_HITS_MAX) : null;
  return screened ?? inWorker(compiled, whole, cloaking, workers);
}

async function inWorker(
  compiled: CompiledPolicy,
  { stage, body, places, parts }: WholeBody,
  { scopes, values, verdicts = null }: Cloaking,
  workers: ScreeningWorkers,
): Promise<ScreenedWhole> {
  const copy = new Uint8Array(body);
  const options = withinDeadline(copy);
  const input: ScreenTextInput = {
    ...packedOf(compiled),
    stage,
    places,
    parts,
    body: copy,
    scopes,
    values: values?.entries() ?? null,
    verdicts,
    begun: options.work.begun,
  };
  const screened = await workers.run<ScreenTextOutput | null>('screen-text', input, options);
  if (!screened.ok || screened.value === null) return NOT_IN_TIME;
  return { ...screened.value, edits: unpackEdits(screened.value.edits) };
}

/** How long screening this many bytes may take. */
export function workMsOf(bytes: number): number {
  return WORK_MS + Math.ceil((bytes / 1_048_576) * WORK_MS_PER_MEGABYTE);
}

/** The options with which a thread is given bytes to screen. */
function withinDeadline({ buffer, byteLength: bytes }: Uint8Array<ArrayBuffer>) {
  const workMs = workMsOf(bytes);
  const work = { begun: begunFlag(), deadlineMs: workMs };
  return { bytes, deadlineMs: WAIT_MS + workMs, work, transfer: [buffer] };
}

/** Screens an event that is too big for the event loop. null: it could not be screened in time. */
export async function screenEventInWorker(
  compiled: CompiledPolicy,
  { bytes, dataStart, dataEnd }: EventBytes,
  { places, values }: { readonly places: TextPlaces; readonly values: RestorableValues | null },
  workers: ScreeningWorkers,
): Promise<LargeEvent | null> {
  const copy = new Uint8Array(bytes);
  const options = withinDeadline(copy);
  const { begun } = options.work;
  const input: ScreenEventInput = {
    ...packedOf(compiled),
    places,
    bytes: copy,
    dataStart,
    dataEnd,
    values: values?.entries() ?? null,
    begun,
  };
  const screened = await workers.run<ScreenEventOutput | null>('screen-event', input, options);
  if (!screened.ok || screened.value === null) return null;
  const { event, ...counted } = screened.value;
  return { ...counted, event: { ...event, edits: unpackEdits(event.edits), repeats: unpackEdits(event.repeats) } };
}
