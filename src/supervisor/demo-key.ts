// The demo's key, kept in the data directory so that every start of the demo prints the same one.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeOnce } from './secrets.ts';

export function keepDemoKey(dataDirectory: string): string {
  const path = join(dataDirectory, 'demo-key');
  // On disk before the database knows it: a start that dies in between finds it again.
  writeOnce(path, `tg-${randomBytes(24).toString('base64url')}\n`);
  return readFileSync(path, 'utf8').trim();
}
