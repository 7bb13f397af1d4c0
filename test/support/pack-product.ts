// Makes the package of this checkout with `npm pack`, for one file of a run at a time, because the package is assembled
// in built/.

import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { waitFor } from './waiting.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LOCK = join(ROOT, 'node_modules', '.cache', 'packing');

/** Resolves with the path of the package. */
export async function packProduct(destination: string): Promise<string> {
  mkdirSync(destination, { recursive: true });
  await waitFor('others that pack', takeLock, (taken) => taken, 120_000);
  try {
    await promisify(execFile)('npm', ['pack', '--pack-destination', destination], { cwd: ROOT, maxBuffer: 1 << 26 });
  } finally {
    rmSync(LOCK, { recursive: true });
  }
  const { name, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, string>;
  return join(destination, `${name}-${version}.tgz`);
}

function takeLock(): boolean {
  mkdirSync(join(LOCK, '..'), { recursive: true });
  try {
    mkdirSync(LOCK);
    return true;
  } catch {
    return false;
  }
}
