// Which core runs what: the proxy under test has one to itself, the stub and the load generator share the other.

import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

const hasTaskset = spawnSync('taskset', ['--version']).status === 0;

/** Whether processes can be kept on their cores; without it figures are noisier and the report says so. */
export const canPin: boolean = hasTaskset && availableParallelism() >= 2;

export const LOAD_CORE = 0;
export const PROXY_CORE = 1;

/** Keeps a running process, all its threads and what they start on one core. */
export function pinToCore(pid: number, core: number): void {
  if (canPin) spawnSync('taskset', ['-a', '-c', '-p', String(core), String(pid)]);
}

/** A command line that starts the command on one core. */
export function onCore(core: number, command: string, args: readonly string[]): [string, string[]] {
  return canPin ? ['taskset', ['-c', String(core), command, ...args]] : [command, [...args]];
}

/** Lets the system place the process on any core again. */
export function unpin(pid: number): void {
  if (canPin) spawnSync('taskset', ['-a', '-c', '-p', `0-${availableParallelism() - 1}`, String(pid)]);
}
