// `npm test`: finds the tests of the named suites (all without a name), runs them with node:test, and fails when none ran or a process is left.
//
//   node test/run.ts [suite or file ...] [--test-name-pattern=PATTERN ...]
//
// All suites: the simulation, which only computes, runs beside the others at a low priority, in what they leave of the cores while they wait. What it printed
// comes at the end, with a summary of its own.

import { spawn } from 'node:child_process';
import { globSync, mkdtempSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '../src/storage/postgres/embedded-postgres.ts';
import { watchForLeftovers } from './support/process-leftovers.ts';
import { removeInstallation } from './support/remove-installation.ts';
import { silentLog } from './support/silent-log.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SUITES = ['house', 'unit', 'contract', 'integration', 'e2e', 'simulation'] as const;
/** Suites whose tests want a database; they share one server, each test with a database of its own. */
const SUITES_WITH_DATABASE = new Set<string>(['contract', 'integration', 'e2e']);
const SUITE_BESIDE = 'simulation';
const PRIORITY_BESIDE = 10;
const CONCURRENCY = 2;
/** The runner counts a file as a test, so this is the backstop for a whole file. */
const TIMEOUT_MS = 900_000;

process.chdir(ROOT);
const { values, positionals } = parseArgs({ allowPositionals: true, options: { 'test-name-pattern': { type: 'string', multiple: true, default: [] } } });
const runsAll = positionals.length === 0;
// With a pattern most suites have nothing to run, and the simulation alone would be a failure.
const hasBeside = runsAll && values['test-name-pattern'].length === 0;
const files = (runsAll ? SUITES.filter((suite) => !hasBeside || suite !== SUITE_BESIDE) : positionals).flatMap(findTests);
if (files.length === 0) fail(`no test files in ${positionals.join(', ') || 'test/'}`);

const leftovers = watchForLeftovers();
const database = files.some((file) => SUITES_WITH_DATABASE.has(relative(join(ROOT, 'test'), file).split('/')[0] ?? '')) ? await startSharedDatabase() : null;
const beside = hasBeside ? runBeside() : null;
let ran = 0;
let failed = 0;
const stream = run({ files, concurrency: CONCURRENCY, timeout: TIMEOUT_MS, testNamePatterns: values['test-name-pattern'] });
stream.on('test:pass', ({ details, skip, name }) => {
  // A file without a test passes under its own name.
  if (details.type !== 'suite' && skip === undefined && !files.includes(name)) ran += 1;
});
stream.on('test:fail', ({ todo }) => {
  if (todo === undefined) failed += 1;
});
const report = stream.compose(new spec());
report.pipe(process.stdout);
await new Promise((resolve) => report.on('end', resolve));
const besideEnd = await beside;
if (besideEnd !== null) process.stdout.write(besideEnd.output);
await database?.stop();
const left = await leftovers.end();
if (left.length > 0) fail(`processes were left behind, and are killed now:\n  ${left.join('\n  ')}`);
if (ran + failed === 0) fail('no test ran');
process.exit(failed === 0 && (besideEnd === null || besideEnd.code === 0) ? 0 : 1);

function findTests(suiteOrFile: string): string[] {
  const isSuite = (SUITES as readonly string[]).includes(suiteOrFile);
  const pattern = isSuite ? `test/${suiteOrFile}/**/*.test.ts` : suiteOrFile;
  return globSync(pattern, { cwd: ROOT })
    .map((file) => resolve(ROOT, file))
    .sort();
}

/** `code`: what the run of that suite ended with; null when it was killed. */
function runBeside(): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [fileURLToPath(import.meta.url), SUITE_BESIDE], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
    if (child.pid !== undefined) setPriority(child.pid, PRIORITY_BESIDE);
  });
}

async function startSharedDatabase(): Promise<{ stop(): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  const server = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
  process.env.TEST_POSTGRES_URL = server.url;
  return {
    async stop() {
      await server.stop();
      removeInstallation(directory);
    },
  };
}

function fail(why: string): never {
  console.error(`test/run.ts: ${why}`);
  process.exit(1);
}
