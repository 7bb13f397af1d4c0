// Runs the simulation's command in its own process, for the tests that need many seeds.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const COMMAND = fileURLToPath(new URL('./run.ts', import.meta.url));

/** Every run of the tests has the seeds from 1 to this one. */
export const FIRST_SEEDS = 50;

export function runSeeds(args: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }> {
  return new Promise((resolve, reject) => {
    // Faults are planted into the original sources, not into the copies without types that the test run keeps.
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
