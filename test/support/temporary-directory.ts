// A directory of its own for each test, removed when the test ends.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/**
 * `beforeRemoval`: what an `after` of the test would come too late for, since the first one that was asked for is the
 * first.
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
