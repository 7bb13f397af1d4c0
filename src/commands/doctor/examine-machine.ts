// The checks of `tollgate doctor` on this machine: ports, the data directory, its disk, open files, a kernel setting,
// databases.

import { readFileSync, statfsSync } from 'node:fs';
import type { Config } from '../../config.ts';
import { chooseFront, FrontMissing } from '../../http/fronts/choose-front.ts';
import { explainFileFault } from '../../installation/file-fault.ts';
import { dataDirectoryProblem, nearestExisting } from '../../installation/installation-directory.ts';
import { findInstallationHolder } from '../../installation/installation-lock.ts';
import { claimPort } from '../../installation/ports.ts';
import { systemClock } from '../../platform/clock.ts';
import { createLog, logToStderr } from '../../platform/log.ts';
import { createPostgres } from '../../storage/postgres/pool.ts';
import { type Finding, note, ok, wrong } from './finding.ts';

export async function examineMachine(config: Config): Promise<readonly Finding[]> {
  return [
    ...(await examineFront(config)),
    ...examineDirectory(config),
    ...examineOpenFiles(config),
    ...examineMigration(),
    ...(await examineHolder(config)),
    ...(await examinePostgres(config)),
    ...(await examineClickHouse(config)),
  ];
}

/**
 * Whether an installation runs or, if not, whether its ports are free. Says only what is wrong if the lock cannot be
 * read.
 */
async function examineHolder(config: Config): Promise<readonly Finding[]> {
  const { dataDirectory } = config;
  if (dataDirectoryProblem(dataDirectory) !== null) return examinePorts(config);
  try {
    const holder = findInstallationHolder(dataDirectory);
    if (holder === null) return await examinePorts(config);
    return [ok(`an installation runs on ${dataDirectory} as process ${holder.pid}, so its ports are taken`)];
  } catch (error) {
    const reason = explainFileFault(error);
    if (reason === null) throw error;
    return [wrong(reason)];
  }
}

/** Choosing the front does not make anything listen. */
async function examineFront({ httpFront }: Config): Promise<readonly Finding[]> {
  try {
    const { name, missing } = await chooseFront(httpFront);
    const served = name === 'uws' ? 'uWebSockets.js' : 'node:http';
    if (missing === null) return [ok(`${served} reads requests (HTTP_FRONT ${httpFront})`)];
    return [note(`uWebSockets.js has no binary for this system and Node ${process.version}: node:http serves`)];
  } catch (error) {
    if (!(error instanceof FrontMissing)) throw error;
    return [wrong(error.message)];
  }
}

const GIGABYTE = 1_000_000_000;
/** The embedded databases take some hundred megabytes before the first request. */
const FREE_BYTES_WANTED = 2 * GIGABYTE;

function examineDirectory({ dataDirectory, spoolReserveBytes }: Config): readonly Finding[] {
  const problem = dataDirectoryProblem(dataDirectory);
  if (problem !== null) return [wrong(`DATA_DIR: ${problem}`)];
  const { bavail, bsize } = statfsSync(nearestExisting(dataDirectory));
  const free = bavail * bsize;
  const text = `${(free / GIGABYTE).toFixed(1)} GB are free on the disk of ${dataDirectory} (DATA_DIR)`;
  if (free < spoolReserveBytes) return [wrong(`${text}: below SPOOL_RESERVE_BYTES nothing is admitted`)];
  return [free < FREE_BYTES_WANTED ? note(`${text}: that is little for its databases`) : ok(`${text}, writable`)];
}

/** The process's own files. Each client takes one more, and so does each call to a provider. */
const FILES_OF_A_PROCESS = 200;

function examineOpenFiles({ connectionsMax }: Config): readonly Finding[] {
  const limit = openFilesMax();
  if (limit === null) return [];
  const wanted = 2 * connectionsMax + FILES_OF_A_PROCESS;
  const text = `a process may open ${limit} files`;
  if (limit >= wanted) return [ok(text)];
  if (limit < 1_024) return [wrong(`${text}, which is too few to serve: raise it (ulimit -n, LimitNOFILE)`)];
  return [note(`${text}; ${connectionsMax} clients at once can need ${wanted}: raise it (ulimit -n, LimitNOFILE)`)];
}

