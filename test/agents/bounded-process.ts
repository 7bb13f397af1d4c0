// Runs a command to its end or to its time limit; a command that is late is ended with its whole process group.

import { spawn } from 'node:child_process';

export interface BoundedRun {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
}

export interface RunResult {
  /** null: ended by a signal, or never begun. */
  readonly code: number | null;
  readonly timedOut: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

export function runBounded({ command, args, cwd, env, timeoutMs }: BoundedRun): Promise<RunResult> {
  return new Promise((resolve) => {
    const child = spawn(command, [...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const printed = { stdout: '', stderr: '' };
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      endGroup(child.pid);
      // A grandchild in a group of its own may hold the pipes; it is found by the watch for leftovers.
      setTimeout(() => finish(null), 2_000).unref();
    }, timeoutMs);
    const finish = (code: number | null) => {
      clearTimeout(timer);
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({ code, timedOut, ...printed });
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      printed.stderr += text;
    });
    child.on('error', (error) => {
      printed.stderr += error.message;
      finish(null);
    });
    child.on('close', finish);
  });
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It ended in the same moment.
  }
}

/** The end of what a failed command said, on one line. */
export function lastWords({ stdout, stderr }: RunResult): string {
  const words = `${stdout}\n${stderr}`.replaceAll(/\s+/g, ' ').trim();
  return words.length > 400 ? `...${words.slice(-400)}` : words;
}
