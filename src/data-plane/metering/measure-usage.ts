// What an execution used: the provider's report where there is a good one, else our own count of what was relayed, made in the worker pool.

import { checkUsage, NO_USAGE_BOUNDS } from '../../domain/usage/check-usage.ts';
import type { CountTokensInput, CountTokensOutput } from '../../domain/usage/count-tokens-task.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { RelayedBytes } from '../relay/relayed-bytes.ts';
import { type MeasuredUsage, NO_USAGE } from './execution.ts';

/** Loading a tokenizer takes 125 ms the first time; past this the bound is used instead of the count. */
const COUNT_DEADLINE_MS = 2_000;

/** The provider's report in this reply, checked; `usage` is null when there is none that can be charged by. `cut`: the reply broke off. */
export function reportedUsage(dialect: Dialect, relayed: RelayedBytes, cut: boolean): MeasuredUsage {
  const raw = dialect.readUsage({ beginning: relayed.beginning(), end: relayed.end(), cut });
  if (raw === null) return NO_USAGE;
  // A report above what was held is not refused here: the charge stops at the hold and the rest goes to suspense.
  const checked = checkUsage(raw, NO_USAGE_BOUNDS);
  if (checked.ok) {
    // Half a report cannot be priced: what is missing would be given away.
    if (checked.usage.inputTokens === null || checked.usage.outputTokens === null) return NO_USAGE;
    return { usage: checked.usage, source: 'reported', claimed: null, distrust: null };
  }
  return { usage: null, source: null, claimed: checked.claimed, distrust: `usage_distrusted: ${checked.reason}` };
}

export interface CountQuestion {
  readonly encoding: string;
  readonly request: Buffer;
  readonly relayed: RelayedBytes;
  readonly responseIsStream: boolean;
  /** Used where the count fails: never an under-count, and the charge stops at the hold anyway. */
  readonly inputTokensMax: number;
  readonly outputTokensMax: number;
}

/** Counts the tokens of a request and of what was relayed of its reply. Never rejects. */
export async function countUsage(question: CountQuestion, workers: WorkerPool, report: MeasuredUsage): Promise<MeasuredUsage> {
  const request = new Uint8Array(question.request);
  const response = new Uint8Array(question.relayed.beginning());
  const input: CountTokensInput = {
    api: 'chat_completions',
    encoding: question.encoding,
    request,
    response,
    responseIsStream: question.responseIsStream,
    responseBytesTotal: question.relayed.totalBytes,
    count: { input: true, output: true },
  };
  const bytes = request.byteLength + response.byteLength;
  const transfer = [request.buffer, response.buffer];
  const counted = await workers.run<CountTokensOutput>('count-tokens', input, { bytes, deadlineMs: COUNT_DEADLINE_MS, transfer });
  const usage: Usage = {
    inputTokens: (counted.ok ? counted.value.inputTokens : null) ?? question.inputTokensMax,
    cachedInputTokens: null,
    cacheWriteTokens: null,
    outputTokens: (counted.ok ? counted.value.outputTokens : null) ?? Math.min(question.outputTokensMax, question.relayed.totalBytes),
    reasoningTokens: null,
    images: null,
  };
  return { usage, source: 'counted', claimed: report.claimed, distrust: report.distrust };
}
