// A whole installation for a test, as a black box: `bin/tollgate.js start` with its own data, ports and configuration,
// including embedded databases. The tests of a file share one installation; stopping it asserts that none of its
// processes is left.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCommandLine } from '../../src/commands/command-line.ts';
import { embeddedPostgresUrl } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { expectDocumentedAnswers } from './documented-answers.ts';
import { findFreePort } from './free-port.ts';
import { httpCall } from './http-call.ts';
import { copyOf, silentLog, withDatabase } from './postgres.ts';
import { isRunning, listDescendants, type ProcessEntry } from './process-table.ts';
import { removeInstallation } from './remove-installation.ts';
import { pause, waitFor } from './waiting.ts';

const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 60_000;
/** The beginning of the banner, which an installation prints when it serves. */
const ANNOUNCED = 'Tollgate serves ';
/** An address where nobody listens. */
export const NOWHERE = 'http://127.0.0.1:9';
const COMMAND = fileURLToPath(new URL('../../bin/tollgate.js', import.meta.url));

export interface TollgateOptions {
  readonly configurationYaml: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly gatewayProcesses?: number;
  /**
   * Runs the embedded Postgres, as an installation without DATABASE_URL does; otherwise the installation has a database
   * on the test run's server.
   */
  readonly ownPostgres?: true;
  /** Uses this directory instead of a new one. It is removed with the installation. */
  readonly dataDir?: string;
  /**
   * For tests that request no report: nothing else needs ClickHouse, and its engine is a third of an installation's
   * cost.
   */
  readonly clickhouse?: 'away';
}

export interface Tollgate {
  readonly url: string;
  readonly adminUrl: string;
  readonly postgresUrl: string;
  readonly dataDir: string;
  /** The process id of the supervisor. */
  readonly pid: number;
  gatewayPids(): number[];
  jobsPid(): number;
  /** The process ids of the embedded database: the server, and our process that owns it; 0: it does not run. */
  postgresPids(): { readonly postmaster: number; readonly owner: number };
  /** Runs another command of the same installation; resolves with its exit code and output. */
  run(args: readonly string[]): Promise<{ readonly exitCode: number | null; readonly output: string }>;
  /** Everything that the installation has printed so far. */
  output(): string;
  /**
   * Ends the installation by SIGTERM and removes its data, unless they are kept; throws if one of its processes is
   * left.
   */
  stop(options?: { keepData?: boolean }): Promise<void>;
}

export async function startTollgate(options: TollgateOptions): Promise<Tollgate> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  const configurationPath = join(directory, 'tollgate.yaml');
  const dataDir = options.dataDir ?? join(directory, 'data');
  writeFileSync(configurationPath, options.configurationYaml);
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const database =
    options.ownPostgres === true || options.env?.['DATABASE_URL'] !== undefined ? null : await createSharedDatabase();
  const adminUrl = `http://${options.env?.['ADMIN_HOST'] ?? '127.0.0.1'}:${adminPort}`;
  const installation = new Installation({ directory, dataDir, port, adminUrl, database });
  const env = {
    ...settingsOf({ dataDir, port, adminPort, databaseUrl: database?.url ?? null, env: options.env ?? {} }),
    GATEWAY_PROCESSES: String(options.gatewayProcesses ?? 1),
    ...(options.clickhouse === undefined ? {} : { CLICKHOUSE_URL: NOWHERE }),
    ...options.env,
  };
  installation.launch(['start', '--config', configurationPath], env);
  try {
    await installation.becomeReady();
    expectDocumentedAnswers(installation.url, options.env);
  } catch (fault) {
    await installation.stop().catch(() => undefined);
    throw fault;
  }
  return installation;
}

/** The environment of a test's installation. `databaseUrl` null: it has the embedded database. */
export function settingsOf(installation: {
  readonly dataDir: string;
  readonly port: number;
  readonly adminPort: number;
  readonly databaseUrl: string | null;
  readonly env: Readonly<Record<string, string>>;
}): NodeJS.ProcessEnv {
  const { databaseUrl } = installation;
  return {
    ...process.env,
    ...(databaseUrl === null
      ? {}
      : { DATABASE_URL: databaseUrl, MASTER_KEY: randomSecret(), ADMIN_TOKEN: randomSecret() }),
    DATA_DIR: installation.dataDir,
    HOST: '127.0.0.1',
    PORT: String(installation.port),
    ADMIN_PORT: String(installation.adminPort),
    LOG_LEVEL: 'warn',
    // Tests make as many changes in a second as a person in a day.
    CHANGES_PER_MINUTE: '1000000',
    ...installation.env,
  };
}

/**
 * Runs a command line as bin/tollgate.js does, but in this process, because a process of its own costs a third of a
 * second of CPU. Resolves with its exit code and output.
 */
export async function runCommand(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ readonly exitCode: number | null; readonly output: string }> {
  let output = '';
  const hear = (text: string): void => {
    output += `${text}\n`;
  };
  const exitCode = await runCommandLine(args, env, { print: hear, complain: hear });
  return { exitCode, output };
}

