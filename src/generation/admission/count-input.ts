// The exact count of a request's input, asked for where the bound by its bytes does not fit any more (DESIGN 4: near
// the edge).

import type { CountTokensInput, CountTokensOutput } from '../../domain/usage/count-tokens-task.ts';
import type { CountableApi } from '../../domain/usage/countable-apis.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';

/** A tokenizer takes half a second to load; a request is not kept waiting for longer than is worth to know. */
const DEADLINE_MS = 2_000;
/** Longer texts take seconds to count. */
const BYTES_MAX = 2_097_152;
const NOTHING = new Uint8Array(0);

/**
 * An upper bound: the tokens of its texts, and each byte that is in no text as one more. null when it was not counted
 * in time.
 */
export async function countInputAtMost(
  api: CountableApi,
  encoding: string,
  body: Buffer,
  workers: WorkerPool,
): Promise<number | null> {
  if (body.length > BYTES_MAX) return null;
  const request = new Uint8Array(body);
  const input: CountTokensInput = {
    api,
    encoding,
    request,
    response: NOTHING,
    responseIsStream: false,
    responseBytesTotal: 0,
    count: { input: 'at_most', output: false },
  };
  const options = { bytes: request.byteLength, deadlineMs: DEADLINE_MS, transfer: [request.buffer] };
  const counted = await workers.run<CountTokensOutput>('count-tokens', input, options);
  return counted.ok ? counted.value.inputTokens : null;
}
