// Installs the agents at their exact versions into this folder, and says of each whether it can run on this machine.

import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Agent } from './agent.ts';
import { lastWords, runBounded } from './bounded-process.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const MODULES = join(FOLDER, 'node_modules');
/** What the packages take, and once more for npm's cache. */
const FREE_BYTES_MIN = 3 * 1024 ** 3;
/** Before its install script has run, such a package's command is a few lines that say so. */
const PLACEHOLDER_BYTES_MAX = 4096;
const INSTALL_TIMEOUT_MS = 900_000;
const SCRIPT_TIMEOUT_MS = 120_000;

export function commandPath(agent: Agent): string {
  return join(MODULES, '.bin', agent.command);
}

/**
 * Throws when npm fails as a whole; one agent that lacks its package for this platform is found by `whyNotRunnable`.
 */
export async function installAgents(agents: readonly Agent[]): Promise<void> {
  const missing = agents.filter(({ packageName }) => installedVersion(packageName) !== wantedVersion(packageName));
  if (missing.length > 0) {
    const { bavail, bsize } = statfsSync(FOLDER);
    const free = bavail * bsize;
    console.log(
      `installing the agents into test/agents/node_modules: about 1 ` +
        `GB; ${(free / 1024 ** 3).toFixed(1)} GB of disk are free`,
    );
    if (free < FREE_BYTES_MIN) throw new Error(`less than ${FREE_BYTES_MIN / 1024 ** 3} GB of disk are free`);
    // Not `npm ci`: it refuses a lock without the packages of every platform, and not every registry has all of
    // opencode's.
    await mustRun(
      'npm',
      ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', FOLDER],
      INSTALL_TIMEOUT_MS,
    );
  }
  const unfinished = agents.filter(
    (agent) => existsSync(commandPath(agent)) && statSync(commandPath(agent)).size < PLACEHOLDER_BYTES_MAX,
  );
  for (const script of new Set(unfinished.flatMap(({ installScripts }) => installScripts))) {
    // npm runs no scripts of packages unasked; a script that fails leaves a command that says so itself.
    await runBounded({
      command: process.execPath,
      args: [join(MODULES, script)],
      cwd: FOLDER,
      env: process.env,
      timeoutMs: SCRIPT_TIMEOUT_MS,
    });
  }
}

/** null: it runs here. */
export async function whyNotRunnable(agent: Agent, env: NodeJS.ProcessEnv): Promise<string | null> {
  const wanted = wantedVersion(agent.packageName);
  const installed = installedVersion(agent.packageName);
  if (installed !== wanted) return `${agent.packageName} is ${installed ?? 'not installed'}, not ${wanted}`;
  const result = await runBounded({
    command: commandPath(agent),
    args: ['--version'],
    cwd: FOLDER,
    env,
    timeoutMs: SCRIPT_TIMEOUT_MS,
  });
  return result.code === 0 && result.stdout.includes(wanted) ? null : `--version: ${lastWords(result)}`;
}

export function wantedVersion(packageName: string): string {
  const { dependencies } = JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return dependencies[packageName] ?? 'of no known version';
}

function installedVersion(packageName: string): string | null {
  const path = join(MODULES, packageName, 'package.json');
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version : null;
}

async function mustRun(command: string, args: readonly string[], timeoutMs: number): Promise<void> {
  const result = await runBounded({ command, args, cwd: FOLDER, env: process.env, timeoutMs });
  if (result.code !== 0)
    throw new Error(
      `${command} ${args[0]} ${result.timedOut ? 'took too long' : `ended with ${result.code}`}: ${lastWords(result)}`,
    );
}
