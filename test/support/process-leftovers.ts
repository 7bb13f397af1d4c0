// Finds processes that a test run started and did not end, including those that lost their parents.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isRunning, listDescendants, type ProcessEntry } from './process-table.ts';
import { pause } from './waiting.ts';

const POLL_MS = 1_000;
const GRACE_MS = 5_000;
const MARK = 'TOLLGATE_TEST_RUN';

/**
 * Begins to watch this process's descendants. `end` kills those that still run after a short time, and returns them.
 */
export function watchForLeftovers(): { end(): Promise<string[]> } {
  const mark = `${process.pid}-${performance.timeOrigin}`;
  // A process that drops its environment (a database) is found among the descendants; a process that leaves the process
  // tree keeps the mark in its environment.
  process.env[MARK] = mark;
  const seen = new Map<string, ProcessEntry>();
  const look = () => {
    for (const entry of listDescendants(process.pid)) seen.set(`${entry.pid} ${entry.startedAt}`, entry);
  };
  const timer = setInterval(look, POLL_MS);
  return {
    async end() {
      clearInterval(timer);
      look();
      const findLeft = () => [...[...seen.values()].filter(isRunning), ...listMarked(mark)];
      for (let waitedMs = 0; waitedMs < GRACE_MS && findLeft().length > 0; waitedMs += 100) await pause(100);
      const left = new Map(findLeft().map((entry) => [entry.pid, `${entry.pid} ${entry.command}`]));
      for (const pid of left.keys()) killQuietly(pid);
      return [...left.values()];
    },
  };
}

function listMarked(mark: string): { pid: number; command: string }[] {
  if (!existsSync('/proc/self/environ')) return [];
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  return pids.flatMap((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`${MARK}=${mark}\0`)) return [];
      return [{ pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }];
    } catch {
      return []; // Not ours to read, or gone.
    }
  });
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has ended by itself.
  }
}
