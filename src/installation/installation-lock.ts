// Allows one supervisor per data directory: a lock file names its holder and the directory. The lock is taken over when
// that process no longer exists, or when the directory is a copy of the one that the lock was written in.

import { linkSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { directoryIdentity } from '../storage/directory-identity.ts';
import { isAlive, type ProcessIdentity, readProcessIdentity } from '../storage/spool/process-identity.ts';

export type LockResult =
  /** `tookOver`: the last holder died without releasing the lock, so processes that it started may still be ending. */
  | { readonly ok: true; readonly lock: InstallationLock; readonly tookOver: boolean }
  | { readonly ok: false; readonly holder: ProcessIdentity };

export class InstallationLock {
  private readonly path: string;
  private readonly content: string;
  constructor(path: string, content: string) {
    this.path = path;
    this.content = content;
  }

  isHeld(): boolean {
    return readLock(this.path) === this.content;
  }

  release(): void {
    if (this.isHeld()) unlinkSync(this.path);
  }
}

const ATTEMPTS_MAX = 20;

export function takeInstallationLock(dataDirectory: string): LockResult {
  const path = join(dataDirectory, 'supervisor.lock');
  const directory = directoryIdentity(dataDirectory);
  const content = `${JSON.stringify({ ...readProcessIdentity(), directory })}\n`;
  const draft = `${path}.${process.pid}`;
  let tookOver = false;
  writeFileSync(draft, content, { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      // link(2) creates the name with its content in one step, and fails if it exists.
      if (link(draft, path)) return { ok: true, lock: new InstallationLock(path, content), tookOver };
      const found = readLock(path);
      if (found === null) continue;
      const holder = parseHolder(found, dataDirectory);
      if (holder !== null && isAlive(holder)) return { ok: false, holder };
      tookOver = true;
      removeStale(path, found);
    }
  } finally {
    unlinkSync(draft);
  }
  throw new Error(`the lock ${path} changes hands too often`);
}

/** Two starts may find the same stale lock. A start that moves the other's fresh lock away by mistake puts it back. */
function removeStale(path: string, stale: string): void {
  const aside = `${path}.${process.pid}.aside`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return;
    throw error;
  }
  if (readLock(aside) !== stale) link(aside, path);
  unlinkSync(aside);
}

function link(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  }
}

function readLock(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/** null: the lock is stale, because it is incomplete or came with a copy of the directory. */
function parseHolder(content: string, dataDirectory: string): ProcessIdentity | null {
  try {
    const read = JSON.parse(content) as Partial<ProcessIdentity & { readonly directory: string }>;
    const { pid, processStart = null, bootId = null, directory } = read;
    if (directory !== undefined && directory !== directoryIdentity(dataDirectory)) return null;
    return typeof pid === 'number' && pid > 0 ? { pid, processStart, bootId } : null;
  } catch {
    return null;
  }
}

/** The process that holds the installation now; null: it is not running. */
export function findInstallationHolder(dataDirectory: string): ProcessIdentity | null {
  const content = readLock(join(dataDirectory, 'supervisor.lock'));
  const holder = content === null ? null : parseHolder(content, dataDirectory);
  return holder !== null && isAlive(holder) ? holder : null;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
