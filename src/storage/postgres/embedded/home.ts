// Decides where an installation's embedded Postgres lives. A record in DATA_DIR lets other commands find it and log in.

import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { directoryIdentity } from '../../directory-identity.ts';
import { chooseServerUser, type ServerUser } from './server-user.ts';

/**
 * When we run as root, the server runs as another user, who must be able to reach its files whatever directory the
 * checkout is in.
 */
const ROOT_HOMES_DIRECTORY = '/var/lib/tollgate';
const RECORD_FILE = 'postgres.json';
const OWNER_FILE = 'owner.json';
const SOCKET_FILE = '.s.PGSQL.5432';
/** sun_path has 104 bytes on macOS and 108 on Linux, including the final NUL. */
const SOCKET_PATH_BYTES_MAX = 103;
const DATABASE = 'tollgate';
export const DATABASE_USER = 'tollgate';

export interface PostgresHome {
  readonly directory: string;
  readonly dataDirectory: string;
  readonly socketDirectory: string;
  readonly password: string;
  readonly user: ServerUser;
}

/** The contents of `<dataDir>/postgres.json`, which only its owner can read, since it has the password. */
interface HomeRecord {
  readonly home: string;
  readonly socketDirectory: string;
  readonly password: string;
}

/** Reads the recorded home, or chooses and records one; creates its directories with the right owners. */
export function openPostgresHome(dataDir: string): PostgresHome {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const record = readRecord(dataDir) ?? createRecord(dataDir);
  const directory = path.resolve(dataDir, record.home);
  refuseHomeOfAnother(dataDir, record);
  // initdb runs the server through a shell, with the path in double quotes.
  if (/["$`\\\n]/.test(directory))
    throw new Error(
      `the embedded Postgres cannot live in ${directory}: choose a DATA_DIR without quotes, $, ` +
        `backslashes and line breaks`,
    );
  const dataDirectory = path.join(directory, 'data');
  const user = chooseServerUser(dataDirectory);
  makeHomeDirectory(directory, user);
  if (path.isAbsolute(record.home)) writeOwner(dataDir, directory);
  const socketDirectory = chooseSocketDirectory(directory, user);
  if (socketDirectory !== record.socketDirectory) replaceRecord(dataDir, { ...record, socketDirectory });
  return { directory, dataDirectory, socketDirectory, password: record.password, user };
}

/** The URL of the data directory's embedded Postgres, for commands that run beside the server. */
export function embeddedPostgresUrl(dataDir: string): string {
  const record = readRecord(dataDir);
  if (record === null || isSocketOfAnother(dataDir, record))
    throw new Error(
      `no embedded database has been started in ${path.resolve(dataDir)} (set DATABASE_URL or DATA_DIR, ` +
        `or run "tollgate start")`,
    );
  refuseHomeOfAnother(dataDir, record);
  return postgresUrl(record, DATABASE);
}

/** Whether `url` is the URL of the data directory's embedded Postgres. */
export function isEmbeddedPostgres(url: string, dataDir: string): boolean {
  const record = readRecord(dataDir);
  return record !== null && !isSocketOfAnother(dataDir, record) && url === postgresUrl(record, DATABASE);
}

/** Whether the data directory is a copy that was never started. Its record then names the original's socket. */
function isSocketOfAnother(dataDir: string, { home, socketDirectory }: HomeRecord): boolean {
  return (
    !path.isAbsolute(home) &&
    path.basename(socketDirectory) === 'run' &&
    socketDirectory !== path.join(path.resolve(dataDir, home), 'run')
  );
}

/** The contents of `<home>/owner.json`, for a home outside of its data directory: the data directory it belongs to. */
interface HomeOwner {
  readonly dataDir: string;
  readonly identity: string;
}

/**
 * Throws if the data directory is a copy. A copy has a record that names the original's home. It must not open the
 * original's database, nor silently get a new one. A moved directory is not a copy, and neither is a directory whose
 * original is gone.
 */
function refuseHomeOfAnother(dataDir: string, { home: directory }: HomeRecord): void {
  const owner = path.isAbsolute(directory) ? readOwner(directory) : null;
  if (owner === null || owner.identity === directoryIdentity(dataDir)) return;
  if (directoryIdentity(owner.dataDir) !== owner.identity) return;
  throw new Error(
    `${path.resolve(dataDir)} is a copy of ${owner.dataDir}, whose database is in ${directory}, outside of it: ` +
      'a copy has no database of its own. Make one with "tollgate backup", and start from it with "tollgate restore"',
  );
}

/** Throws if this is a copy of a data directory whose database is outside of it (`refuseHomeOfAnother`). */
export function refuseCopiedDirectory(dataDir: string): void {
  const record = readRecord(dataDir);
  if (record !== null) refuseHomeOfAnother(dataDir, record);
}

function readOwner(directory: string): HomeOwner | null {
  try {
    return JSON.parse(readFileSync(path.join(directory, OWNER_FILE), 'utf8')) as HomeOwner;
  } catch {
    return null;
  }
}

function writeOwner(dataDir: string, directory: string): void {
  const owner: HomeOwner = { dataDir: realpathSync(dataDir), identity: directoryIdentity(dataDir) ?? '' };
  const text = `${JSON.stringify(owner)}\n`;
  const file = path.join(directory, OWNER_FILE);
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  writeFileSync(`${file}.partial`, text, { mode: 0o600 });
  renameSync(`${file}.partial`, file);
}

/** Makes the home for a cluster that will be copied into it. Throws if the data directory has a database already. */
export function adoptPostgresHome(dataDir: string, password: string): PostgresHome {
  if (readRecord(dataDir) !== null) throw new Error(`${dataDir} has a database already`);
  createRecord(dataDir, password);
  return openPostgresHome(dataDir);
}

/** The URL contains every setting that the environment (PGPORT, PGSSLMODE, ...) could otherwise change. */
export function postgresUrl(home: { socketDirectory: string; password: string }, database: string = DATABASE): string {
  const host = encodeURIComponent(home.socketDirectory);
  return `postgres://${DATABASE_USER}:${home.password}@/${database}?host=${host}&port=5432&sslmode=disable`;
}

function readRecord(dataDir: string): HomeRecord | null {
  const file = path.join(dataDir, RECORD_FILE);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`cannot read ${file}`, { cause: error });
  }
  const { home, socketDirectory, password } = JSON.parse(text) as Partial<HomeRecord>;
  if (typeof home !== 'string' || typeof socketDirectory !== 'string' || typeof password !== 'string')
    throw new Error(`${file} is damaged`);
  return { home, socketDirectory, password };
}

