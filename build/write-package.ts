// `npm pack` (prepack, postpack): writes what the package runs into built/, the sources without their types by Node's
// own function, and takes it away again. A checkout runs its sources; only a package has built/ and no src/.
//
//   node build/write-package.ts [--remove]

import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BUILT = join(ROOT, 'built');
/**
 * Modules that the package does not run: src/console is bundled before, and the scanner's source is compiled before.
 */
const NOT_RUN = /^src\/console\/|\.d\.ts$|\.as\.ts$/;
/** Files that the sources read by a path relative to a module. */
const READ_AT_RUN_TIME = [
  'src/console/built',
  'src/generation/request/scan/request-scanner.wasm',
  'deploy/demo.yaml',
  'deploy/demo-traffic.yaml',
  'deploy/postgres',
  'deploy/clickhouse',
];
/** The end of a module's name, in an import as in a URL. */
const MODULE_NAME = /\.ts(?=['"`])/g;

rmSync(BUILT, { recursive: true, force: true });
if (!process.argv.includes('--remove')) writePackage();

function writePackage(): void {
  const files = globSync(['src/**/*.ts', 'jobs/**/*.ts', 'workers/**/*.ts'], { cwd: ROOT }).sort();
  const run = files.filter((path) => !NOT_RUN.test(path));
  for (const path of run) {
    // Types become spaces: the lines and columns of a stack are those of the source.
    const text = stripTypeScriptTypes(readFileSync(join(ROOT, path), 'utf8')).replaceAll(MODULE_NAME, '.js');
    write(path.replace(/\.ts$/, '.js'), text);
  }
  for (const path of READ_AT_RUN_TIME) cpSync(join(ROOT, path), join(BUILT, path), { recursive: true });
  const { name, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, string>;
  write('package.json', `${JSON.stringify({ name, version, private: true, type: 'module' })}\n`);
  // npm prints what a script says on stderr, and its own answer on stdout.
  console.error(`built/: ${run.length} modules without their types`);
}

function write(path: string, text: string): void {
  const target = join(BUILT, path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
}
