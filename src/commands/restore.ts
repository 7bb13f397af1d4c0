// `tollgate restore`: makes a data directory from a backup. A start on it continues as after a crash at the time of the
// backup.

import { chownSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { readConfig } from '../config.ts';
import { makeDataDirectory } from '../installation/installation-directory.ts';
import { StartFault } from '../installation/start-fault.ts';
import { createLog, logToStderr } from '../platform/log.ts';
import { copyDirectory } from '../storage/copy-directory.ts';
import { startEmbeddedPostgres } from '../storage/postgres/embedded/embedded-postgres.ts';
import { adoptPostgresHome, makePrivateDirectory, type PostgresHome } from '../storage/postgres/embedded/home.ts';
import { closeDeadEpoch, listOpenEpochs, moveEpochs } from '../storage/postgres/ledger/epochs.ts';
import { releaseFactsHome } from '../storage/postgres/ledger/facts-home.ts';
import { createPostgres } from '../storage/postgres/pool.ts';
import { disownSpools, listEpochs } from '../storage/spool/spool-directory.ts';
import { isKeptFile, MANIFEST_FILE } from './backup.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments } from './command/command.ts';

export const restoreCommand: Command = {
  usage: ['tollgate restore DIRECTORY'],
  summary:
    'Makes DATA_DIR, which must not exist yet, from a backup. Start on it afterwards; its reports are made again ' +
    'from the ledger. Do not run the original installation beside it: both would spend the same credit.',
  run,
};

const manifestSchema = z.object({ format: z.literal(1), machine: z.string(), databasePassword: z.string() });

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const [given = ''] = expectPositionals(parseArguments(args, {}).positionals, ['DIRECTORY']);
  const { dataDirectory, databaseUrl } = readConfig(environment);
  if (databaseUrl !== null) throw new StartFault('a database of DATABASE_URL is restored by its own means');
  const backup = resolve(given);
  const manifest = readManifest(backup);
  makeDataDirectory(dataDirectory);
  if (readdirSync(dataDirectory).length > 0)
    throw new StartFault(`${dataDirectory} is not empty: set DATA_DIR to a directory that does not exist yet`);
  try {
    const home = adoptPostgresHome(dataDirectory, manifest.databasePassword);
    copyDirectory(join(backup, 'postgres'), home.dataDirectory);
    makePrivateDirectory(home.dataDirectory, home.user);
    giveTo(home, home.dataDirectory);
    await settle(dataDirectory, manifest.machine, listEpochs(join(backup, 'spool')));
    copyDirectory(backup, dataDirectory, (path) => isKeptFile(path) || path === 'spool' || path.startsWith('spool/'));
    disownSpools(join(dataDirectory, 'spool'));
  } catch (error) {
    // The next attempt finds an empty directory again.
    rmSync(dataDirectory, { recursive: true, force: true });
    throw error;
  }
  print(`restored to ${dataDirectory}; "tollgate start" continues from it`);
  return 0;
}

function readManifest(backup: string): z.output<typeof manifestSchema> {
  const path = join(backup, MANIFEST_FILE);
  const read = manifestSchema.safeParse(parseJson(readText(path)));
  if (!read.success) throw new StartFault(`${path} is of another version, or damaged`);
  return read.data;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new StartFault(`${dirname(path)} is no backup: it has no ${MANIFEST_FILE}`, { cause: error });
  }
}

/** null: the text is no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** As root, the server runs as another user, who owns its files. */
function giveTo(home: PostgresHome, directory: string): void {
  if (!home.user.dropsPrivileges) return;
  for (const entry of readdirSync(directory, { withFileTypes: true, recursive: true }))
    chownSync(join(entry.parentPath, entry.name), home.user.uid, home.user.gid);
}

/**
 * Completes the copied database, and changes in it what only the restore knows: the machine, the place of the facts,
 * and that gateways are dead which began after the spool was copied. Nothing else would ever record that.
 */
async function settle(dataDirectory: string, machine: string, spooled: readonly number[]): Promise<void> {
  const log = createLog({ level: 'error', process: 'command', destination: logToStderr() });
  const server = await startEmbeddedPostgres({ dataDir: dataDirectory, log });
  const postgres = createPostgres({ url: server.url, log, max: 1 });
  try {
    await releaseFactsHome(postgres);
    for (const { epoch, kind } of await listOpenEpochs(postgres, machine)) {
      if (kind !== 'gateway' || spooled.includes(epoch)) continue;
      await postgres.transaction((client) => closeDeadEpoch(client, epoch));
    }
    await moveEpochs(postgres, machine, hostname());
  } finally {
    await postgres.close();
    await server.stop();
  }
}
