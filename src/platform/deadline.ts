// Limits how long a caller waits for work that cannot be cancelled.

import { socketsRead } from './event-loop/tick.ts';

/**
 * Resolves with the work's result, or rejects after the deadline; the work's later result is ignored. After a process
 * stood still, its timers run before its sockets are read. So the sockets are read once more before the deadline
 * counts: an answer that has already arrived is in time.
 */
export async function withDeadline<Result>(work: Promise<Result>, deadlineMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const end = (): void => reject(new Error(`no answer within ${deadlineMs} ms`));
    timer = setTimeout(() => void socketsRead().then(end), deadlineMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
