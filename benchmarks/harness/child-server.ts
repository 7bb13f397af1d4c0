// Starts a server as a child process, learns its port from its first line, and ends it by its own pid.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onCore } from './cores.ts';

const START_TIMEOUT_MS = 15_000;
const STOP_TIMEOUT_MS = 10_000;

export interface ChildServer {
  readonly pid: number;
  readonly port: number;
  stop(): Promise<void>;
}

/** Runs a TypeScript server of this folder: it prints `listening <port>` and ends when its standard input closes. */
export async function startNodeServer(
  core: number,
  file: string,
  args: readonly string[],
  nodeOptions: readonly string[] = [],
): Promise<ChildServer> {
  const [command, commandArgs] = onCore(core, process.execPath, [...nodeOptions, file, ...args]);
  const child = spawn(command, commandArgs, { stdio: ['pipe', 'pipe', 'inherit'] });
  const port = await listeningPort(child, file);
  return { pid: child.pid as number, port, stop: () => stopChild(child) };
}

async function listeningPort(child: ChildProcess, name: string): Promise<number> {
  if (child.stdout === null) throw new Error(`${name} has no standard output`);
  const lines = createInterface({ input: child.stdout });
  const timer = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS);
  try {
    for await (const line of lines) {
      const port = /^listening (\d+)$/.exec(line)?.[1];
      if (port !== undefined) return Number(port);
    }
  } finally {
    clearTimeout(timer);
    child.stdout.resume();
  }
  throw new Error(`${name} ended before it listened`);
}

/** How each child ends that must not outlive this process. */
const ends: (() => void)[] = [];

/**
 * Ends the child when this process exits, by `end` if a signal is not enough. For programs that do not notice it
 * themselves, as when a run is interrupted.
 */
export function endWithThis(child: ChildProcess, end: () => void = () => child.kill()): void {
  if (ends.length === 0) {
    process.once('exit', () => {
      for (const endOne of ends) endOne();
    });
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  }
  ends.push(() => {
    if (child.exitCode === null && child.signalCode === null) end();
  });
}

/** Asks the process to end, and kills it if it has not ended after a while. */
export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(timer);
}
