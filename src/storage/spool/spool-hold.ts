// Keeps jobs from removing what it has shipped while a backup is made: what the copy of the database does not have yet
// must be in the copy of the spool.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileDurably } from './durable-file.ts';
import { isAlive, type ProcessIdentity, readProcessIdentity } from './process-identity.ts';

const HOLD_FILE = 'held-for-backup.json';

/** Until it is released, or this process has ended. */
export function holdSpool(spoolDirectory: string): { release(): void } {
  const path = join(spoolDirectory, HOLD_FILE);
  writeFileDurably(path, JSON.stringify(readProcessIdentity()));
  return { release: () => rmSync(path, { force: true }) };
}

export function isSpoolHeld(spoolDirectory: string): boolean {
  const holder = readHolder(spoolDirectory);
  return holder !== null && isAlive(holder);
}

function readHolder(spoolDirectory: string): ProcessIdentity | null {
  try {
    return JSON.parse(readFileSync(join(spoolDirectory, HOLD_FILE), 'utf8')) as ProcessIdentity;
  } catch {
    return null;
  }
}
