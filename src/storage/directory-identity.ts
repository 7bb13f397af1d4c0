// Distinguishes a directory from a copy of it: a copy has another inode, while a moved directory keeps its inode.

import { statSync } from 'node:fs';

/** Device and inode as text; null: the directory does not exist. */
export function directoryIdentity(directory: string): string | null {
  const found = statSync(directory, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}
