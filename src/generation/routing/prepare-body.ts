// Decides where the body of an auto-routed request is read: small bodies on the event loop, larger ones in the worker
// pool (spec 4.11).

import type { RoutedApi } from '../../domain/models/apis.ts';
import { prepareConversation } from '../../domain/routing/conversation/prepare-conversation.ts';
import type {
  PrepareConversationInput,
  PreparedConversation,
} from '../../domain/routing/conversation/prepared-conversation.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';

/** The part of the worker pool that this file needs. */
export type ConversationWorkers = Pick<WorkerPool<'prepare-conversation'>, 'run'>;

/**
 * A hand-over to a worker costs the event loop 37 to 67 µs. A conversation of this size is read in 48 µs, and the
 * slowest body of this size (nested brackets) in 500 µs (benchmarks/micro/prepare-conversation.bench.ts).
 */
const INLINE_BYTES_MAX = 16_384;
/** A megabyte takes 2 ms, the slowest one found 20 ms. The rest is for a thread to start on a busy machine. */
const DEADLINE_MS = 2_000;

/**
 * Returns a promise only for a large body. null: the pool was full, took too long or failed; the turn is then routed as
 * if the classifier had failed.
 */
export function prepareBody(
  api: RoutedApi,
  body: Buffer,
  workers: ConversationWorkers,
): PreparedConversation | Promise<PreparedConversation | null> {
  return body.length <= INLINE_BYTES_MAX ? prepareConversation({ api, body }) : prepareInWorker(api, body, workers);
}

async function prepareInWorker(
  api: RoutedApi,
  body: Buffer,
  workers: ConversationWorkers,
): Promise<PreparedConversation | null> {
  const copy = new Uint8Array(body);
  const input: PrepareConversationInput = { api, body: copy };
  const options = { bytes: copy.byteLength, deadlineMs: DEADLINE_MS, transfer: [copy.buffer] };
  const prepared = await workers.run<PreparedConversation>('prepare-conversation', input, options);
  return prepared.ok ? prepared.value : null;
}
