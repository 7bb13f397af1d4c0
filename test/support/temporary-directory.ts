// A directory of its own for each test, removed when the test ends.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

export function temporaryDirectory(context: Pick<TestContext, 'after'>): string {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
