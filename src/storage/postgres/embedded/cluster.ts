// Creates the embedded Postgres' data directory with initdb, and lists the settings that the server is started with.

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { syncDirectory } from '../../spool/durable-file.ts';
import { DATABASE_USER, makePrivateDirectory, type PostgresHome } from './home.ts';
import type { PostgresRuntime } from './runtime.ts';
import { spawnAs } from './server-user.ts';

const run = promisify(execFile);

/** The server does not get our own environment: PGDATA, PGPORT, LC_ALL and the like would change its behaviour. */
export const SERVER_ENVIRONMENT = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/**
 * Creates the data directory if there is none. initdb works on a draft, so an interrupted run leaves nothing that looks
 * finished.
 */
export async function ensureCluster(home: PostgresHome, runtime: PostgresRuntime): Promise<void> {
  if (existsSync(home.dataDirectory)) return checkMajorVersion(home, runtime);
  removeDrafts(home.directory);
  const draft = path.join(home.directory, `data.new-${randomBytes(6).toString('hex')}`);
  const passwordFile = `${draft}.password`;
  makePrivateDirectory(draft, home.user);
  writeFileSync(passwordFile, `${home.password}\n`, { mode: 0o600, flag: 'wx' });
  if (home.user.dropsPrivileges) chownSync(passwordFile, home.user.uid, home.user.gid);
  try {
    await run(
      runtime.initdb,
      [
        '-D',
        draft,
        '-U',
        DATABASE_USER,
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--no-locale',
        '--data-checksums',
        '--no-instructions',
      ],
      { ...spawnAs(home.user), cwd: home.directory, env: SERVER_ENVIRONMENT },
    );
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    throw new Error(
      `the embedded Postgres could not make its data directory: ${stderr?.trim() || (error as Error).message}`,
      { cause: error },
    );
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(draft, home.dataDirectory);
  syncDirectory(home.directory);
}

function checkMajorVersion(home: PostgresHome, runtime: PostgresRuntime): void {
  const found = readFileSync(path.join(home.dataDirectory, 'PG_VERSION'), 'utf8').trim();
  if (found !== runtime.majorVersion) {
    throw new Error(
      `${home.dataDirectory} was written by Postgres ${found} and this version runs ` +
        `Postgres ${runtime.majorVersion}; move it with pg_upgrade or pg_dump`,
    );
  }
}

function removeDrafts(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (name.startsWith('data.new-')) rmSync(path.join(directory, name), { recursive: true, force: true });
  }
}

/**
 * The settings favour durability (fsync, synchronous_commit, checksums), then a small footprint. The server listens on
 * its private socket only. Errors are logged without DETAIL, which would quote rows.
 */
export function serverArguments(home: PostgresHome): string[] {
  const settings: Record<string, string> = {
    listen_addresses: '',
    unix_socket_directories: quoteListItem(home.socketDirectory),
    unix_socket_permissions: '0700',
    port: '5432',
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
    max_connections: '400',
    shared_buffers: '64MB',
    huge_pages: 'off',
    io_method: 'sync',
    jit: 'off',
    // An online backup needs this level.
    wal_level: 'replica',
    max_wal_senders: '0',
    wal_compression: 'pglz',
    max_wal_size: '512MB',
    timezone: 'UTC',
    log_timezone: 'UTC',
    logging_collector: 'off',
    log_destination: 'stderr',
    log_error_verbosity: 'terse',
    log_checkpoints: 'off',
  };
  return ['-D', home.dataDirectory, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** unix_socket_directories is a comma-separated list; an item in double quotes may contain spaces and commas. */
function quoteListItem(item: string): string {
  return `"${item.replaceAll('"', '""')}"`;
}
