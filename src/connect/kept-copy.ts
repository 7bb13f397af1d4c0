// Writes a settings file in a person's home directory, and keeps a copy of the file before, so that it can be restored
// byte for byte.

import { Buffer, isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** The file before it was written, and how to recognize what was written. */
interface Before {
  readonly path: string;
  /** Base64; null: there was no file. */
  readonly before: string | null;
  /** SHA-256 of what was written, in hex. */
  readonly written: string;
}

/** The copy that is kept for one tool. It is in a file that only its owner can read, because settings contain keys. */
interface Kept extends Before {
  /** The original file, if somebody edited the settings between two writes of ours. */
  readonly earlier?: Before | null;
}

export type UndoResult = 'restored' | 'removed' | 'nothing_kept' | 'changed_since' | 'damaged';

const OWNER_ONLY = 0o600;
const WRITABLE = 0o222;

/** Returns '' if there is no file, and null if the file is not UTF-8 text, which could not be restored exactly. */
export function readSettings(path: string): string | null {
  if (!existsSync(path)) return '';
  const bytes = statSync(path).isFile() ? readFileSync(path) : null;
  return bytes === null || !isUtf8(bytes) ? null : bytes.toString('utf8');
}

/**
 * Writes through symbolic links, which stay. The kept copy remains that of the original file when the file is written
 * again. Returns the reason if the file cannot be written, in which case nothing has changed; null: it is written.
 */
export function writeKept(home: string, tool: string, path: string, text: string): string | null {
  const kept = readKept(home, tool);
  if (kept === 'damaged') return `${keptPath(home, tool)}, which keeps what it was, is damaged: move that away first`;
  try {
    const found = existsSync(path);
    if (!found && lstatSync(path, { throwIfNoEntry: false }) !== undefined) return 'it is a link to nothing';
    const target = found ? realpathSync(path) : path;
    const mode = found ? statSync(target).mode & 0o777 : OWNER_ONLY;
    if ((mode & WRITABLE) === 0) return 'it is read-only';
    const next = keep(kept, path, found ? readFileSync(target) : null, text);
    writeWhole(keptPath(home, tool), JSON.stringify(next), OWNER_ONLY);
    try {
      writeWhole(target, text, mode);
    } catch (error) {
      putKept(home, tool, kept);
      throw error;
    }
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

function keep(kept: Kept | null, path: string, before: Buffer | null, text: string): Kept {
  const written = hashOf(Buffer.from(text));
  if (kept !== null && before !== null && hashOf(before) === kept.written) return { ...kept, path, written };
  return { path, before: before?.toString('base64') ?? null, written, earlier: kept?.earlier ?? kept };
}

/**
 * Restores the file as it was. `changed_since`: somebody has edited the file since, and restoring would lose the edit,
 * so nothing is done.
 */
export function undoKept(home: string, tool: string): { readonly result: UndoResult; readonly path: string } {
  const kept = readKept(home, tool);
  if (kept === null) return { result: 'nothing_kept', path: keptPath(home, tool) };
  if (kept === 'damaged') return { result: 'damaged', path: keptPath(home, tool) };
  const { path, before, written } = kept;
  if (!existsSync(path) || hashOf(readFileSync(path)) !== written) return { result: 'changed_since', path };
  if (before === null) rmSync(path);
  else writeWhole(realpathSync(path), Buffer.from(before, 'base64'), statSync(path).mode & 0o777);
  putKept(home, tool, kept.earlier ?? null);
  return { result: before === null ? 'removed' : 'restored', path };
}

/**
 * The repository that contains the file, or would contain it; null: none. Files in a repository are shared with others.
 */
export function repositoryOf(path: string): string | null {
  let directory = existsSync(path) ? realpathSync(path) : path;
  while (dirname(directory) !== directory) {
    directory = dirname(directory);
    if (existsSync(join(directory, '.git'))) return directory;
  }
  return null;
}

export function keptPath(home: string, tool: string): string {
  return join(home, '.config', 'tollgate', `connect-${tool}.json`);
}

function readKept(home: string, tool: string): Kept | 'damaged' | null {
  const path = keptPath(home, tool);
  if (!existsSync(path)) return null;
  try {
    const kept = JSON.parse(readFileSync(path, 'utf8')) as Kept;
    return typeof kept.path === 'string' && typeof kept.written === 'string' ? kept : 'damaged';
  } catch {
    return 'damaged';
  }
}

function putKept(home: string, tool: string, kept: Kept | null): void {
  if (kept === null) rmSync(keptPath(home, tool));
  else writeWhole(keptPath(home, tool), JSON.stringify(kept), OWNER_ONLY);
}

/** Writes a new file beside the old one and renames it, so that a reader finds either the old or the new content. */
function writeWhole(path: string, bytes: string | Buffer, mode: number): void {
  mkdirSync(dirname(path), { recursive: true });
  const beside = `${path}.tollgate-${process.pid}`;
  try {
    writeFileSync(beside, bytes, { mode });
    renameSync(beside, path);
  } catch (error) {
    // After a full disk this file is incomplete, and may contain a key.
    rmSync(beside, { force: true });
    throw error;
  }
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
