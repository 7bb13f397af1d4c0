// Counts a request's input exactly, for a request whose bound by its bytes exceeds what is left of a wallet or limit.

import type { CountableApi } from '../../domain/models/apis.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import { countTokens } from '../count-tokens.ts';

/** The longest that counting may take: the request waits for it. */
const WORK_MS = 2_000;
/** Longer bodies take seconds to count. */
const BYTES_MAX = 2_097_152;

/**
 * An upper bound in tokens: the counted tokens of the texts, and one token for each byte outside them. null: the body
 * is too long, or was not counted in time.
 */
export async function countInputAtMost(
  api: CountableApi,
  encoding: string,
  body: Buffer,
  workers: WorkerPool,
): Promise<number | null> {
  if (body.length > BYTES_MAX) return null;
  const params = {
    api,
    encoding,
    request: new Uint8Array(body),
    response: new Uint8Array(0),
    responseIsStream: false,
    responseBytesTotal: 0,
    count: { input: 'at_most', output: false },
  } as const;
  const counted = await countTokens(params, WORK_MS, workers);
  return counted?.inputTokens ?? null;
}
