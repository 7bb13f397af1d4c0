// Where the jobs of an installation serve reports and its gateways request them, if the settings do not say: a socket
// in the data directory.

import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Config } from '../config.ts';
import type { ReportsAddress } from '../reports-settings.ts';
import { StartFault } from './start-fault.ts';

/** The shortest limit among the supported systems (macOS). */
const SOCKET_PATH_BYTES_MAX = 103;
const SOCKET_FILE = 'reports.sock';

export interface ReportsAddresses {
  readonly reportsListen: ReportsAddress;
  readonly reportsUrl: ReportsAddress;
}

export function reportsAddresses({ dataDirectory, reportsListen, reportsUrl }: Config): ReportsAddresses {
  const own = { socketPath: chooseSocketPath(dataDirectory) };
  return { reportsListen: reportsListen ?? own, reportsUrl: reportsUrl ?? own };
}

/** The name is not secret, but it must be the same in every process of the installation. */
function chooseSocketPath(dataDirectory: string): string {
  const near = join(dataDirectory, SOCKET_FILE);
  if (Buffer.byteLength(near) <= SOCKET_PATH_BYTES_MAX) return near;
  const name = `tollgate-reports-${createHash('sha256').update(dataDirectory).digest('hex').slice(0, 16)}`;
  const far = join(tmpdir(), name, SOCKET_FILE);
  return Buffer.byteLength(far) <= SOCKET_PATH_BYTES_MAX ? far : join('/tmp', name, SOCKET_FILE);
}

/**
 * Makes the directory of the socket before a process serves or connects there. In a directory where everyone may write,
 * another user could have made it and answer instead of jobs.
 */
export function makeSocketDirectories(dataDirectory: string, { reportsListen, reportsUrl }: ReportsAddresses): void {
  const own = chooseSocketPath(dataDirectory);
  const isUsed = [reportsListen, reportsUrl].some((address) => 'socketPath' in address && address.socketPath === own);
  const directory = dirname(own);
  if (!isUsed || directory === dataDirectory) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const found = lstatSync(directory);
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0) {
    throw new StartFault(
      `${directory} exists and does not belong to this installation; remove it, use a shorter DATA_DIR, ` +
        `or set REPORTS_LISTEN`,
    );
  }
}
