// A rolling upgrade under load (rolling-upgrade-run.ts says what befalls it): from this version to one made of it that
// records a field more, and from an older version to this one where its commit is in the clone.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const RUN = fileURLToPath(new URL('rolling-upgrade-run.ts', import.meta.url));
/** The last one without forms of records, whose dependencies are those of today. */
const OLDER = '85e24229ba677d0778b5396324658abd68b88aa4';

async function assertUpgrades(...args: string[]): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, [RUN, '--seconds', '2', '--seed', '29', ...args], {
    maxBuffer: 1 << 26,
  }).catch((fault: unknown) => fault as { stdout: string });
  const begin = stdout.indexOf('\n{\n');
  assert.notEqual(begin, -1, stdout);
  const report = JSON.parse(stdout.slice(begin)) as { requests: number; problems: string[] };
  assert.deepEqual(report.problems, []);
  assert.ok(report.requests > 500, `only ${report.requests} requests`);
}

test('from this version to the next one, with a field of records more', () => assertUpgrades());

test('from an older version to this one', { skip: missingOlder() ?? false }, async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-older-'));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  const archive = execFileSync('git', ['-C', ROOT, 'archive', OLDER], { maxBuffer: 1 << 28 });
  execFileSync('tar', ['-x', '-C', directory], { input: archive });
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  await assertUpgrades('--from', directory);
});

function missingOlder(): string | null {
  if (spawnSync('git', ['-C', ROOT, 'cat-file', '-e', `${OLDER}^{commit}`]).status !== 0)
    return `the commit ${OLDER} is not in this clone`;
  const sameLock = spawnSync('git', ['-C', ROOT, 'diff', '--quiet', OLDER, '--', 'package-lock.json']).status === 0;
  return sameLock ? null : `the dependencies of ${OLDER} are others`;
}
