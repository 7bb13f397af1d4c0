// Opens a connection to the installation's database for one command, and closes it afterwards.

import { type CompleteConfig, type Environment, readConfig } from '../../config.ts';
import { completeConfig } from '../../installation/complete-config.ts';
import { findInstallationHolder } from '../../installation/installation-lock.ts';
import { StartFault } from '../../installation/start-fault.ts';
import { createLog, logToStderr } from '../../platform/log.ts';
import { StoreAway } from '../../platform/store-away.ts';
import { type InstallationSecrets, openInstallationSecrets } from '../../storage/postgres/installation-secrets.ts';
import { refuseUnfitSchema } from '../../storage/postgres/migrate.ts';
import { createPostgres, type Postgres } from '../../storage/postgres/pool.ts';
import { OtherMasterKey } from '../../storage/postgres/secret-box.ts';

export async function withDatabase<T>(
  environment: Environment,
  work: (postgres: Postgres, config: CompleteConfig, secrets: () => Promise<InstallationSecrets>) => Promise<T>,
): Promise<T> {
  const settings = readConfig(environment);
  // The embedded database runs only while its installation does.
  if (settings.databaseUrl === null && findInstallationHolder(settings.dataDirectory) === null) {
    throw new StartFault(
      `no installation is running on ${settings.dataDirectory}: start it with "tollgate start", or set ` +
        `DATA_DIR or DATABASE_URL to reach another`,
    );
  }
  const config = completeConfig(settings);
  const log = createLog({
    level: settings.given.has('LOG_LEVEL') ? settings.logLevel : 'error',
    process: 'command',
    destination: logToStderr(),
  });
  const postgres = createPostgres({ url: config.databaseUrl, log, max: 1 });
  try {
    await refuseUnfitSchema(postgres);
    return await work(postgres, config, () => openInstallationSecrets(postgres, config));
  } catch (error) {
    throw asStartFault(error);
  } finally {
    await postgres.close();
  }
}

/**
 * Turns errors that an operator can expect and fix into a StartFault, which is printed without a stack. Returns other
 * errors unchanged.
 */
export function asStartFault(error: unknown): unknown {
  if (error instanceof StoreAway)
    return new StartFault(`the database cannot be reached: ${error.message}`, { cause: error });
  if (error instanceof OtherMasterKey) return new StartFault(`MASTER_KEY: ${error.message}`, { cause: error });
  return error;
}
