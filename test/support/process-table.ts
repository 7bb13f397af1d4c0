// The processes of this machine as a parent-to-child table, so that a test can find its own installation's processes
// and no others.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

export interface ProcessEntry {
  readonly pid: number;
  readonly parentPid: number;
  readonly command: string;
  /** Distinguishes a process from a later one with the same id; empty if the system does not tell. */
  readonly startedAt: string;
}

/** `pid`'s descendants, children before grandchildren. */
export function listDescendants(pid: number): ProcessEntry[] {
  if (!existsSync('/proc/self/stat')) return descendantsAmong(readPs(), pid);
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (readStat(Number(name)) ?? []) : []));
  return descendantsAmong(all, pid).flatMap((entry) => withCommand(entry) ?? []);
}

function descendantsAmong<Entry extends { readonly pid: number; readonly parentPid: number }>(
  all: readonly Entry[],
  pid: number,
): Entry[] {
  const found: Entry[] = [];
  let parents = new Set([pid]);
  while (parents.size > 0) {
    const children = all.filter((entry) => parents.has(entry.parentPid));
    found.push(...children);
    parents = new Set(children.map((entry) => entry.pid));
  }
  return found;
}

/** Whether that same process still runs; a zombie does not. */
export function isRunning(entry: ProcessEntry): boolean {
  if (!existsSync('/proc/self/stat'))
    return readPs().some((other) => other.pid === entry.pid && other.command === entry.command);
  return readStat(entry.pid)?.startedAt === entry.startedAt;
}

/** The resident memory of a process; null: it has ended. */
export function residentBytes(pid: number): number | null {
  try {
    if (!existsSync('/proc/self/stat'))
      return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) * 1_024;
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) * 1_024;
  } catch {
    return null;
  }
}

type ProcessStat = Omit<ProcessEntry, 'command'>;

/** null: the process ended meanwhile, or is a zombie. */
function readStat(pid: number): ProcessStat | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the name in parentheses and may hold anything, so fields are counted from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? null : { pid, parentPid: Number(fields[1]), startedAt: fields[19] ?? '' };
  } catch {
    return null;
  }
}

/** The command is read only for descendants: tests poll, and the machine has many other processes. */
function withCommand(stat: ProcessStat): ProcessEntry | null {
  try {
    const command = readFileSync(`/proc/${stat.pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { ...stat, command };
  } catch {
    return null;
  }
}

function readPs(): ProcessEntry[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,command='], { encoding: 'utf8' }).split('\n');
  return lines.flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line);
    return match === null
      ? []
      : [{ pid: Number(match[1]), parentPid: Number(match[2]), command: match[3] ?? '', startedAt: '' }];
  });
}
