// CPU time of processes by the kernel's own accounting: nanoseconds on the CPU, summed over all threads.

import { readdirSync, readFileSync } from 'node:fs';

/**
 * CPU nanoseconds that the process has used so far. /proc/<pid>/stat has the same figure in ticks of 10 ms, dead
 * threads included.
 */
export function cpuNs(pid: number): number {
  let total = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      total += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]);
    } catch {
      // The thread ended between the listing and the reading.
    }
  }
  return total;
}

export function cpuNsOf(pids: readonly number[]): number {
  let total = 0;
  for (const pid of pids) total += cpuNs(pid);
  return total;
}

/** The fields of /proc/<pid>/stat after the command's name, which may itself hold spaces: state first. */
function statFields(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function parentOf(pid: number): number {
  return Number(statFields(pid)[1]);
}

/** Processes started by `pid`, directly or not. */
export function descendantsOf(pid: number): number[] {
  const childrenOf = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const parent = parentOf(Number(name));
      childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), Number(name)]);
    } catch {
      // The process ended between the listing and the reading.
    }
  }
  const found: number[] = [];
  const open = [pid];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const children = childrenOf.get(next) ?? [];
    found.push(...children);
    open.push(...children);
  }
  return found;
}

export interface Memory {
  readonly residentBytes: number;
  /** Resident bytes, in which each shared page is divided among the processes that share it. */
  readonly proportionalBytes: number;
}

export function memoryOf(pid: number): Memory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return { residentBytes: kilobytes('Rss') * 1024, proportionalBytes: kilobytes('Pss') * 1024 };
}

/** Nanoseconds that the threads of these processes were ready to run and waited for a core. */
export function schedulerWaitNs(pids: readonly number[]): number {
  let total = 0;
  for (const pid of pids) {
    // The main thread only: helper threads wait whenever the main one runs on the same core.
    total += Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[1]);
  }
  return total;
}
