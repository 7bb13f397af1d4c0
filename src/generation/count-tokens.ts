// Has tokens counted in the worker pool, within a deadline that begins once a thread has its tokenizer.

import type { CountTokensInput, CountTokensOutput } from '../domain/usage/count-tokens-task.ts';
import { begunFlag } from '../platform/begun-flag.ts';
import type { WorkerPool } from '../platform/worker-pool.ts';

/** For a thread to become free, or to start and load a tokenizer: half a second, many times that on a busy machine. */
export const TOKENIZER_WAIT_MS = 10_000;

/** What is counted, as copies of its own. */
export interface TokensToCount extends Omit<CountTokensInput, 'begun'> {
  readonly request: Uint8Array<ArrayBuffer>;
  readonly response: Uint8Array<ArrayBuffer>;
}

/** null: not counted in time. The buffers of `params` move to the thread; the caller must not touch them again. */
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
