// `npm run release:check`: checks everything that must hold before a version is published, prints a line for each
// check, and lists what a person still has to do. Writes the package and the list of its parts (CycloneDX) into
// release/.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const RELEASE = join(ROOT, 'release');
/** These licenses require only that their text comes with the program. */
const LICENSES = new Set([
  'MIT',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
  'Unlicense',
]);

const { version } = JSON.parse(read('package.json')) as { version: string };

interface Check {
  readonly what: string;
  /** Returns null if the check passes, otherwise the reason why it does not. */
  readonly run: () => string | null;
}

const CHECKS: readonly Check[] = [
  { what: 'nothing in the tree is uncommitted', run: () => git('status', '--porcelain') || null },
  { what: `version ${version} is in the changelog, and nothing is unreleased`, run: readChangelog },
  { what: `there is no tag v${version} yet`, run: () => git('tag', '--list', `v${version}`) || null },
  { what: 'SECURITY.md and LICENSE are there', run: () => missing('SECURITY.md', 'LICENSE') },
  { what: 'dependencies are exact, and the lock file names no download address', run: readDependencies },
  { what: 'licenses of what runs in production are known and permissive', run: readLicenses },
  { what: 'npm run check', run: () => passes('npm', 'run', 'check') },
  { what: 'twice packed is the same file', run: packTwice },
  { what: 'its parts are listed (release/sbom.cdx.json)', run: writeBillOfMaterials },
  {
    what: 'the package serves in an empty directory',
    run: () => passes('npm', 'test', '--', 'test/deploy/package.test.ts'),
  },
];

const BY_HAND = [
  '.ci/run in a clean clone',
  'npm run test:deploy on a machine with helm, buildah, nginx, haproxy, caddy, prometheus and systemd',
  'npm run test:agents',
  'node benchmarks/compare.ts ../checkout-of-the-last-release --load 1k',
  `git tag v${version}; sign and publish release/`,
];

rmSync(RELEASE, { recursive: true, force: true });
mkdirSync(RELEASE);
let failed = 0;
for (const { what, run } of CHECKS) {
  const problem = run();
  if (problem !== null) failed += 1;
  console.log(problem === null ? `ok      ${what}` : `FAILED  ${what}\n${indent(problem)}`);
}
console.log(`\nBy hand:\n${BY_HAND.map((line) => `  - ${line}`).join('\n')}`);
process.exit(failed === 0 ? 0 : 1);

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
}

function passes(command: string, ...args: string[]): string | null {
  try {
    execFileSync(command, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 26 });
    return null;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: Buffer; stderr?: Buffer };
    return `${stdout?.toString() ?? ''}${stderr?.toString() ?? String(error)}`.split('\n').slice(-20).join('\n');
  }
}

function readChangelog(): string | null {
  const [, unreleased = ''] = /^## Unreleased\n([\s\S]*?)(?=^## )/m.exec(read('CHANGELOG.md')) ?? [];
  if (!read('CHANGELOG.md').includes(`\n## ${version}`)) return `CHANGELOG.md has no heading "## ${version}"`;
  return unreleased.trim() === '' ? null : `${unreleased.trim().split(/^- /m).length - 1} changes are unreleased`;
}

function missing(...paths: string[]): string | null {
  const absent = paths.filter((path) => !existsSync(join(ROOT, path)));
  return absent.length === 0 ? null : `${absent.join(', ')} missing`;
}

function readDependencies(): string | null {
  const { dependencies, optionalDependencies } = JSON.parse(read('package.json')) as Record<string, object>;
  const loose = Object.entries({ ...dependencies, ...optionalDependencies }).filter(
    ([, range]) => !/^(npm:[^@]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(String(range)),
  );
  if (loose.length > 0) return `not exact: ${loose.map(([name]) => name).join(', ')}`;
  return read('package-lock.json').includes('"resolved"') ? 'package-lock.json has "resolved"' : null;
}

function readLicenses(): string | null {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { dev?: boolean; license?: string; integrity?: string }>;
  };
  // The lock file has neither a license nor a hash for a package of another platform, since npm could not read it here.
  const unknown = Object.entries(packages).filter(
    ([path, { dev, license, integrity }]) =>
      path !== '' && dev !== true && integrity !== undefined && !isPermissive(license ?? ''),
  );
  return unknown.length === 0 ? null : unknown.map(([path, { license }]) => `${path}: ${license ?? 'none'}`).join('\n');
}

/** For `(A OR B)` one permissive license is enough. */
function isPermissive(license: string): boolean {
  return license
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((one) => LICENSES.has(one));
}

function packTwice(): string | null {
  const hashes = ['first', 'second'].map((name) => {
    const destination = join(RELEASE, name);
    mkdirSync(destination);
    execFileSync('npm', ['pack', '--pack-destination', destination], { cwd: ROOT, stdio: 'pipe' });
    const bytes = readFileSync(join(destination, `tollgate-${version}.tgz`));
    rmSync(destination, { recursive: true });
    writeFileSync(join(RELEASE, `tollgate-${version}.tgz`), bytes);
    return createHash('sha256').update(bytes).digest('hex');
  });
  const [first = '', second] = hashes;
  writeFileSync(join(RELEASE, 'SHA256SUMS'), `${first}  tollgate-${version}.tgz\n`);
  return first === second ? null : hashes.join('\n');
}

function writeBillOfMaterials(): string | null {
  const args = ['sbom', '--package-lock-only', '--omit', 'dev', '--sbom-format', 'cyclonedx'];
  const text = execFileSync('npm', args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 26 });
  const bill = JSON.parse(text.toString()) as {
    serialNumber?: string;
    metadata: { timestamp?: string; component: { name: string } };
    components: unknown[];
  };
  // npm takes the name from the directory. Without the time and the random serial number the list is the same each
  // time.
  bill.metadata.component.name = 'tollgate';
  delete bill.serialNumber;
  delete bill.metadata.timestamp;
  writeFileSync(join(RELEASE, 'sbom.cdx.json'), `${JSON.stringify(bill, null, 2)}\n`);
  return bill.components.length > 0 ? null : 'it lists nothing';
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '        ');
}
