// Preloaded into every process of a test run (NODE_OPTIONS). The process of a test file notes at its end what CPU time
// it took, with all processes that it started and outlived: wall time says little about a file that ran beside others.
// Where files share a process (run-batch.ts) each is noted when its tests are done, and the process for the rest.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface CpuSeconds {
  /** Of this process. */
  readonly own: number;
  /** Of those that it started and that have ended. */
  readonly children: number;
}

const directory = process.env['TOLLGATE_TEST_CPU'];
const main = process.argv[1];
let notes = 0;
const noted = { own: 0, children: 0 };

if (directory !== undefined && main !== undefined && /\.test\.(ts|mjs)$/.test(main))
  process.on('exit', () => noteCpuTime(main, noted));

/** What this process has taken until now. */
export function cpuSeconds(): CpuSeconds {
  const { user, system } = process.cpuUsage();
  return { own: (user + system) / 1_000_000, children: secondsOfChildren() };
}

/** Notes for a test file what was taken since `begun`. */
export function noteCpuTime(file: string, begun: CpuSeconds): void {
  if (directory === undefined) return;
  const now = cpuSeconds();
  const own = now.own - begun.own;
  const children = now.children - begun.children;
  noted.own += own;
  noted.children += children;
  const note = { file, ownSeconds: own, seconds: own + children };
  writeFileSync(join(directory, `${process.pid}-${(notes += 1)}`), JSON.stringify(note));
}

/** Of the descendants that have ended; 0 where the system does not say. */
export function secondsOfChildren(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    // The second field is the name in parentheses and may hold anything, so fields are counted from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[13]) + Number(fields[14])) / 100;
  } catch {
    return 0;
  }
}
