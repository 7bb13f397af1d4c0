// `npm test` and `npm run test:long`: finds the tests of the named suites, runs them with node:test, shows progress,
// and fails when none ran or a process is left behind. What the files of a run have in common is made here, once: one
// Postgres with a migrated database to copy, and the sources without their types; small files share processes, too
// (support/batches.ts).
//
//   node test/run.ts [suite or file ...] [--test-name-pattern=PATTERN ...] [--slowest=COUNT]
//
// Without a name: all suites but `deploy`, and without their long files (*.long.test.ts). The suite `long` is these,
// and every file that does more at length (it or a support file that it imports has support/at-length.ts) once more,
// at length.

import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { batchesOf } from './support/batches.ts';
import { reportCpuTime } from './support/cpu-report.ts';
import { watchForLeftovers } from './support/process-leftovers.ts';
import { startSharedPostgres } from './support/shared-postgres.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** The long files first and the many short ones last, so that no core waits for the end of one file. */
const SUITES = ['house', 'e2e', 'isolation', 'integration', 'simulation', 'contract', 'browser', 'unit'] as const;
const LONG_SUITE = 'long';
/** What is shipped, with the programs it is shipped to: what the machine has of them. Never part of another run. */
const DEPLOY_SUITE = 'deploy';
const LONG_FILE = /\.long\.test\.ts$/;
const AT_LENGTH_IMPORT = "/at-length.ts';";
const SUPPORT_IMPORT = /from '(\.\.\/support\/[^']+)'/g;
/**
 * Suites whose tests want a database; they share one server, each installation and each test with a database of its
 * own.
 */
const SUITES_WITH_DATABASE = new Set<string>(['browser', 'contract', 'isolation', 'integration', 'e2e']);
/** For two cores: most files wait for something more than half of the time. */
const CONCURRENCY = 6;
/** Of what a failed test says. */
const SHOWN_LENGTH_MAX = 1_000;
/** The runner counts a file as a test, so this is the backstop for a whole file. */
const TIMEOUT_MS = 900_000;

process.chdir(ROOT);
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'test-name-pattern': { type: 'string', multiple: true, default: [] },
    slowest: { type: 'string', default: '12' },
  },
});
if ([LONG_SUITE, DEPLOY_SUITE].some((suite) => positionals.includes(suite))) process.env.TOLLGATE_TEST_AT_LENGTH = '1';
const files = (positionals.length === 0 ? SUITES : positionals).flatMap(findTests);
if (files.length === 0) fail(`no test files in ${positionals.join(', ') || 'test/'}`);

const startedAtMs = performance.now();
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
const sharedDirectory = mkdtempSync(join(tmpdir(), 'tollgate-test-run-'));
shareStartOfProcesses(sharedDirectory);
const leftovers = watchForLeftovers();
const database = files.some((file) => SUITES_WITH_DATABASE.has(suiteOf(file)))
  ? await startSharedPostgres(join(sharedDirectory, 'postgres'))
  : null;
