// Decides where a typed-question request is checked, and whether it has any questions at all (spec 4.9, 7.5).

import { checkQuestionsBody } from '../../domain/evaluation/check-questions.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import type { ScannedRequest } from '../request/scan/request-scanner.ts';
import { skipSpace } from '../sse/usage-window.ts';

/** The part of the worker pool that is needed here. */
export type QuestionWorkers = Pick<WorkerPool<'validate-questions'>, 'run'>;

/**
 * Text of this size is parsed in 0.02 ms, nothing but brackets in 0.7 ms; a hand-over to a thread costs about as much.
 */
const INLINE_BYTES_MAX = 16_384;
/** A megabyte of brackets takes a tenth of a second; the rest is for a thread to start on a busy machine. */
const DEADLINE_MS = 2_000;

/**
 * null when the request may go to a provider. A promise only for a big body. Where the worker pool has no room the
 * provider's own check has to do: nothing here protects money or other callers.
 */
export function validateQuestions(body: Buffer, workers: QuestionWorkers): Refusal | null | Promise<Refusal | null> {
  return body.length <= INLINE_BYTES_MAX ? checkQuestionsBody(body) : validateInWorker(body, workers);
}

async function validateInWorker(body: Buffer, workers: QuestionWorkers): Promise<Refusal | null> {
  const copy = new Uint8Array(body);
  const checked = await workers.run<Refusal | null>('validate-questions', copy, {
    bytes: copy.byteLength,
    deadlineMs: DEADLINE_MS,
    transfer: [copy.buffer],
  });
  return checked.ok ? checked.value : null;
}

/**
 * Spec 7.5: under a limit on tokens per minute a body without a non-empty `questions` object is refused with this;
 * without such a limit it is the provider's to judge. null when there are questions.
 */
export function refuseWithoutQuestions(scanned: ScannedRequest, body: Buffer): Refusal | null {
  const questions = scanned.valueOf('questions');
  const hasQuestions =
    questions !== null && questions.kind === 'object' && skipSpace(body, questions.start + 1) < questions.end - 1;
  return hasQuestions ? null : { kind: 'traffic_token_bound_required', field: 'questions' };
}
