// Makes DATA_DIR, the directory of an installation, and explains to the operator why a path cannot be one.

import { accessSync, constants, lstatSync, mkdirSync, readlinkSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { explainFileFault } from './file-fault.ts';
import { StartFault } from './start-fault.ts';

const MAY_BE_ABSENT = { throwIfNoEntry: false } as const;
/** The type of the file system that Linux has at /proc. */
const PROC = 0x9fa0;

export function makeDataDirectory(directory: string): void {
  const problem =
    dataDirectoryProblem(directory) ?? problemOf(() => void mkdirSync(directory, { recursive: true, mode: 0o700 }));
  if (problem !== null)
    throw new StartFault(`DATA_DIR: must be a directory that this user can write, got "${directory}": ${problem}`);
}

/** null: this user can use the directory, or make it. */
export function dataDirectoryProblem(directory: string): string | null {
  return problemOf(() => {
    const place = nearestExisting(directory);
    return problemAt(place, place === directory);
  });
}

function problemOf(use: () => string | null | undefined): string | null {
  try {
    return use() ?? null;
  } catch (error) {
    return explainFileFault(error) ?? (error as Error).message;
  }
}

/** The path itself if it exists, otherwise its nearest existing parent. A link that leads nowhere exists. */
export function nearestExisting(path: string): string {
  const isThere = lstatSync(path, MAY_BE_ABSENT) !== undefined;
  return isThere || dirname(path) === path ? path : nearestExisting(dirname(path));
}

/** A parent needs no read permission, because nobody has to list it. */
function problemAt(path: string, isItself: boolean): string | null {
  const found = statSync(path, MAY_BE_ABSENT);
  if (found === undefined) return `${path} is a symbolic link to ${readlinkSync(path)}, which does not exist`;
  if (!found.isDirectory()) return `${path} is no directory`;
  if (isItself && dirname(path) === path) return `${path} is the root of the file system: name a directory in it`;
  // There, Node's recursive mkdir would try for ever.
  if (statfsSync(path).type === PROC) return `${path} is the system's view of its processes, where no file can be kept`;
  accessSync(path, constants.W_OK | constants.X_OK | (isItself ? constants.R_OK : 0));
  return null;
}