/** Like `runCommand`, but runs bin/tollgate.js in a process of its own: for commands that end with their process. */
export function runCommandApart(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ readonly exitCode: number | null; readonly output: string }> {
  const child = spawn(process.execPath, [COMMAND, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  return new Promise((resolve) => child.once('close', (exitCode) => resolve({ exitCode, output })));
}

class Installation implements Tollgate {
  readonly url: string;
  readonly adminUrl: string;
  readonly dataDir: string;
  readonly #directory: string;
  /** null: the installation has a database of its own. */
  readonly #database: SharedDatabase | null;
  #child: ChildProcess | null = null;
  #env: NodeJS.ProcessEnv = {};
  #printed = '';

  constructor(places: {
    directory: string;
    dataDir: string;
    port: number;
    adminUrl: string;
    database: SharedDatabase | null;
  }) {
    this.url = `http://127.0.0.1:${places.port}`;
    this.adminUrl = places.adminUrl;
    this.dataDir = places.dataDir;
    this.#directory = places.directory;
    this.#database = places.database;
  }

  get postgresUrl(): string {
    return this.#database?.url ?? embeddedPostgresUrl(this.dataDir);
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  launch(args: readonly string[], env: NodeJS.ProcessEnv): void {
    this.#env = env;
    const child = spawn(process.execPath, [COMMAND, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    child.stdout.on('data', (chunk: Buffer) => this.#print(chunk));
    child.stderr.on('data', (chunk: Buffer) => this.#print(chunk));
  }

  #print(chunk: Buffer): void {
    this.#printed = (this.#printed + chunk.toString('utf8')).slice(-1_000_000);
    if (process.env.TOLLGATE_TEST_OUTPUT !== undefined) process.stderr.write(chunk);
  }

  output(): string {
    return this.#printed;
  }

  run(args: readonly string[]): Promise<{ exitCode: number | null; output: string }> {
    return runCommand(args, this.#env);
  }

  async becomeReady(): Promise<void> {
    await waitFor(
      'the installation to be ready',
      async () => {
        if (this.#ended()) throw new Error(`the installation ended before it was ready:\n${this.#printed}`);
        // The status is requested only now, and not during the whole start.
        if (!this.#printed.includes(ANNOUNCED)) return this.#printed;
        const answer = await httpCall(`${this.adminUrl}/readyz`).catch(() => null);
        return answer?.status ?? this.#printed;
      },
      (status) => status === 200,
      START_TIMEOUT_MS,
    );
  }

  gatewayPids(): number[] {
    return this.#childPids('gateway');
  }

  jobsPid(): number {
    return this.#childPids('jobs')[0] ?? 0;
  }

  postgresPids(): { postmaster: number; owner: number } {
    const descendants = listDescendants(this.pid);
    const owner = descendants.find(({ command }) => command.includes('postgres-owner.ts'))?.pid ?? 0;
    const postmaster =
      descendants.find(({ command, parentPid }) => parentPid === owner && command.includes('bin/postgres -D'))?.pid ??
      0;
    return { postmaster, owner };
  }

  #childPids(command: string): number[] {
    const pattern = new RegExp(`main\\.ts ${command}\\b`);
    return listDescendants(this.pid)
      .filter((entry) => pattern.test(entry.command))
      .map((entry) => entry.pid);
  }

  async stop(options: { keepData?: boolean } = {}): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    const descendants = listDescendants(child.pid);
    if (!this.#ended()) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      const backstop = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      await ended;
      clearTimeout(backstop);
    }
    const left = await waitForEnd(descendants);
    for (const entry of left) process.kill(entry.pid, 'SIGKILL');
    if (options.keepData !== true) {
      this.#removeData();
      await this.#database?.drop();
    }
    if (left.length > 0)
      throw new Error(`processes were left behind: ${left.map((entry) => entry.command).join(', ')}\n${this.#printed}`);
  }

  #removeData(): void {
    // When started as root, the database has its home elsewhere.
    removeInstallation(this.dataDir);
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #ended(): boolean {
    return this.#child !== null && (this.#child.exitCode !== null || this.#child.signalCode !== null);
  }
}

interface SharedDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/**
 * Creates a database on the server that the test runner started for all files; null: there is no such server, as when a
 * file is run by itself.
 */
async function createSharedDatabase(): Promise<SharedDatabase | null> {
  const server = process.env['TEST_POSTGRES_URL'];
  if (server === undefined) return null;
  const name = `installation_${randomBytes(6).toString('hex')}`;
  const run = async (statement: string): Promise<void> => {
    const owner = createPostgres({ url: server, log: silentLog, max: 1 });
    try {
      await owner.query(statement);
    } finally {
      await owner.close();
    }
  };
  const template = process.env['TEST_POSTGRES_TEMPLATE'];
  await run(`CREATE DATABASE ${name}${template === undefined ? '' : copyOf(template)}`);
  return { url: withDatabase(server, name), drop: () => run(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

/** A secret that is random enough for an installation with DATABASE_URL, and long enough for every kind of secret. */
function randomSecret(): string {
  return randomBytes(32).toString('base64');
}

/** Returns the processes that still run after a moment. */
async function waitForEnd(entries: readonly ProcessEntry[]): Promise<ProcessEntry[]> {
  let left = entries.filter(isRunning);
  for (let round = 0; round < 50 && left.length > 0; round += 1) {
    await pause(100);
    left = left.filter(isRunning);
  }
  return left;
}
