// Keeps jobs from removing shipped segments while a backup is made. Records that are posted after the database was
// copied must be in the copy of the spool.

import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileDurably } from './durable-file.ts';
import { isAlive, type ProcessIdentity, readProcessIdentity } from './process-identity.ts';

const HOLD_FILE = /^held-for-backup-.*\.json$/;

/** Holds the spool until `release`, or until this process ends. Each backup has its own hold. */
export function holdSpool(spoolDirectory: string): { release(): void } {
  for (const path of holdFilesIn(spoolDirectory)) if (!isHeldBy(path)) rmSync(path, { force: true });
  const path = join(spoolDirectory, `held-for-backup-${randomUUID()}.json`);
  writeFileDurably(path, JSON.stringify(readProcessIdentity()));
  return { release: () => rmSync(path, { force: true }) };
}

export function isSpoolHeld(spoolDirectory: string): boolean {
  return holdFilesIn(spoolDirectory).some(isHeldBy);
}

export function isHoldFile(name: string): boolean {
  return HOLD_FILE.test(name);
}

function holdFilesIn(spoolDirectory: string): string[] {
  return readdirSync(spoolDirectory)
    .filter(isHoldFile)
    .map((name) => join(spoolDirectory, name));
}

function isHeldBy(path: string): boolean {
  try {
    return isAlive(JSON.parse(readFileSync(path, 'utf8')) as ProcessIdentity);
  } catch {
    return false;
  }
}
