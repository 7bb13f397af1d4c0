// Copies the files of a directory that is in use, for a backup.

import { closeSync, copyFileSync, fsyncSync, mkdirSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { syncDirectory } from './spool/durable-file.ts';

/**
 * Copies the entries whose path within the directory passes `isCopied`. A file that disappears meanwhile is left out.
 * When this returns, the copy is on disk; its directories are open to this user only.
 */
export function copyDirectory(from: string, to: string, isCopied: (path: string) => boolean = () => true): void {
  copyLevel(from, to, '', isCopied);
}

function copyLevel(from: string, to: string, within: string, isCopied: (path: string) => boolean): void {
  mkdirSync(join(to, within), { recursive: true, mode: 0o700 });
  for (const entry of readdirSync(join(from, within), { withFileTypes: true })) {
    const path = join(within, entry.name);
    if (!isCopied(path)) continue;
    if (entry.isDirectory()) copyLevel(from, to, path, isCopied);
    else if (entry.isFile()) copyFile(join(from, path), join(to, path));
  }
  syncDirectory(join(to, within));
}

function copyFile(from: string, to: string): void {
  try {
    copyFileSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const fd = openSync(to, 'r+');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