let ran = 0;
let failed = 0;
let filesDone = 0;
// At length each file is run by itself, which shows that it does not live on what another one left.
const isAtLength = process.env.TOLLGATE_TEST_AT_LENGTH !== undefined;
const runs = isAtLength ? files : batchesOf(files, { directory: sharedDirectory, suiteOf });
const stream = run({
  files: runs,
  concurrency: CONCURRENCY,
  timeout: TIMEOUT_MS,
  signal: stop.signal,
  testNamePatterns: values['test-name-pattern'],
});
stream.on('test:pass', ({ details, skip, name }) => {
  // A file without a test passes under its own name.
  if (details.type !== 'suite' && skip === undefined && !runs.includes(name)) ran += 1;
});
/** Of each file the first, since the others may follow from it. */
const firstFailures = new Map<string, string>();
stream.on('test:fail', ({ name, file = '', details: { error, type } }) => {
  failed += 1;
  if (type === 'suite' || firstFailures.has(file)) return;
  const cause = error.cause instanceof Error ? error.cause.message : error.message;
  firstFailures.set(file, `${nameOf(file)}: ${name}: ${cause.slice(0, SHOWN_LENGTH_MAX)}`);
});
// The report prints a file's tests when all files before it have ended; this says at once which ones have.
stream.on('test:summary', ({ file, counts, duration_ms: durationMs, success }) => {
  if (file === undefined || !files.includes(file)) return;
  const outcome = success ? `${counts.passed} passed` : `FAILED, ${counts.passed} of ${counts.tests} passed`;
  showProgress(relative(ROOT, file), `${outcome} in ${(durationMs / 1_000).toFixed(1)} s`);
});
// A file of a batch is a suite of its name.
stream.on('test:complete', ({ name, nesting, details }) => {
  if (nesting !== 0 || runs.includes(name) || !files.includes(resolve(ROOT, name))) return;
  showProgress(name, `${details.passed ? 'passed' : 'FAILED'} in ${(details.duration_ms / 1_000).toFixed(1)} s`);
});
const report = stream.compose(new spec());
report.pipe(process.stdout);
await new Promise((resolve) => report.on('end', resolve));
await database?.stop();
const left = await leftovers.end();
const cpuReport = reportCpuTime(join(sharedDirectory, 'cpu'), Number(values.slowest), nameOf);
if (files.length > 1) process.stderr.write(`${cpuReport.join('\n')}\n`);
// At the end, since of a long output a reader elsewhere may be shown no more than that.
if (firstFailures.size > 0) process.stderr.write(`First failures:\n${[...firstFailures.values()].join('\n')}\n`);
rmSync(sharedDirectory, { recursive: true, force: true, maxRetries: 5 });
if (stop.signal.aborted) fail('it was told to stop');
if (left.length > 0) fail(`processes were left behind, and are killed now:\n  ${left.join('\n  ')}`);
if (ran + failed === 0) fail('no test ran');
process.exit(failed === 0 ? 0 : 1);

function showProgress(name: string, outcome: string): void {
  filesDone += 1;
  const atSeconds = ((performance.now() - startedAtMs) / 1_000).toFixed(0);
  process.stderr.write(`[${atSeconds} s, ${filesDone}/${files.length}] ${name}: ${outcome}\n`);
}

function nameOf(file: string): string {
  return relative(runs.includes(file) && !files.includes(file) ? sharedDirectory : ROOT, file);
}

function findTests(suiteOrFile: string): string[] {
  if (suiteOrFile === LONG_SUITE) return glob('test/**/*.test.ts').filter(isLong);
  if (suiteOrFile === DEPLOY_SUITE) return glob('test/deploy/**/*.test.ts');
  const isSuite = (SUITES as readonly string[]).includes(suiteOrFile);
  return isSuite ? glob(`test/${suiteOrFile}/**/*.test.ts`).filter((file) => !LONG_FILE.test(file)) : glob(suiteOrFile);
}

function isLong(file: string): boolean {
  if (LONG_FILE.test(file)) return true;
  const text = readFileSync(file, 'utf8');
  const supports = [...text.matchAll(SUPPORT_IMPORT)].map(([, path = '']) => resolve(dirname(file), path));
  return (
    text.includes(AT_LENGTH_IMPORT) || supports.some((path) => readFileSync(path, 'utf8').includes(AT_LENGTH_IMPORT))
  );
}

function glob(pattern: string): string[] {
  return globSync(pattern, { cwd: ROOT })
    .map((file) => resolve(ROOT, file))
    .sort();
}

function suiteOf(file: string): string {
  return relative(join(ROOT, 'test'), file).split('/')[0] ?? '';
}

/** Every process of the run inherits this: see the two preloaded files, and Node's own cache of compiled code. */
function shareStartOfProcesses(directory: string): void {
  const preloads = ['shorten-starts.js', 'note-cpu-time.ts'].map(
    (name) => `--import=${new URL(`support/${name}`, import.meta.url).href}`,
  );
  process.env.TOLLGATE_TEST_STRIPPED = join(directory, 'stripped');
  mkdirSync(process.env.TOLLGATE_TEST_STRIPPED);
  process.env.NODE_COMPILE_CACHE = join(directory, 'compiled');
  process.env.TOLLGATE_TEST_OPENAPI = join(directory, 'openapi.json');
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --disable-warning=ExperimentalWarning ${preloads.join(' ')}`;
  process.env.TOLLGATE_TEST_CPU = join(directory, 'cpu');
  mkdirSync(process.env.TOLLGATE_TEST_CPU);
}

function fail(why: string): never {
  console.error(`test/run.ts: ${why}`);
  process.exit(1);
}
