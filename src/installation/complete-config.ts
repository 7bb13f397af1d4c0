// Fills in what the settings leave to the data directory: the address of the embedded database and of the reports, and
// the secrets of the installation.

import type { CompleteConfig, Config } from '../config.ts';
import { embeddedPostgresUrl } from '../storage/postgres/embedded/embedded-postgres.ts';
import { reportsAddresses } from './reports-address.ts';
import { loadSecrets, type Secrets } from './secrets.ts';
import { StartFault } from './start-fault.ts';

/** For commands and processes beside a supervisor, which create nothing themselves. */
export function completeConfig(config: Config): CompleteConfig {
  const secrets = loadSecrets(config, { create: false });
  if (secrets === null) {
    throw new StartFault(
      `MASTER_KEY is not given, and ${config.dataDirectory} holds no secrets: give it, or start the ` +
        `installation once with "tollgate start"`,
    );
  }
  return withSecrets(config, secrets, config.databaseUrl ?? findEmbeddedUrl(config));
}

function withSecrets(config: Config, secrets: Secrets, databaseUrl: string): CompleteConfig {
  return Object.freeze({ ...config, ...secrets, ...reportsAddresses(config), databaseUrl });
}

function findEmbeddedUrl(config: Config): string {
  try {
    return embeddedPostgresUrl(config.dataDirectory);
  } catch (error) {
    throw new StartFault(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
