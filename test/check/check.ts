// `npm run check`: runs all checks of the code that need no running service, all at once.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BIN = join(ROOT, 'node_modules', '.bin');

interface Step {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

/** This step runs before all others, which read the file that it writes. */
const CONSOLE_TYPES: Step = { name: 'openapi', command: process.execPath, args: ['build/write-console-types.ts'] };

const STEPS: readonly Step[] = [
  { name: 'types', command: join(BIN, 'tsc'), args: ['--pretty', 'false'] },
  { name: 'console', command: join(BIN, 'tsc'), args: ['--pretty', 'false', '-p', 'src/console'] },
  { name: 'lint', command: join(BIN, 'oxlint'), args: ['--format=unix'] },
  { name: 'format', command: join(BIN, 'biome'), args: ['check', '.'] },
  {
    name: 'layers',
    command: join(BIN, 'depcruise'),
    args: ['src', 'workers', 'jobs', 'bin', 'benchmarks', 'test', '--config', '.dependency-cruiser.cjs'],
  },
  { name: 'dead code', command: join(BIN, 'knip'), args: [] },
  { name: 'house', command: process.execPath, args: ['--test', '--test-reporter=spec', 'test/house/*.test.ts'] },
  { name: 'wasm', command: process.execPath, args: ['test/check/build-wasm.ts', '--check'] },
];

interface Outcome {
  readonly ok: boolean;
  readonly seconds: number;
  readonly output: string;
}

async function run({ command, args }: Step): Promise<Outcome> {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    // The tools are scripts that look for `node` on the PATH: they must find the pinned one.
    const child = spawn(command, args, {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, PATH: `${BIN}:${process.env.PATH ?? ''}`, FORCE_COLOR: '0' },
    });
    let output = '';
    const end = (ok: boolean) => resolve({ ok, seconds: (performance.now() - startedMs) / 1000, output });
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.on('error', (error) => {
      output += error.message;
      end(false);
    });
    child.on('close', (code) => end(code === 0));
  });
}

async function report(step: Step): Promise<boolean> {
  const outcome = await run(step);
  const line = `${outcome.ok ? 'ok    ' : 'FAILED'} ${step.name.padEnd(10)} ${outcome.seconds.toFixed(1)} s`;
  console.log(outcome.ok ? line : `${line}\n${outcome.output.trimEnd()}\n`);
  return outcome.ok;
}

const startedMs = performance.now();
const outcomes = [await report(CONSOLE_TYPES), ...(await Promise.all(STEPS.map(report)))];
const failed = outcomes.filter((ok) => !ok).length;
const verdict = failed === 0 ? 'all checks passed' : `${failed} of ${outcomes.length} checks failed`;
console.log(`${verdict} in ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
process.exit(failed === 0 ? 0 : 1);
