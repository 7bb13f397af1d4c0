// Waiting for a state that another process reaches in its own time: tests poll for it, and fail with its last value
// when it never comes.

const POLL_MS = 20;

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
    if (performance.now() - startedMs > timeoutMs)
      throw new Error(`waited in vain for ${what}; last seen: ${show(value)}`);
    await pause(POLL_MS);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function show(value: unknown): string {
  const text =
    JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? part.toString() : part)) ?? String(value);
  return text.length > 2000 ? `${text.slice(0, 2000)}...` : text;
}
