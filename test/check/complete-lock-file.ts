// Adds to package-lock.json the optional packages of other platforms that npm left out. npm leaves them out when the
// registry does not serve them, and `npm ci` then refuses the file on every machine. Run it after `npm install`: `node
// test/check/complete-lock-file.ts`.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface LockEntry {
  version?: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const PATH = fileURLToPath(new URL('../../package-lock.json', import.meta.url));
const SYSTEMS = ['android', 'darwin', 'freebsd', 'netbsd', 'openbsd', 'openharmony', 'win32', 'linux', 'sunos', 'aix'];
/** Longer names come first, since `arm` is a part of `arm64`. */
const PROCESSORS = ['arm64', 'riscv64', 'loong64', 'ppc64', 's390x', 'wasm32', 'ia32', 'x64', 'arm'];
const EXACT_VERSION = /^\d+\.\d+\.\d+(-[\w.]+)?$/;

const lock = JSON.parse(readFileSync(PATH, 'utf8')) as { packages: Record<string, LockEntry> };
const added: string[] = [];
for (const [path, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    if (
      lock.packages[`${path}/node_modules/${name}`] !== undefined ||
      lock.packages[`node_modules/${name}`] !== undefined
    )
      continue;
    lock.packages[`node_modules/${name}`] = describe(name, version, entry.dev === true);
    added.push(`${name}@${version}`);
  }
}
lock.packages = Object.fromEntries(
  Object.entries(lock.packages).sort(([one], [other]) => one.localeCompare(other, 'en')),
);
writeFileSync(PATH, `${JSON.stringify(lock, null, 2)}\n`);
console.log(added.length === 0 ? 'nothing is missing' : `added:\n  ${added.join('\n  ')}`);

/** Describes a platform package. The platform in its name keeps npm from installing it on any other platform. */
function describe(name: string, version: string, dev: boolean): LockEntry {
  const system = SYSTEMS.find((candidate) => name.includes(candidate));
  const processor = PROCESSORS.find((candidate) => name.includes(`-${candidate}`));
  if (system === undefined || processor === undefined || !EXACT_VERSION.test(version)) {
    throw new Error(`${name}@${version} does not name its platform or an exact version: add it by hand`);
  }
  const libc = system !== 'linux' ? null : name.includes('musl') ? 'musl' : name.includes('gnu') ? 'glibc' : null;
  return {
    version,
    cpu: [processor],
    ...(dev ? { dev } : {}),
    ...(libc === null ? {} : { libc: [libc] }),
    optional: true,
    os: [system],
  };
}
