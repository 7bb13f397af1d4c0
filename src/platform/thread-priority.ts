// Has this process's threads give way to others that want the same core, all but the main one, which runs JavaScript.

import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

const THREADS = '/proc/self/task';

/**
 * Threads that they start later inherit it. Where threads have no priority of their own (only Linux gives them one),
 * nothing changes.
 */
export function haveThreadsGiveWay(niceness: number): void {
  if (process.platform !== 'linux') return;
  for (const thread of readdirSync(THREADS).map(Number)) {
    if (thread === process.pid) continue;
    try {
      if (getPriority(thread) < niceness) setPriority(thread, niceness);
    } catch {
      // It ended meanwhile.
    }
  }
}
