// Writes files and directories that are on disk before the call returns. Spool ownership, the closing mark and
// quarantine depend on it.

import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes the directory's entries durable: a created, renamed or removed file is durable only after its directory was
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
 * Creates the missing levels one by one, each durable before the next. The lowest existing level is synced too: whoever
 * created it may have died before doing so.
 */
export function makeDirectoryDurably(path: string): void {
  const above = dirname(path);
  if (existsSync(path)) return syncForeignDirectory(above);
  makeDirectoryDurably(above);
  mkdirSync(path, { recursive: true });
  syncDirectory(above);
}

/** A directory that we may not even read cannot have been created by a process of ours, so it needs no sync. */
function syncForeignDirectory(path: string): void {
  try {
    syncDirectory(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EPERM') throw error;
  }
}

/** The file appears under its name complete or not at all, also after a power cut. */
export function writeFileDurably(path: string, content: string | Uint8Array): void {
  const partial = `${path}.partial`;
  writeSynced(partial, content);
  renameSync(partial, path);
  syncDirectory(dirname(path));
}

/** The content is on disk; that the file is there is not certain before its directory is synced too. */
export function writeSynced(path: string, content: string | Uint8Array): void {
  const fd = openSync(path, 'w', 0o600);
  try {
    writeFileSync(fd, content);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
