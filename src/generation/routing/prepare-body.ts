// Decides where the body of an auto-routed request is read for its conversation: small ones here, all others in the
// worker pool (spec 4.11).

import { prepareConversation } from '../../domain/routing/conversation/prepare-conversation.ts';
import type {
  PrepareConversationInput,
  PreparedConversation,
  RoutedApi,
} from '../../domain/routing/conversation/prepared-conversation.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';

/** The part of the worker pool that is needed here. */
export type ConversationWorkers = Pick<WorkerPool<'prepare-conversation'>, 'run'>;

/**
 * A hand-over costs the event loop 37 to 67 µs. A conversation of this size is read in 48, and the slowest body of this
 * size that was found (nothing but brackets) in 500 (benchmarks/micro/prepare-conversation.bench.ts).
 */
const INLINE_BYTES_MAX = 16_384;
/** A megabyte takes 2 ms, the slowest found 20; the rest is for a thread to start on a busy machine. */
const DEADLINE_MS = 2_000;

/**
 * A promise only for a big body. null: the pool had no room, no time or broke, and the turn is routed as when the
 * classifier fails.
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
