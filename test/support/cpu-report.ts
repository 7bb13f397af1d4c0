// Reports the CPU time of the files of a test run, as note-cpu-time.ts recorded it: the sum, and the files to look at
// first if a run has become too slow.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { secondsOfChildren } from './note-cpu-time.ts';

interface CpuNote {
  readonly file: string;
  /** CPU time of the file's own process. */
  readonly ownSeconds: number;
  /** CPU time including the processes that it started. */
  readonly seconds: number;
}

/** Returns lines to print once all processes of the run have ended; names the `slowest` files. */
export function reportCpuTime(directory: string, slowest: number, nameOf: (file: string) => string): string[] {
  const notes = readdirSync(directory).map(
    (name) => JSON.parse(readFileSync(join(directory, name), 'utf8')) as CpuNote,
  );
  const sum = notes.reduce((total, { seconds }) => total + seconds, 0);
  const { user, system } = process.cpuUsage();
  const shown = (seconds: number): string => `${seconds.toFixed(1).padStart(6)} s`;
  const named = notes.toSorted((one, other) => other.seconds - one.seconds).slice(0, slowest);
  return [
    `CPU time: ${shown(sum)} of the files, ${shown((user + system) / 1e6)} of the runner, ` +
      `${shown(Math.max(secondsOfChildren() - sum, 0))} of the shared Postgres`,
    'Files that took most (and what of it their own process took):',
    ...named.map(({ file, seconds, ownSeconds }) => `${shown(seconds)} (${ownSeconds.toFixed(1)}) ${nameOf(file)}`),
  ];
}
