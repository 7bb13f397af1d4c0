// The exact count of a request's input, made where the bound by its bytes exceeds what is left of a wallet or limit.

import type { CountableApi } from '../../domain/models/apis.ts';
import type { CountTokensInput, CountTokensOutput } from '../../domain/usage/count-tokens-task.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';

/** A tokenizer takes half a second to load; a request should not wait much longer for its count. */
const DEADLINE_MS = 2_000;
/** Longer bodies take seconds to count. */
const BYTES_MAX = 2_097_152;
const NOTHING = new Uint8Array(0);

/**
 * An upper bound: the tokens of the texts, and one more for each byte outside them. null when it was not counted in
 * time.
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
