// The demo's key, kept in the data directory so that every start of the demo prints the same one.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateKey } from '../domain/identity/generate-credential.ts';
import { writeOnce } from './secrets.ts';
import { StartFault } from './start-fault.ts';

/** In the data directory; its hash alone is in the database. */
export const DEMO_KEY_FILE = 'demo-key';

/** null: no start has made the demo from this data directory. */
export function readDemoKey(dataDirectory: string): string | null {
  const path = join(dataDirectory, DEMO_KEY_FILE);
  if (!existsSync(path)) return null;
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new StartFault(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

export function keepDemoKey(dataDirectory: string): string {
  const path = join(dataDirectory, DEMO_KEY_FILE);
  // The key is on disk before the database has it, so a start that dies in between finds it again.
  writeOnce(path, `${generateKey()}\n`);
  return readFileSync(path, 'utf8').trim();
}
