// Starts and stops the process of the embedded server, and deals with a server that an earlier supervisor left behind.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fchownSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../../platform/log.ts';
import { SERVER_ENVIRONMENT, serverArguments } from './cluster.ts';
import type { PostgresHome } from './home.ts';
import type { PostgresRuntime } from './runtime.ts';
import { spawnAs } from './server-user.ts';

const LOG_BYTES_MAX = 16 * 1024 * 1024;
/**
 * A stop begins with a fast shutdown. If clients or disks make that slow, an immediate shutdown follows (crash recovery
 * at the next start, nothing is lost), and finally SIGKILL.
 */
const STOP_STAGES = [
  { signal: 'SIGINT', waitMs: 10_000 },
  { signal: 'SIGQUIT', waitMs: 10_000 },
  { signal: 'SIGKILL', waitMs: 5_000 },
] as const;
const POLL_MS = 20;
const OWNER_WAIT_MS = 15_000;

export interface Postmaster {
  readonly pid: number;
  /** Resolves when the process has ended, with how it ended. */
  readonly exited: Promise<string>;
  readonly hasExited: () => boolean;
}

/** Starts the server in a session of its own, so that Ctrl-C in a terminal reaches us first and not the database. */
export function spawnPostmaster(
  home: PostgresHome,
  runtime: PostgresRuntime,
  furtherArguments: readonly string[],
): Postmaster {
  const logFile = path.join(home.directory, 'postgres.log');
  if ((statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX) renameSync(logFile, `${logFile}.1`);
  const output = openSync(logFile, 'a', 0o600);
  if (home.user.dropsPrivileges) fchownSync(output, home.user.uid, home.user.gid);
  let child: ChildProcess;
  try {
    child = spawn(runtime.postgres, [...serverArguments(home), ...furtherArguments], {
      ...spawnAs(home.user),
      cwd: home.directory,
      env: SERVER_ENVIRONMENT,
      detached: true,
      stdio: ['ignore', output, output],
    });
  } finally {
    closeSync(output);
  }
  let over = false;
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`could not be started (${error.message})`));
    child.once('exit', (code, signal) =>
      resolve(signal === null ? `exited with code ${code}` : `was ended by ${signal}`),
    );
  }).finally(() => {
    over = true;
  });
  writeFileSync(supervisorFile(home), `${process.pid}\n`);
  return { pid: child.pid ?? -1, exited, hasExited: () => over };
}

/** The last lines of the server's log, which say why it did not start. */
export function readLogTail(home: PostgresHome): string {
  const logFile = path.join(home.directory, 'postgres.log');
  return existsSync(logFile) ? readFileSync(logFile, 'utf8').slice(-2000).trim().split('\n').slice(-8).join('\n') : '';
}

/** Stops a server, stage by stage; resolves when the process has ended. */
export async function stopPostmaster(pid: number, isAlive: () => boolean, log: Log): Promise<void> {
  for (const { signal, waitMs } of STOP_STAGES) {
    if (!isAlive()) return;
    if (signal !== 'SIGINT') log.warn({ postgresPid: pid, signal }, 'the embedded Postgres is slow to stop');
    sendSignal(pid, signal);
    for (let waitedMs = 0; waitedMs < waitMs && isAlive(); waitedMs += POLL_MS) await sleep(POLL_MS);
  }
  if (isAlive()) throw new Error(`the embedded Postgres (process ${pid}) does not end`);
}

export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * Prepares a start. A server of this data directory whose supervisor is gone (`kill -9`) is stopped, since its settings
 * and its version may be old. A server whose supervisor is alive belongs to another running installation and is left
 * alone. A lock file that names some other process is removed: process ids are reused, quickly in containers. Postgres
 * itself still refuses the data directory while a backend of the dead server has its shared memory.
 */
export async function clearStalePostmaster(home: PostgresHome, log: Log): Promise<void> {
  const lockFile = path.join(home.dataDirectory, 'postmaster.pid');
  if (!existsSync(lockFile)) return;
  const pid = Number.parseInt(readFileSync(lockFile, 'utf8').split('\n')[0] ?? '', 10);
  if (!isPostmasterOf(pid, home.dataDirectory)) {
    rmSync(lockFile, { force: true });
    return;
  }
  await waitForOwner(pid, home, log);
  log.warn({ postgresPid: pid }, 'stopping the embedded Postgres that an earlier supervisor left behind');
  await stopPostmaster(pid, () => isPostmasterOf(pid, home.dataDirectory), log);
}

/**
 * Waits for the supervisor of a running server to end. A supervisor that is stopping ends soon. One that keeps the
 * server running belongs to another installation, and this throws.
 */
async function waitForOwner(pid: number, home: PostgresHome, log: Log): Promise<void> {
  const owner = readSupervisorPid(home);
  for (let waitedMs = 0; owner !== null && owner !== process.pid && readParentPid(pid) === owner; waitedMs += POLL_MS) {
    if (waitedMs === 0)
      log.info(
        { ownerPid: owner },
        'another process runs the embedded Postgres of this data directory; waiting for it to end',
      );
    if (waitedMs >= OWNER_WAIT_MS)
      throw new Error(`another Tollgate (process ${owner}) is running on this data directory (${home.directory})`);
    await sleep(POLL_MS);
  }
}

/** The file is beside the data directory, where only the supervisor and the server's user can write. */
function supervisorFile(home: PostgresHome): string {
  return path.join(home.directory, 'supervisor.pid');
}

function readSupervisorPid(home: PostgresHome): number | null {
  const file = supervisorFile(home);
  return existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : null;
}

/**
 * Whether `pid` is a Postgres that was started on this data directory. A zombie has no arguments and does not count.
 */
function isPostmasterOf(pid: number, dataDirectory: string): boolean {
  if (!Number.isInteger(pid) || pid <= 1) return false;
  return readProcess(`/proc/${pid}/cmdline`, pid, 'command').replaceAll('\0', ' ').includes(` -D ${dataDirectory} `);
}

function readParentPid(pid: number): number {
  const text = readProcess(`/proc/${pid}/stat`, pid, 'ppid');
  // The process name in /proc's line may contain spaces and brackets; state and parent follow its last bracket.
  return Number.parseInt(
    process.platform === 'linux'
      ? (text
          .slice(text.lastIndexOf(')') + 1)
          .trim()
          .split(' ')[1] ?? '')
      : text,
    10,
  );
}

function readProcess(procFile: string, pid: number, psColumn: string): string {
  try {
    if (process.platform === 'linux') return readFileSync(procFile, 'utf8');
    return execFileSync('ps', ['-ww', '-o', `${psColumn}=`, '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch {
    return '';
  }
}
