// The Chat Completions dialect: its control fields, its usage object, the end of its stream (spec 4.1).

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import type { Dialect, RequestBounds } from './dialect.ts';
import { readInteger, type ControlKey, type ScannedRequest } from './request-scan/request-scanner.ts';
import { lastUsageObject } from './usage-window.ts';

export const chatCompletions: Dialect = {
  api: 'chat_completions',
  upstreamPath: '/v1/chat/completions',
  outputLimitField: 'max_tokens',
  readBounds,
  readUsage,
  endsStream,
};

function readBounds(scanned: ScannedRequest, body: Buffer): RequestBounds | Refusal {
  const stream = scanned.valueOf('stream');
  if (stream !== null && stream.kind !== 'true' && stream.kind !== 'false' && stream.kind !== 'null') {
    return { kind: 'invalid_field', field: 'stream', reason: 'must be true or false' };
  }
  const maxTokens = readCount(scanned, body, 'max_tokens');
  if (typeof maxTokens === 'object' && maxTokens !== null) return maxTokens;
  const maxCompletionTokens = readCount(scanned, body, 'max_completion_tokens');
  if (typeof maxCompletionTokens === 'object' && maxCompletionTokens !== null) return maxCompletionTokens;
  const answers = readCount(scanned, body, 'n');
  if (typeof answers === 'object' && answers !== null) return answers;
  // Where a client sets both, the provider may honour either: the bound is the larger one.
  const outputTokensMax = maxTokens === null ? maxCompletionTokens : Math.max(maxTokens, maxCompletionTokens ?? 0);
  return { streamed: stream !== null && stream.kind === 'true', outputTokensMax, answers: Math.max(1, answers ?? 1) };
}

/** A whole non-negative number, null when absent or null, a refusal otherwise. */
function readCount(scanned: ScannedRequest, body: Buffer, field: ControlKey): number | null | Refusal {
  const value = scanned.valueOf(field);
  if (value === null || value.kind === 'null') return null;
  return readInteger(body, value) ?? { kind: 'invalid_field', field, reason: 'must be a whole number' };
}

function readUsage(end: Buffer): Usage | null {
  const usage = lastUsageObject(end);
  if (usage === null) return null;
  const promptDetails = objectOf(usage['prompt_tokens_details']);
  const completionDetails = objectOf(usage['completion_tokens_details']);
  return {
    inputTokens: countOf(usage['prompt_tokens']),
    cachedInputTokens: countOf(promptDetails['cached_tokens'] ?? usage['prompt_cache_hit_tokens']),
    cacheWriteTokens: countOf(promptDetails['cache_write_tokens']),
    outputTokens: countOf(usage['completion_tokens']),
    reasoningTokens: countOf(completionDetails['reasoning_tokens']),
    images: null,
  };
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** A count as reported. A value that is present but no number becomes NaN, which `checkUsage` refuses: it must not pass as "not reported". */
function countOf(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'number' ? value : Number.NaN;
}

const DONE = Buffer.from('[DONE]');

/** The stream's last event is `data: [DONE]`; line ends vary. */
function endsStream(end: Buffer, length: number): boolean {
  let at = length - 1;
  while (at >= 0 && (end[at] === 0x0a || end[at] === 0x0d || end[at] === 0x20)) at -= 1;
  if (at < 0) return false;
  // Nearly every chunk of a stream ends with its JSON object.
  if (end[at] === 0x7d) return false;
  if (end[at] === 0x5d) return at >= 5 && end.compare(DONE, 0, 6, at - 5, at + 1) === 0;
  // One that ends otherwise may carry a comment after [DONE].
  return end.subarray(Math.max(0, at - COMMENT_BYTES_MAX), at).includes(DONE);
}

const COMMENT_BYTES_MAX = 4_096;
