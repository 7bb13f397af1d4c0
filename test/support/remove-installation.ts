// Removes an installation that was made for a test or a benchmark.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

/**
 * Removes its data directory and the database home that root keeps elsewhere: hundreds of megabytes each, which nobody
 * else would remove.
 */
export function removeInstallation(dataDir: string): void {
  const record = path.join(dataDir, 'postgres.json');
  if (existsSync(record)) {
    const { home } = JSON.parse(readFileSync(record, 'utf8')) as { home: string };
    rmSync(path.resolve(dataDir, home), { recursive: true, force: true });
  }
  rmSync(dataDir, { recursive: true, force: true });
}
