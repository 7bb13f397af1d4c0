// `tollgate backup`: makes a consistent copy of a running installation.

import { lstatSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { readConfig } from '../config.ts';
import { completeConfig } from '../installation/complete-config.ts';
import { findInstallationHolder } from '../installation/installation-lock.ts';
import { StartFault } from '../installation/start-fault.ts';
import { systemClock } from '../platform/clock.ts';
import { copyDirectory } from '../storage/copy-directory.ts';
import { copyCluster } from '../storage/postgres/embedded/copy-cluster.ts';
import { openPostgresHome } from '../storage/postgres/embedded/home.ts';
import { syncDirectory, writeFileDurably } from '../storage/spool/durable-file.ts';
import { holdSpool, isHoldFile } from '../storage/spool/spool-hold.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments } from './command/command.ts';
import { DEMO_KEY_FILE } from './start/demo-key.ts';

export const backupCommand: Command = {
  usage: ['tollgate backup DIRECTORY'],
  summary:
    'Makes a consistent copy of this installation (DATA_DIR) while it runs: its secrets, its database, its spool ' +
    'and its uploaded files. Reports are made again from them. DIRECTORY must not exist.',
  run,
};

/** Describes a backup for `tollgate restore`. */
export interface BackupManifest {
  readonly format: 1;
  readonly madeAt: string;
  readonly machine: string;
  readonly databasePassword: string;
}

/**
 * Files that a backup contains besides the database and the spool. The demo's key is not in the database, and its users
 * keep using it after a restore.
 */
const KEPT_FILES: readonly string[] = ['secrets.json', DEMO_KEY_FILE, 'media', 'media/mark', 'media/objects'];

/** Whether a backup contains the file, by its path in the data directory; of uploaded files only complete ones. */
export function isKeptFile(path: string): boolean {
  return KEPT_FILES.includes(path) || path.startsWith('media/objects/');
}

/** A missing file is no error; any other problem is thrown, and not taken for a missing file. */
const MAY_BE_ABSENT = { throwIfNoEntry: false } as const;

/** Written last: without it a directory is no backup. */
export const MANIFEST_FILE = 'backup.json';

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const [given = ''] = expectPositionals(parseArguments(args, {}).positionals, ['DIRECTORY']);
  const settings = readConfig(environment);
  const { dataDirectory } = settings;
  if (settings.databaseUrl !== null)
    throw new StartFault(
      'the database of DATABASE_URL is backed up by its own means, to its last instant: see docs/operation.md',
    );
  if (findInstallationHolder(dataDirectory) === null)
    throw new StartFault(
      `no installation is running on ${dataDirectory}: docs/operation.md says how to copy a stopped one`,
    );
  const target = resolve(given);
  if (lstatSync(target, MAY_BE_ABSENT) !== undefined)
    throw new StartFault(`${target} exists already: a backup never overwrites anything`);
  if (statSync(dirname(target), MAY_BE_ABSENT) === undefined)
    throw new StartFault(`${dirname(target)} does not exist: make it first`);
  refuseWithin(target, [dataDirectory, openPostgresHome(dataDirectory).directory]);
  // The copy gets its own name when it is complete, so that an interrupted copy is never taken for a backup.
  const partial = join(dirname(target), `.${basename(target)}.partial-${process.pid}`);
  try {
    await copyInstallation(dataDirectory, completeConfig(settings).databaseUrl, partial);
    renameSync(partial, target);
    syncDirectory(dirname(target));
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error;
  }
  print(`backed up to ${target}; it holds secrets: keep it as safe as ${dataDirectory}`);
  return 0;
}

/** A copy inside a directory that is being copied would never end. */
function refuseWithin(target: string, copied: readonly string[]): void {
  const parent = realpathSync(dirname(target));
  const around = copied.map((path) => realpathSync(path)).find((path) => `${parent}${sep}`.startsWith(`${path}${sep}`));
  if (around !== undefined) throw new StartFault(`${target} is within the data directory ${around}: choose another`);
}

/**
 * Copies the spool before the instant that the database's copy shows, and removes nothing from the spool meanwhile. So
 * the copied spool has every record that the copied database lacks. An installation that starts from the two posts
 * these records once, as after a crash, and the database has every lease under which the copied spool charges. Records
 * that were written after the spool was copied are in the backup only if they were posted by then.
 */
async function copyInstallation(dataDirectory: string, databaseUrl: string, partial: string): Promise<void> {
  const spoolDirectory = join(dataDirectory, 'spool');
  mkdirSync(partial, { mode: 0o700 });
  const home = openPostgresHome(dataDirectory);
  const hold = holdSpool(spoolDirectory);
  try {
    await copyCluster(databaseUrl, home.dataDirectory, join(partial, 'postgres'), () =>
      copyDirectory(spoolDirectory, join(partial, 'spool'), (path) => !isHoldFile(path)),
    );
  } finally {
    hold.release();
  }
  copyDirectory(dataDirectory, partial, isKeptFile);
  const manifest: BackupManifest = {
    format: 1,
    madeAt: new Date(systemClock.nowMs()).toISOString(),
    machine: hostname(),
    databasePassword: home.password,
  };
  writeFileDurably(join(partial, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`);
}
