// Tells a directory from a copy of it: a copy has another inode, and one that was moved keeps its own.

import { statSync } from 'node:fs';

/** null: it does not exist. */
export function directoryIdentity(directory: string): string | null {
  const found = statSync(directory, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}
