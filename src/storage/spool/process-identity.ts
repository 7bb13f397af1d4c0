// Identifies the process that owns a spool, and tells whether it is alive, from local facts (pid, start time, boot) and
// never from a timeout.
//
// This depends on the view of /proc: whoever reads spools must share the writers' pid namespace (in Kubernetes: one pod
// with shareProcessNamespace).

import { readFileSync } from 'node:fs';

export interface ProcessIdentity {
  readonly pid: number;
  /**
   * Clock ticks from boot to the start of the process, which distinguish it from a later process with the same pid;
   * null if the system does not provide them.
   */
  readonly processStart: string | null;
  /** Changes at every boot; null if the system does not provide it. */
  readonly bootId: string | null;
}

export function readProcessIdentity(pid: number = process.pid): ProcessIdentity {
  return { pid, processStart: readProcessStat(pid)?.start ?? null, bootId: readBootId() };
}

/** Whether the process ran before this machine was started, or runs on another machine. */
export function isOfAnotherBoot(owner: ProcessIdentity, bootId = readBootId()): boolean {
  return bootId !== null && owner.bootId !== null && bootId !== owner.bootId;
}

export function isAlive(owner: ProcessIdentity): boolean {
  const bootId = readBootId();
  if (isOfAnotherBoot(owner, bootId)) return false;
  if (owner.processStart === null || bootId === null) return answersSignals(owner.pid);
  const stat = readProcessStat(owner.pid);
  // A killed process remains as a zombie until its parent waits for it; it will not write again.
  if (stat === null || stat.state === 'Z' || stat.state === 'X') return false;
  return stat.start === owner.processStart;
}

function answersSignals(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function readProcessStat(pid: number): { state: string; start: string } | null {
  const text = readText(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The second field is the command in parentheses, which may itself contain spaces and parentheses. proc(5): field 3
  // is the state, 22 the start time.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  const start = fields[19];
  return state === undefined || start === undefined ? null : { state, start };
}

function readBootId(): string | null {
  return readText('/proc/sys/kernel/random/boot_id')?.trim() ?? null;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return null;
  }
}
