// Runs the simulation's command in a process of its own, for the tests that want many seeds.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const COMMAND = fileURLToPath(new URL('./run.ts', import.meta.url));

/** So many seeds, from 1 on, are in every run of the tests. */
export const FIRST_SEEDS = 50;

export function runSeeds(args: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }> {
  return new Promise((resolve, reject) => {
    // Faults are planted into the sources as they are written, not into those that the test run keeps without types.
    const isPlanted = args.some((argument) => argument.startsWith('--mutation'));
    const env = { ...process.env, ...(isPlanted ? { NODE_OPTIONS: '' } : {}) };
    const child = spawn(process.execPath, [COMMAND, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}
