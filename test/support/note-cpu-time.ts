// Preloaded into every process of a test run (NODE_OPTIONS). The process of a test file records at its end the CPU time
// that it used, including all processes that it started and outlived: wall time says little about a file that ran
// beside others. If files share a process (run-batch.ts), each is recorded when its tests are done, and the process
// records the rest.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface CpuSeconds {
  /** CPU time of this process. */
  readonly own: number;
  /** CPU time of the processes that it started and that have ended. */
  readonly children: number;
}

const directory = process.env['TOLLGATE_TEST_CPU'];
const main = process.argv[1];
let notes = 0;
const noted = { own: 0, children: 0 };

if (directory !== undefined && main !== undefined && /\.test\.(ts|mjs)$/.test(main))
  process.on('exit', () => noteCpuTime(main, noted));

/** The CPU time that this process has used until now. */
export function cpuSeconds(): CpuSeconds {
  const { user, system } = process.cpuUsage();
  return { own: (user + system) / 1_000_000, children: secondsOfChildren() };
}

/** Records for a test file the CPU time since `begun`. */
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

/** CPU time of descendants that have ended; 0 if the system does not tell. */
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
