// The built console (src/console/built), held in memory: one page, one script, one stylesheet, and the headers that go
// with them.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { HeaderList } from '../../http/response-headers.ts';

export interface BuiltFile {
  readonly bytes: Buffer;
  /** null: the build made no compressed copy. */
  readonly brotli: Buffer | null;
  readonly headers: HeaderList;
  readonly etag: string;
}

export interface BuiltConsole {
  /** null: the console was not built. */
  readonly page: BuiltFile | null;
  /** By their names, which carry a hash of what is in them. */
  readonly assets: ReadonlyMap<string, BuiltFile>;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const PAGE = 'index.html';
/** `app-<hash>.js`: another content has another name, so a browser never asks again. */
const HASHED = /-[A-Za-z0-9_]{8,}\.\w+$/;

/** Nothing from elsewhere, nothing inline, no text that becomes a script. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

/** Headers of every answer below /console. */
export const PAGE_SECURITY: HeaderList = [
  'content-security-policy',
  CONTENT_SECURITY_POLICY,
  'x-content-type-options',
  'nosniff',
  'referrer-policy',
  'no-referrer',
  'cross-origin-opener-policy',
  'same-origin',
  'cross-origin-resource-policy',
  'same-origin',
];

export function pageHeaderNames(): readonly string[] {
  return PAGE_SECURITY.filter((_, index) => index % 2 === 0).map((name) =>
    name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase()),
  );
}

/** Reads the folder once. A folder that is not there is a console that was not built. */
export function readBuiltConsole(directory: string): BuiltConsole {
  const assets = new Map<string, BuiltFile>();
  const names = listFiles(directory);
  for (const name of names.filter((name) => TYPES[extname(name)] !== undefined))
    assets.set(name, readBuiltFile(directory, name, names));
  const page = assets.get(PAGE) ?? null;
  assets.delete(PAGE);
  return { page, assets };
}

function listFiles(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function readBuiltFile(directory: string, name: string, names: readonly string[]): BuiltFile {
  const bytes = readFileSync(join(directory, name));
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
  const brotli = names.includes(`${name}.br`) ? readFileSync(join(directory, `${name}.br`)) : null;
  return {
    bytes,
    brotli,
    etag,
    headers: [
      'content-type',
      TYPES[extname(name)] as string,
      'cache-control',
      HASHED.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache',
      'etag',
      etag,
      'vary',
      'accept-encoding',
      ...PAGE_SECURITY,
    ],
  };
}
