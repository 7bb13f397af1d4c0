// The typed-question dialect: it has no stream, its output is free of charge, and its usage has two counts (spec 4.9,
// 8).

import { checkQuestionsBody } from '../../domain/evaluation/check-questions.ts';
import type { QuestionContext, ValidateQuestionsInput } from '../../domain/evaluation/validate-questions-task.ts';
import type { TextPlaces } from '../../domain/guardrails/text-places.ts';
import { APIS } from '../../domain/models/apis.ts';
import type { Model } from '../../domain/models/catalog.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { NO_COUNTS, type Usage } from '../../domain/usage/usage.ts';
import { begunFlag } from '../../platform/begun-flag.ts';
import { skipSpace } from '../../platform/bytes/json-bytes.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import { TOKENIZER_WAIT_MS } from '../count-tokens.ts';
import type { ScannedRequest } from '../request/scan/request-scanner.ts';
import { NO_STREAM } from '../sse/stream-end.ts';
import { documentUsage } from '../sse/usage-window.ts';
import type { Dialect, KeptReply } from './dialect.ts';
import { systemoneDescription } from './systemone-description.ts';
import { withCost } from './usage/reply-details.ts';
import { countOf } from './usage/reported-counts.ts';

/**
 * Input tokens that a provider adds to the body's, part of the hold's bound: 260 to 300 were measured for a request of
 * one question, and fewer for three. Since each byte of the body counts as a token beside them, this covers them.
 */
export const SYSTEMONE_OVERHEAD_TOKENS = 320;

/** Answers are keyed by the ids of questions and the names of options, so neither is rewritten. */
const SYSTEMONE_TEXTS: TextPlaces = {
  request: 'request',
  reply: 'reply',
  event: 'reply',
  shapes: {
    request: { members: { model: 'opaque', questions: { shape: 'questions' } } },
    questions: { members: {}, otherwise: { shape: 'question' }, names: 'fragile' },
    question: { members: { type: 'opaque', criteria: { shape: 'criteria' } } },
    criteria: { members: {}, names: 'fragile' },
    reply: { members: { id: 'opaque', model: 'opaque', usage: 'opaque' }, otherwise: { shape: 'answer' } },
    answer: { members: {}, otherwise: { shape: 'answer' }, names: 'fragile' },
  },
};

export const systemone: Dialect = {
  api: 'systemone',
  path: APIS.systemone.path,
  envelope: 'systemone',
  description: systemoneDescription,
  outputLimitField: 'questions',
  cheaper: 'send less "state" or fewer "questions"',
  texts: SYSTEMONE_TEXTS,
  storedObjects: null,
  inputField: 'state',
  charged: true,
  unit: 'tokens',
  overheadTokens: SYSTEMONE_OVERHEAD_TOKENS,
  check: validateQuestions,
  refuseUnbounded: ({ scanned, body }) => (scanned === null ? null : refuseWithoutQuestions(scanned, body)),
  // Output costs nothing and so needs no bound.
  readBounds: () => ({ streamed: false, outputTokensMax: 0, answers: 1, isReadInParts: true }),
  readUsage,
  watchStreamEnd: () => NO_STREAM,
  isWholeWithoutEnd: () => true,
};

/**
 * The usage report is the `usage` at the top level: answers are keyed by ids of the caller's choice, and `usage` may be
 * one. Output costs nothing, and providers may leave its count out.
 */
function readUsage(reply: KeptReply): Usage | null {
  const usage = documentUsage(reply);
  if (usage === null) return null;
  const inputTokens = countOf(usage['input_tokens']);
  const outputTokens = countOf(usage['output_tokens']) ?? 0;
  return withCost({ ...NO_COUNTS, inputTokens, outputTokens }, usage, reply);
}

/** The part of the worker pool that this file needs. */
export type QuestionWorkers = Pick<WorkerPool<'validate-questions'>, 'run'>;

/**
 * The event loop reads questions up to this size in a few microseconds, 0.8 ms for nothing but brackets. To hand them
 * to a thread costs the event loop 0.03 to 0.07 ms, and the request a wait behind other work.
 */
const INLINE_BYTES_MAX = 16_384;
/** A megabyte of brackets takes a tenth of a second; the rest is for a busy machine. */
const WORK_MS = 2_000;

/**
 * Checks the questions; null: the request may go to a provider. Returns a promise only for a big body, or one that may
 * be too long for its model. If the worker pool has no room the provider's own check must do, since this check protects
 * neither money nor other callers.
 */
export function validateQuestions(
  body: Buffer,
  workers: QuestionWorkers,
  { contextLength, tokenizer }: Pick<Model, 'contextLength' | 'tokenizer'>,
): Refusal | null | Promise<Refusal | null> {
  // A token is at least one byte, so a body of no more bytes than the context has tokens fits it.
  const fits = contextLength === null || body.length <= contextLength;
  if (fits && body.length <= INLINE_BYTES_MAX) return checkQuestionsBody(body);
  return validateInWorker(body, workers, fits ? null : { length: contextLength, encoding: tokenizer });
}

async function validateInWorker(
  body: Buffer,
  workers: QuestionWorkers,
  context: QuestionContext | null,
): Promise<Refusal | null> {
  const copy = new Uint8Array(body);
  const begun = begunFlag();
  const input: ValidateQuestionsInput = { body: copy, context, begun };
  const checked = await workers.run<Refusal | null>('validate-questions', input, {
    bytes: copy.byteLength,
    deadlineMs: TOKENIZER_WAIT_MS + WORK_MS,
    work: { begun, deadlineMs: WORK_MS },
    transfer: [copy.buffer],
  });
  return checked.ok ? checked.value : null;
}

/**
 * Spec 7.5: the refusal, under a limit on tokens per minute, of a body without a non-empty `questions` object. Without
 * such a limit the provider judges the body. null: there are questions.
 */
export function refuseWithoutQuestions(scanned: ScannedRequest, body: Buffer): Refusal | null {
  const questions = scanned.valueOf('questions');
  const hasQuestions =
    questions !== null && questions.kind === 'object' && skipSpace(body, questions.start + 1) < questions.end - 1;
  return hasQuestions ? null : { kind: 'traffic_token_bound_required', field: 'questions' };
}
