// Decides where a whole body is screened: small ones on the event loop, larger ones in the worker pool, within a
// deadline.

import { Buffer } from 'node:buffer';
import { type CompiledPolicy, stageOf } from '../../domain/guardrails/compile-policy.ts';
import type { ScreenTextInput } from '../../domain/guardrails/screen-text-task.ts';
import {
  type Cloaking,
  type ScreenedWhole,
  screenWhole,
  type WholeBody,
} from '../../domain/guardrails/screen-whole.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';

/** The part of the worker pool that is needed here. */
export type ScreeningWorkers = Pick<WorkerPool<'screen-text'>, 'run'>;

/** Screened in 0.2 ms; a hand-over to a worker costs the event loop 40 to 70 µs. */
const INLINE_BYTES_MAX = 65_536;
/** Patterns are slower, and their authors are not ours. */
const INLINE_PATTERN_BYTES_MAX = 4_096;
/** A megabyte takes some milliseconds. The rest is for a thread to start, and load the detectors, on a busy machine. */
const DEADLINE_MS = 5_000;
const DEADLINE_MS_PER_MEGABYTE = 250;

const NOT_IN_TIME: ScreenedWhole = {
  edits: [],
  report: { action: 'none', not_scanned: ['timeout'] },
  blocked: null,
  restorable: [],
};

export function screenBody(
  compiled: CompiledPolicy,
  whole: WholeBody,
  cloaking: Cloaking,
  workers: ScreeningWorkers,
): ScreenedWhole | Promise<ScreenedWhole> {
  const inline = stageOf(compiled, whole.stage)?.patterns != null ? INLINE_PATTERN_BYTES_MAX : INLINE_BYTES_MAX;
  return whole.body.length <= inline
    ? screenWhole(compiled, whole, cloaking)
    : inWorker(compiled, whole, cloaking, workers);
}

async function inWorker(
  { key, policies, api }: CompiledPolicy,
  { stage, body, places, parts }: WholeBody,
  { scopes, values, verdicts = null }: Cloaking,
  workers: ScreeningWorkers,
): Promise<ScreenedWhole> {
  const copy = new Uint8Array(body);
  const input: ScreenTextInput = {
    key,
    policies,
    api,
    stage,
    places,
    parts,
    body: copy,
    scopes,
    values: values?.entries() ?? null,
    verdicts,
  };
  const deadlineMs = DEADLINE_MS + Math.ceil((copy.byteLength / 1_048_576) * DEADLINE_MS_PER_MEGABYTE);
  const options = { bytes: copy.byteLength, deadlineMs, transfer: [copy.buffer] };
  const screened = await workers.run<ScreenedWhole | null>('screen-text', input, options);
  return screened.ok && screened.value !== null ? buffersOf(screened.value) : NOT_IN_TIME;
}

/** Buffers come from a thread as plain bytes. */
function buffersOf(screened: ScreenedWhole): ScreenedWhole {
  const edits = screened.edits.map(({ start, end, replacement }) => ({
    start,
    end,
    replacement: bufferOf(replacement),
  }));
  return { ...screened, edits };
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
