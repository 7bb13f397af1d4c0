// Reads the files below a directory of a running service; files that the service removes meanwhile are skipped.

import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Paths and contents, one character per byte. */
export function* filesBelow(directory: string): Generator<{ readonly path: string; readonly content: string }> {
  for (const entry of unlessGone((): Dirent[] => readdirSync(directory, { withFileTypes: true })) ?? []) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path);
    if (!entry.isFile()) continue;
    const content = unlessGone(() => readFileSync(path, 'latin1'));
    if (content !== null) yield { path, content };
  }
}

function unlessGone<Found>(read: () => Found): Found | null {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
