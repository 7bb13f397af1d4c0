// Writes a settings file of a person's home, and keeps what it was before, so that it can be given back byte for byte.

import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** Of one tool, in a file of its own that only its owner can read: settings have keys in them. */
interface Kept {
  readonly path: string;
  /** Base64; null: there was no file. */
  readonly before: string | null;
  /** SHA-256 of what was written, in hex. */
  readonly written: string;
}

export type UndoResult = 'restored' | 'removed' | 'nothing_kept' | 'changed_since';

const OWNER_ONLY = 0o600;

export function readSettings(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

/** Through symbolic links, which stay. A file that was written before keeps what it was at first. */
export function writeKept(home: string, tool: string, path: string, text: string): void {
  const target = existsSync(path) ? realpathSync(path) : path;
  const before = existsSync(target) ? readFileSync(target) : null;
  const kept = readKept(home, tool);
  const isOurs = kept !== null && kept.path === path && before !== null && hashOf(before) === kept.written;
  const next: Kept = {
    path,
    before: isOurs ? kept.before : (before?.toString('base64') ?? null),
    written: hashOf(Buffer.from(text)),
  };
  writeWhole(keptPath(home, tool), JSON.stringify(next), OWNER_ONLY);
  writeWhole(target, text, before === null ? OWNER_ONLY : statSync(target).mode & 0o777);
}

/** `changed_since`: somebody has edited the file, and giving back what it was would lose that. Nothing is done. */
export function undoKept(home: string, tool: string): { readonly result: UndoResult; readonly path: string } {
  const kept = readKept(home, tool);
  if (kept === null) return { result: 'nothing_kept', path: keptPath(home, tool) };
  const { path, before, written } = kept;
  if (!existsSync(path) || hashOf(readFileSync(path)) !== written) return { result: 'changed_since', path };
  if (before === null) rmSync(path);
  else writeWhole(realpathSync(path), Buffer.from(before, 'base64'), statSync(path).mode & 0o777);
  rmSync(keptPath(home, tool));
  return { result: before === null ? 'removed' : 'restored', path };
}

/** The repository that a file lies in, or would lie in; null: none. What is in one is shared. */
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

function readKept(home: string, tool: string): Kept | null {
  const path = keptPath(home, tool);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Kept) : null;
}

/** Beside its place first: whoever reads it meanwhile finds the one or the other. */
function writeWhole(path: string, bytes: string | Buffer, mode: number): void {
  mkdirSync(dirname(path), { recursive: true });
  const beside = `${path}.tollgate-${process.pid}`;
  writeFileSync(beside, bytes, { mode });
  renameSync(beside, path);
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
