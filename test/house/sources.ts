// Reads the project's own source files for the house rules.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const FOLDERS = ['src', 'workers', 'jobs', 'test', 'benchmarks', 'bin', 'build'];

export interface SourceFile {
  /** The path from the root of the repository. */
  readonly path: string;
  readonly text: string;
}

function readSources(pattern: string): SourceFile[] {
  return globSync(pattern, {
    cwd: ROOT,
    exclude: (path) => /(^|\/)(node_modules|peers|results|built|api-types\.d\.ts)(\/|$)/.test(String(path)),
  })
    .sort()
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
}

export const ALL_SOURCES = FOLDERS.flatMap((folder) => readSources(`${folder}/**/*.{ts,tsx,js}`));

export function sourcesIn(...folders: readonly string[]): SourceFile[] {
  return ALL_SOURCES.filter(({ path }) => folders.some((folder) => path.startsWith(`${folder}/`)));
}

/** All breaches of a rule, one message each, so that a test shows all of them at once. */
export function listBreaches(files: readonly SourceFile[], breach: (file: SourceFile) => string | null): string[] {
  return files.flatMap((file) => {
    const found = breach(file);
    return found === null ? [] : [`${file.path}: ${found}`];
  });
}
