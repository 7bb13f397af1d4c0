// Checks for programs on this machine; a test that needs a missing one is skipped with a message.

import { spawnSync } from 'node:child_process';

/** The options of a test that needs these programs on the PATH. */
export function needs(...programs: readonly string[]): { readonly skip?: string } {
  const missing = programs.filter((name) => spawnSync('sh', ['-c', 'command -v "$1"', 'sh', name]).status !== 0);
  return missing.length === 0 ? {} : { skip: `not on this machine: ${missing.join(', ')}` };
}
