// Finds recorded test input that lies beside the repository and is not part of it; a bare clone has none, and tests
// then skip.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repositoryRoot = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** The absolute path of `<repository>/../shared/assets/<segments>`, or null when it is not there. */
export function sharedAssets(...segments: string[]): string | null {
  const path = join(repositoryRoot, '..', 'shared', 'assets', ...segments);
  return existsSync(path) ? path : null;
}