/** null: this system does not tell the limit. */
function openFilesMax(): number | null {
  try {
    const line = /^Max open files\s+(\d+)\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return line === null ? null : Number(line[1]);
  } catch {
    return null;
  }
}

const MIGRATION_SETTING = '/proc/sys/net/ipv4/tcp_migrate_req';

/** Whether Linux moves connections that a replaced gateway has not accepted to another gateway. */
function examineMigration(): readonly Finding[] {
  let setting: string;
  try {
    setting = readFileSync(MIGRATION_SETTING, 'utf8').trim();
  } catch {
    // Another system, or an older Linux.
    return [];
  }
  const text = `net.ipv4.tcp_migrate_req is ${setting}`;
  if (setting === '1') return [ok(`${text}: replacing a gateway hardly ever resets a connection that is being opened`)];
  return [note(`${text}: replacing a gateway resets connections that are being opened to it; 1 keeps nearly all`)];
}

async function examinePorts({ host, port, adminHost, adminPort, given }: Config): Promise<readonly Finding[]> {
  const mayMove = !given.has('ADMIN_PORT');
  return [
    await examinePort('PORT', host, port),
    ...(mayMove ? [] : [await examinePort('ADMIN_PORT', adminHost, adminPort)]),
  ];
}

async function examinePort(setting: string, host: string, port: number): Promise<Finding> {
  try {
    const claim = await claimPort(host, port);
    claim?.release();
    return claim === null
      ? wrong(`${setting}: port ${port} on ${host} is in use by another program: give another one, or stop it`)
      : ok(`port ${port} on ${host} is free (${setting})`);
  } catch (error) {
    return wrong(`${setting}: nothing can listen on ${host} port ${port}: ${(error as Error).message}`);
  }
}

async function examinePostgres({ databaseUrl }: Config): Promise<readonly Finding[]> {
  if (databaseUrl === null) return [];
  const log = createLog({ level: 'silent', process: 'command', destination: logToStderr() });
  try {
    const postgres = createPostgres({ url: databaseUrl, log, max: 1 });
    try {
      const { rows } = await postgres.query('SHOW server_version', []);
      const version = String(Object.values(rows[0] ?? {})[0]);
      return [
        Number.parseInt(version, 10) >= POSTGRES_OLDEST
          ? ok(`Postgres ${version} answers (DATABASE_URL)`)
          : wrong(`DATABASE_URL: its Postgres is ${version}, and has to be ${POSTGRES_OLDEST} or newer`),
      ];
    } finally {
      await postgres.close();
    }
  } catch (error) {
    return [wrong(`DATABASE_URL: the database cannot be reached: ${messageOf(error)}`)];
  }
}

const POSTGRES_OLDEST = 15;

async function examineClickHouse({ clickhouseUrl }: Config): Promise<readonly Finding[]> {
  if (clickhouseUrl === null) return [];
  const { createClickHouse } = await import('../../storage/clickhouse/clickhouse.ts');
  try {
    const client = await createClickHouse({ url: clickhouseUrl }, systemClock);
    try {
      const answer = await client.query({ query: 'SELECT version() AS version', format: 'JSONEachRow' });
      const [row] = await answer.json<{ version: string }>();
      return [ok(`ClickHouse ${row?.version} answers (CLICKHOUSE_URL)`)];
    } finally {
      await client.close();
    }
  } catch (error) {
    return [wrong(`CLICKHOUSE_URL: ClickHouse cannot be asked: ${messageOf(error)}`)];
  }
}

/** If several addresses of a name were tried, the first error has the reason. */
function messageOf(error: unknown): string {
  const [first = error] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return first instanceof Error ? first.message || String((first as NodeJS.ErrnoException).code) : String(first);
}
