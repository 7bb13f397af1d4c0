// Files and directories that are on disk before the call returns: the ground that spool ownership, seals and quarantine
// stand on.

import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes the directory's entries durable: a created, renamed or removed file is only certain after its directory was
 * synced.
 */
export function syncDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Level by level, each certain before the one below it. Of the levels that are there the lowest may be uncertain:
 * whoever made it may have died then.
 */
export function makeDirectoryDurably(path: string): void {
  const above = dirname(path);
  if (existsSync(path)) return syncForeignDirectory(above);
  makeDirectoryDurably(above);
  mkdirSync(path, { recursive: true });
  syncDirectory(above);
}

/** Where we may not even read, no process of ours has made anything. */
function syncForeignDirectory(path: string): void {
  try {
    syncDirectory(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EPERM') throw error;
  }
}

/** The file appears whole or not at all, under its final name, also after a power cut. */
export function writeFileDurably(path: string, content: string | Uint8Array): void {
  const partial = `${path}.partial`;
  const fd = openSync(partial, 'w', 0o600);
  try {
    writeFileSync(fd, content);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(partial, path);
  syncDirectory(dirname(path));
}
