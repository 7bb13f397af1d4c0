// Counts tokens in the worker pool. The deadline for the count begins once a thread has its tokenizer.

import type { CountTokensInput, CountTokensOutput } from '../domain/usage/count-tokens-task.ts';
import { begunFlag } from '../platform/begun-flag.ts';
import type { WorkerPool } from '../platform/worker-pool.ts';

/**
 * How long a count may wait for a free thread, or for one to start and load its tokenizer: half a second, many times
 * that on a busy machine.
 */
export const TOKENIZER_WAIT_MS = 10_000;

/** What is counted, in memory that the caller gives away. */
export interface TokensToCount extends Omit<CountTokensInput, 'begun'> {
  readonly request: Uint8Array<ArrayBuffer>;
  readonly response: Uint8Array<ArrayBuffer>;
}

/**
 * null: not counted in time. The buffers of `params` are transferred to the thread; the caller must not use them again.
 */
export async function countTokens(
  params: TokensToCount,
  workMs: number,
  workers: WorkerPool,
): Promise<CountTokensOutput | null> {
  const begun = begunFlag();
  const { request, response } = params;
  const counted = await workers.run<CountTokensOutput>(
    'count-tokens',
    { ...params, begun } satisfies CountTokensInput,
    {
      bytes: request.byteLength + response.byteLength,
      deadlineMs: TOKENIZER_WAIT_MS + workMs,
      work: { begun, deadlineMs: workMs },
      transfer: [request.buffer, response.buffer],
    },
  );
  return counted.ok ? counted.value : null;
}
