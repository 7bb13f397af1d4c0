// Makes a directory for one test, which is removed when the test ends.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/**
 * `beforeRemoval`: work to do before the directory is removed. An `after` hook of the test would run too late, because
 * hooks run in the order in which they were declared.
 */
export function temporaryDirectory(
  context: Pick<TestContext, 'after'>,
  beforeRemoval: (directory: string) => void = () => {},
): string {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  context.after(() => {
    beforeRemoval(directory);
    rmSync(directory, { recursive: true, force: true });
  });
  return directory;
}