/** If two starts race here, one wins and both use the winner's record. */
function createRecord(dataDir: string, password = randomBytes(24).toString('base64url')): HomeRecord {
  const home = process.getuid?.() === 0 ? chooseRootHome(dataDir) : 'postgres';
  if (existsSync(path.resolve(dataDir, home, 'data'))) {
    throw new Error(
      `${path.join(dataDir, RECORD_FILE)} is missing, and with it the password of the database ` +
        `in ${path.resolve(dataDir, home)}; restore it from a backup`,
    );
  }
  const record = { home, socketDirectory: '', password };
  const draft = writeDraft(dataDir, record);
  try {
    linkSync(draft, path.join(dataDir, RECORD_FILE));
    return record;
  } catch (error) {
    const winner = readRecord(dataDir);
    if (winner === null) throw error;
    return winner;
  } finally {
    rmSync(draft, { force: true });
  }
}

function replaceRecord(dataDir: string, record: HomeRecord): void {
  renameSync(writeDraft(dataDir, record), path.join(dataDir, RECORD_FILE));
}

function writeDraft(dataDir: string, record: HomeRecord): string {
  const draft = path.join(dataDir, `${RECORD_FILE}.${randomBytes(6).toString('hex')}`);
  writeFileSync(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  return draft;
}

/**
 * A data directory that was deleted and created again is a new installation and never takes over the old one's
 * database.
 */
function chooseRootHome(dataDir: string): string {
  const name = createHash('sha256').update(realpathSync(dataDir)).digest('hex').slice(0, 12);
  for (let attempt = 1; ; attempt += 1) {
    const home = path.join(ROOT_HOMES_DIRECTORY, attempt === 1 ? name : `${name}-${attempt}`);
    if (!existsSync(home)) return home;
  }
}

function makeHomeDirectory(directory: string, user: ServerUser): void {
  if (user.dropsPrivileges && path.dirname(directory) === ROOT_HOMES_DIRECTORY) {
    mkdirSync(ROOT_HOMES_DIRECTORY, { recursive: true });
    chmodSync(ROOT_HOMES_DIRECTORY, 0o755); // mkdir's mode is cut by the umask
  }
  mkdirSync(directory, { recursive: true });
  // When we run as root, we write the log and the binaries here. The server's user may only pass through.
  chmodSync(directory, user.dropsPrivileges ? 0o711 : 0o700);
}

/** A directory that only the server's user (and root) may enter. */
export function makePrivateDirectory(directory: string, user: ServerUser): void {
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o700);
  if (user.dropsPrivileges) chownSync(directory, user.uid, user.gid);
}

function chooseSocketDirectory(directory: string, user: ServerUser): string {
  const near = path.join(directory, 'run');
  if (fitsSocketPath(near)) {
    makePrivateDirectory(near, user);
    return near;
  }
  const name = `tollgate-${createHash('sha256').update(directory).digest('hex').slice(0, 16)}`;
  const far = [path.join(tmpdir(), name), path.join('/tmp', name)].find(fitsSocketPath) ?? path.join('/tmp', name);
  makeSharedParentDirectory(far, user);
  return far;
}

/** Removes a socket directory outside the home when the server stops; the next start creates it again. */
export function removeSharedSocketDirectory(home: PostgresHome): void {
  if (path.dirname(home.socketDirectory) === home.directory) return;
  try {
    rmdirSync(home.socketDirectory);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

function fitsSocketPath(directory: string): boolean {
  return Buffer.byteLength(path.join(directory, SOCKET_FILE)) <= SOCKET_PATH_BYTES_MAX;
}

/** Creates a directory in one where anyone may write. Throws if a directory of another user has that name. */
function makeSharedParentDirectory(directory: string, user: ServerUser): void {
  try {
    mkdirSync(directory, { mode: 0o700 });
    if (user.dropsPrivileges) chownSync(directory, user.uid, user.gid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const found = lstatSync(directory);
  if (!found.isDirectory() || found.uid !== user.uid || (found.mode & 0o077) !== 0) {
    throw new Error(
      `${directory} exists and does not belong to this installation; remove it or use a shorter DATA_DIR`,
    );
  }
}
