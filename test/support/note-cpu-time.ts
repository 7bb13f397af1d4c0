// Preloaded into every process of a test run (NODE_OPTIONS). The process of a test file notes at its end what CPU time
// it took, with all processes that it started and outlived: wall time says little about a file that ran beside others.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const directory = process.env['TOLLGATE_TEST_CPU'];
const file = process.argv[1];

if (directory !== undefined && file?.endsWith('.test.ts'))
  process.on('exit', () => {
    const { user, system } = process.cpuUsage();
    const ownSeconds = (user + system) / 1_000_000;
    const note = { file, ownSeconds, seconds: ownSeconds + secondsOfChildren() };
    writeFileSync(join(directory, String(process.pid)), JSON.stringify(note));
  });

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
