// Tables that name files agree with the files: worker tasks, jobs, the command line, the lock file.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { listBreaches, ROOT, sourcesIn } from './sources.ts';

interface LockEntry {
  readonly version?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

describe('tables', () => {
  test('every worker task is a default export, and is run by name somewhere in src', () => {
    const source = sourcesIn('src')
      .map(({ text }) => text)
      .join('\n');
    const breaches = listBreaches(
      sourcesIn('workers').filter(({ path }) => /^workers\/[^/]+\.ts$/.test(path)),
      ({ path, text }) => {
        const task = path.slice('workers/'.length, -'.ts'.length);
        if (!/^export default /m.test(text)) return 'has no default export';
        return source.includes(`'${task}'`) ? null : 'is run by nobody';
      },
    );
    assert.deepEqual(breaches, []);
  });

  test('every job is in the table of jobs/scheduling/schedule.ts', () => {
    const table = readFileSync(join(ROOT, 'jobs/scheduling/schedule.ts'), 'utf8');
    const jobs = sourcesIn('jobs').filter(
      ({ text }) =>
        /^export (async )?function \w+\([^)]*\bJobContext\b/m.test(text) && !/^export const JOBS\b/m.test(text),
    );
    assert.ok(jobs.length > 0);
    assert.deepEqual(
      listBreaches(jobs, ({ path }) =>
        table.includes(`'../${path.slice('jobs/'.length)}'`) ? null : 'is in no table',
      ),
      [],
    );
  });

  test('facts are inserted and dropped only by code that opens their days first', () => {
    const homes = ['facts.ts', 'insert-accepted-facts.ts', 'fact-partitions.ts'].map(
      (name) => `src/storage/clickhouse/${name}`,
    );
    const users = sourcesIn('src', 'jobs', 'workers')
      .filter(
        ({ path, text }) => !homes.includes(path) && /\b(insertFacts|insertAcceptedFacts|dropFactMonths)\(/.test(text),
      )
      .map(({ path }) => path);
    assert.deepEqual(users.toSorted(), ['jobs/clickhouse-link.ts', 'jobs/tasks/drop-old-facts.ts']);
  });

  test('every command is in the table of the command line', () => {
    const table = readFileSync(join(ROOT, 'src/commands/command-line.ts'), 'utf8');
    const commands = sourcesIn('src/commands').filter(({ text }) => /export const \w+Command: Command\b/.test(text));
    assert.ok(commands.length >= 5);
    assert.deepEqual(
      listBreaches(commands, ({ path }) =>
        table.includes(`'./${path.slice('src/commands/'.length)}'`) ? null : 'is in no table',
      ),
      [],
    );
  });

  test('the lock file names the optional packages of every platform, not only of the one it was made on', () => {
    // Otherwise `npm ci` refuses it: "Missing: ... from lock file". `node test/check/complete-lock-file.ts` adds what
    // npm left out.
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, LockEntry>;
    };
    const missing = Object.entries(packages).flatMap(([path, entry]) =>
      Object.keys(entry.optionalDependencies ?? {}).filter(
        (name) =>
          packages[`${path}/node_modules/${name}`] === undefined && packages[`node_modules/${name}`] === undefined,
      ),
    );
    assert.deepEqual(missing, []);
  });
});
