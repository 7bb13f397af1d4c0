// Waiting for a state that another process reaches in its own time: tests poll for it, and fail with its last value
// when it never comes.

const POLL_MIN_MS = 20;
const POLL_MAX_MS = 250;
/**
 * The part of the time waited so far after which the state is read again. Longer waits poll less often, because each
 * read is a request or a query, and the machine runs other tests.
 */
const POLL_SHARE = 0.1;

/**
 * Polls `read` until `accept` holds; throws naming `what` and the last value after `timeoutMs`, which is a backstop and
 * not a promise.
 */
export async function waitFor<T>(
  what: string,
  read: () => T | Promise<T>,
  accept: (value: T) => boolean,
  timeoutMs = 30_000,
): Promise<T> {
  const startedMs = performance.now();
  for (;;) {
    const value = await read();
    if (accept(value)) return value;
    const waitedMs = performance.now() - startedMs;
    if (waitedMs > timeoutMs) throw new Error(`waited in vain for ${what}; last seen: ${show(value)}`);
    await pause(Math.min(Math.max(waitedMs * POLL_SHARE, POLL_MIN_MS), POLL_MAX_MS));
  }
}

/** What has come by then is read first, however long this process stood still: timers come before sockets. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(() => setImmediate(resolve), ms));
}

function show(value: unknown): string {
  const text =
    JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? part.toString() : part)) ?? String(value);
  return text.length > 2000 ? `${text.slice(0, 2000)}...` : text;
}
