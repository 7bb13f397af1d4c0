// Files and directories that are on disk before the call returns: the ground that spool ownership, seals and quarantine stand on.

import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Makes the directory's entries durable: a created, renamed or removed file is only certain after its directory was synced. */
export function syncDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export function makeDirectoryDurably(path: string): void {
  const firstCreated = mkdirSync(path, { recursive: true });
  if (firstCreated === undefined) return;
  // Each created level is an entry of the one above it.
  for (let level = path; level.length >= firstCreated.length; level = dirname(level)) syncDirectory(dirname(level));
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
