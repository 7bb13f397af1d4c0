// Lowers the priority of all threads of this process but the main one, which runs JavaScript.

import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

const THREADS = '/proc/self/task';

/**
 * Threads that they start later inherit the priority. Only Linux has priorities per thread; elsewhere this does
 * nothing.
 */
export function lowerPriorityOfOtherThreads(niceness: number): void {
  if (process.platform !== 'linux') return;
  for (const thread of readdirSync(THREADS).map(Number)) {
    if (thread === process.pid) continue;
    try {
      if (getPriority(thread) < niceness) setPriority(thread, niceness);
    } catch {
      // The thread has ended meanwhile.
    }
  }
}
