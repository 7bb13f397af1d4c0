// Keeps jobs from removing what it has shipped while a backup is made: what the copy of the database does not have yet
// must be in the copy of the spool.

import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileDurably } from './durable-file.ts';
import { isAlive, type ProcessIdentity, readProcessIdentity } from './process-identity.ts';

const HOLD_FILE = /^held-for-backup-.*\.json$/;

/** Until it is released, or this process has ended. Each backup has a hold of its own. */
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
