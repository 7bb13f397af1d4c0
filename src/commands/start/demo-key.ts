// Keeps the demo's key in the data directory: a start recognizes the demo by the key, and prints it while it is
// accepted.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateKey } from '../../domain/identity/generate-credential.ts';
import { writeOnce } from '../../installation/secrets.ts';
import { StartFault } from '../../installation/start-fault.ts';

/** The file in the data directory; the database has only the key's hash. */
export const DEMO_KEY_FILE = 'demo-key';

/** null: this data directory has no demo key. Throws a StartFault if the file cannot be read. */
export function readDemoKey(dataDirectory: string): string | null {
  const path = join(dataDirectory, DEMO_KEY_FILE);
  return existsSync(path) ? readKey(path) : null;
}

/** Makes the key if there is none. Throws a StartFault if the file cannot be read. */
export function keepDemoKey(dataDirectory: string): string {
  const path = join(dataDirectory, DEMO_KEY_FILE);
  // The key is on disk before the database has it, so a start that dies in between finds it again.
  writeOnce(path, `${generateKey()}\n`);
  return readKey(path);
}

function readKey(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new StartFault(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}
