// Three machines share one Postgres and one ClickHouse. The clock of the first is an hour ahead; the second loses the
// databases and then everybody, packets dropped and not refused; the third is killed for good with its disk, and its
// epochs are given up. Whoever has room is served by the others all the time, money agrees to the digit, and the facts
// are whole once they were compared with the ledger. As root, by hand: `node test/e2e/machines-run.ts --seconds 20
// --seed 1`. With `--upgrade` none of that befalls them: they go one after the other to a version made of this one that
// records a field more, or with `--from CHECKOUT` from that one to this; the third is killed and comes back new.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { systemClock } from '../../src/platform/clock.ts';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { openEmbeddedClickHouse } from '../../src/storage/clickhouse/embedded-clickhouse.ts';
import { startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { startClickHouseServer } from '../support/clickhouse-server.ts';
import { endAll } from '../support/end-all.ts';
import { runCommand } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { openLedgerView } from '../support/ledger-view.ts';
import { limitedKey, renderOrganization } from '../support/limited-organizations.ts';
import { isRunning, listDescendants } from '../support/process-table.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import { untilPosted } from '../support/shipped-spool.ts';
import { silentLog } from '../support/silent-log.ts';
import { startSimulatedProvider, untilCallsEnd } from '../support/simulated-provider.ts';
import { decimalOfPico, KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';
import {
  checkBooks,
  compareLedgerWithFacts,
  compareProviderWithLedger,
  compareSeenWithLedger,
  compareWallets,
  readGenerations,
  selectFacts,
} from './kill-accounts.ts';
import { countAnswers, type Load, startLoad } from './kill-load.ts';
import { type KillOrganization, UNLIMITED } from './kill-world.ts';
import { HUB_ADDRESS, inOwnNetwork, Machine, missingForMachines, openToMachines } from './machine-network.ts';
import { makeNextVersion } from './next-version.ts';

const HERE = fileURLToPath(new URL('../..', import.meta.url));
const [POSTGRES_PORT, CLICKHOUSE_PORT, PROVIDER_PORT, PORT] = [5432, 8123, 9000, 8080];
const HOUR_MS = 3_600_000;
const STUCK_MS = 120_000;
const UNSHIPPED_MS = 3_000;
/** jobs/tasks/compare-facts.ts: what has ended later may be under way. */
const SETTLING_MS = 62_000;
const PLAIN = { ...UNLIMITED, clients: 3, delayMsMax: 3 } as const;
const THIN_PICO = 200_000_000_000n;
const ORGANIZATIONS: readonly KillOrganization[] = [
  { ...PLAIN, slug: 'acme', key: KEYS.acme, creditPico: OPENING_CREDIT_PICO },
  { ...PLAIN, slug: 'calm', key: limitedKey('calm') },
  { ...PLAIN, clients: 1, slug: 'thin', key: limitedKey('thin'), creditPico: THIN_PICO },
  { ...PLAIN, clients: 1, slug: 'rated', key: limitedKey('rated'), requestsPerMinute: 60 },
];
/** How a request can end whose machine reaches neither its client nor its provider. */
const CUT_OFF: ReadonlySet<string> = new Set([
  'aborted_before_first_byte',
  'aborted_mid_stream',
  'connect_failed',
  'no_reply',
  'cut_mid_stream',
  'usage_then_cut',
]);
/** Nothing limits these: every refusal of theirs is a false one. */
const ROOMY = new Set(['acme', 'calm']);

interface Node {
  readonly machine: Machine;
  readonly dataDir: string;
  readonly supervisor: ChildProcess;
  readonly url: string;
  output: string;
}

export interface MachinesReport {
  readonly requests: number;
  readonly generations: number;
  /** What clients saw in each phase, by machine: answers of organizations with room, then of the others. */
  readonly phases: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, number>>>>>>;
  /** Of the machine that is gone: what only its disk knew. */
  readonly lostWithDisk: number;
  /** Requests whose clients were cut off with their machine. */
  readonly left: number;
  readonly problems: readonly string[];
}

export async function runMachines(options: {
  seconds: number;
  seed: number;
  /** Two checkouts; null: the machines keep this one. */
  upgrade: { readonly from: string; readonly to: string } | null;
  print: (line: string) => void;
}): Promise<MachinesReport> {
  const { seconds, seed, upgrade, print } = options;
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-machines-'));
  const undo: (() => unknown)[] = [() => removeInstallation(join(directory, 'hub'))];
  try {
    const provider = await startSimulatedProvider();
    undo.push(() => provider.stop());
    const postgres = await startEmbeddedPostgres({ dataDir: join(directory, 'hub'), log: silentLog });
    undo.push(() => postgres.stop());
    const ledger = openLedgerView(postgres.url);
    undo.push(() => ledger.close());
    const engine = await openEmbeddedClickHouse({ directory: join(directory, 'facts'), clock: systemClock });
    const clickhouse = await startClickHouseServer(engine);
    undo.push(() => clickhouse.close());
    const database = new URL(postgres.url.replace('@/', '@localhost/'));
    const socket = `${database.searchParams.get('host')}/.s.PGSQL.5432`;
    const servers = [
      await openToMachines(POSTGRES_PORT, socket),
      await openToMachines(CLICKHOUSE_PORT, at(clickhouse.url)),
      await openToMachines(PROVIDER_PORT, at(provider.url)),
    ];
    undo.push(() => servers.map((server) => server.close()));

    const env = {
      DATABASE_URL: `postgresql://${database.username}:${database.password}@${HUB_ADDRESS}:${POSTGRES_PORT}${database.pathname}?sslmode=disable`,
      CLICKHOUSE_URL: `http://${HUB_ADDRESS}:${CLICKHOUSE_PORT}`,
      MASTER_KEY: randomBytes(32).toString('base64'),
      DELEGATION_KEY: randomBytes(32).toString('base64'),
      ADMIN_TOKEN: randomBytes(32).toString('base64'),
    };
    const file = join(directory, 'tollgate.yaml');
    writeFileSync(file, configuration(`http://${HUB_ADDRESS}:${PROVIDER_PORT}`));
    const nodes: Node[] = [];
    const startOn = async (number: number, checkout: string, machine?: Machine): Promise<void> => {
      const clockAheadMs = number === 1 ? HOUR_MS : 0;
      const parts = { checkout, directory, file, env, clockAheadMs };
      nodes[number - 1] = await startNode(machine ?? (await Machine.boot(number)), parts);
      print(`machine-${number} serves`);
    };
    undo.push(async () => {
      for (const node of nodes) await endNode(node);
    });
    for (const number of [1, 2, 3]) await startOn(number, upgrade?.from ?? HERE);
    const [, second, third] = nodes as [Node, Node, Node];

    const loads = nodes.map(({ url }, index) =>
      startLoad({ url, seed: seed * 10 + index, organizations: ORGANIZATIONS, cloaks: new Map() }),
    );
    const phases: Record<string, Record<string, Record<string, number>>> = {};
    const phase = async (name: string, ofSeconds: number, work?: Promise<void>): Promise<void> => {
      const before = loads.map(({ seen }) => seen.length);
      await work;
      await pause(ofSeconds * 1_000);
      phases[name] = Object.fromEntries(
        loads.map(({ seen }, index) => [nodes[index]?.machine.name, countAnswers(seen.slice(before[index]), ROOMY)]),
      );
      print(`${name}: ${JSON.stringify(phases[name])}`);
    };
    await phase('all is well', seconds);
    const setAside: string[] = [];
    let lastSure = Number.POSITIVE_INFINITY;
    if (upgrade !== null) {
      for (const [index, { machine, supervisor, dataDir }] of [...nodes].entries()) {
        const becomesNew = (async () => {
          if (index === 2) killAll(supervisor);
          else supervisor.kill('SIGTERM');
          if (supervisor.exitCode === null && supervisor.signalCode === null) await once(supervisor, 'exit');
          await startOn(index + 1, upgrade.to, machine);
        })();
        await phase(`${machine.name} becomes new`, seconds, becomesNew);
        if (existsSync(join(dataDir, 'spool/quarantine'))) setAside.push(`${machine.name} set records aside`);
      }
      await phase('all are new', seconds);
    } else {
      second.machine.cut([POSTGRES_PORT, CLICKHOUSE_PORT]);
      await phase('machine-2 without databases', seconds);
      second.machine.heal();
      await phase('machine-2 has them again', seconds);
      second.machine.cut();
      await phase('machine-2 cut off', seconds);
      second.machine.heal();
      await phase('machine-2 back', seconds);

      // What a spool has and Postgres does not is normally less than a second of it.
      lastSure = (loads[2] as Load).seen.length;
      await pause(UNSHIPPED_MS);
      await untilPosted(ledger, (loads[2] as Load).seen.slice(0, lastSure));
      await killForGood(third);
      await phase('machine-3 gone for ever', seconds);
      const gaveUp = await giveUp(third, { ...env, DATA_DIR: nodes[0]?.dataDir as string });
      print(gaveUp.join('\n'));
      await phase('its epochs given up', seconds);
    }
    await Promise.all(loads.map((load) => load.stop()));

    const seen = loads.flatMap((load) => load.seen);
    await untilCallsEnd(provider);
    await waitFor(
      'everything to be posted',
      async () => {
        const [row] = await ledger.query(
          "SELECT count(*)::int AS pending FROM generations WHERE billing_status = 'pending'",
        );
        return Number(row?.pending);
      },
      (pending) => pending === 0,
      STUCK_MS,
    ).catch((fault: unknown) => process.stderr.write(`${String(fault)}\n`));
    // Facts of what ended a minute ago are compared with the ledger, and what is missing is made from it.
    await pause(SETTLING_MS);
    const reconciled = await runCommand(['reconcile'], { ...process.env, ...env, DATA_DIR: nodes[0]?.dataDir });
    const generations = await readGenerations(ledger);
    const rowOf = new Map(generations.map((row) => [row.client_request_id, row]));
    // What only the lost disk knew: of the third machine, of its last seconds.
    const lost = (loads[2] as Load).seen.slice(lastSure).filter(({ clientRequestId }) => {
      const row = rowOf.get(clientRequestId);
      return row === undefined || row.outcome === 'process_killed';
    });
    // As it looked from the second machine: their clients left, or the provider was not there.
    const left = (loads[1] as Load).seen.filter(
      ({ complete, clientRequestId }) => !complete && CUT_OFF.has(rowOf.get(clientRequestId)?.outcome ?? ''),
    );
    const lostHashes = new Set(lost.map((one) => one.requestSha256));
    const set = new Set([...lost, ...left]);
    const hashes = new Set([...set].map((one) => one.requestSha256));
    const ids = new Set([...set].map((one) => one.clientRequestId));
    const kept = seen.filter((one) => !set.has(one));
    const compared = compareProviderWithLedger(
      { starts: provider.starts().filter((start) => !hashes.has(start.requestSha256)), ends: provider.ends() },
      kept,
      generations.filter((row) => !ids.has(row.client_request_id)),
    );
    const facts = await selectFacts((query) => selectRows(engine, query));
    const problems = [
      ...compareSeenWithLedger(kept, generations),
      ...compared.problems,
      ...(await compareWallets(ledger, ORGANIZATIONS, generations)),
      ...(await checkBooks(postgres.url)),
      ...compareLedgerWithFacts(generations, facts.rows),
      ...falseRefusals(phases),
      ...setAside,
      ...(reconciled.exitCode === 0 ? [] : [`tollgate reconcile: ${reconciled.output}`]),
    ];
    return {
      requests: seen.length,
      generations: generations.length,
      phases,
      lostWithDisk: provider.starts().filter((start) => lostHashes.has(start.requestSha256)).length,
      left: left.length,
      problems,
    };
  } finally {
    await endAll(undo);
    rmSync(directory, { recursive: true, force: true });
  }
}

function at(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

function configuration(upstreamUrl: string): string {
  return (
    testConfiguration({ upstreamUrl }) +
    ORGANIZATIONS.filter(({ slug }) => slug !== 'acme')
      .map(({ slug, creditPico, requestsPerMinute }) =>
        renderOrganization({
          slug,
          credit: creditPico === null ? null : decimalOfPico(creditPico),
          limits: requestsPerMinute === null ? [] : [`{ kind: requests_per_minute, limit: ${requestsPerMinute} }`],
        }),
      )
      .join('')
  );
}

async function startNode(
  machine: Machine,
  parts: {
    readonly checkout: string;
    readonly directory: string;
    readonly file: string;
    readonly env: Readonly<Record<string, string>>;
    readonly clockAheadMs: number;
  },
): Promise<Node> {
  const dataDir = join(parts.directory, machine.name);
  const [program, ...words] = machine.command(
    process.execPath,
    join(parts.checkout, 'bin/tollgate.js'),
    'start',
    '--config',
    parts.file,
  );
  const supervisor = spawn(program, words, {
    env: {
      ...process.env,
      ...parts.env,
      DATA_DIR: dataDir,
      HOST: '0.0.0.0',
      PORT: String(PORT),
      ADMIN_PORT: '8081',
      GATEWAY_PROCESSES: '1',
      LOG_LEVEL: 'warn',
      CONSOLE: 'off',
      ...(parts.clockAheadMs === 0 ? {} : { NODE_OPTIONS: `--import=${clockAhead(parts.clockAheadMs)}` }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const node: Node = { machine, dataDir, supervisor, url: `http://${machine.address}:${PORT}`, output: '' };
  for (const stream of [supervisor.stdout, supervisor.stderr])
    stream.on('data', (chunk: Buffer) => {
      node.output += chunk.toString();
      if (process.env['TOLLGATE_TEST_OUTPUT'] !== undefined) process.stderr.write(chunk);
    });
  await waitFor(
    `${machine.name} to be ready`,
    async () => {
      if (supervisor.exitCode !== null) throw new Error(node.output);
      return (await httpCall(`${node.url}/readyz`).catch(() => null))?.status ?? node.output.slice(-500);
    },
    (status) => status === 200,
    STUCK_MS,
  );
  return node;
}

/** A module that sets the clock of the process that imports it. */
function clockAhead(ms: number): string {
  const text =
    `const RealDate = Date; const now = () => RealDate.now() + ${ms};` +
    'globalThis.Date = new Proxy(RealDate, {' +
    'construct: (target, given) => new target(...(given.length === 0 ? [now()] : given)),' +
    "get: (target, name) => name === 'now' ? now : Reflect.get(target, name) });";
  return `data:text/javascript,${encodeURIComponent(text)}`;
}

/** Everything on it dies at once, and its disk with it. */
async function killForGood({ supervisor, dataDir }: Node): Promise<void> {
  killAll(supervisor);
  await pause(500);
  rmSync(dataDir, { recursive: true, force: true });
}

function killAll(supervisor: ChildProcess): void {
  const pid = supervisor.pid as number;
  for (const doomed of [...listDescendants(pid).map((child) => child.pid), pid]) process.kill(doomed, 'SIGKILL');
}

/** As the page on three machines says, from another machine. */
async function giveUp(node: Node, env: NodeJS.ProcessEnv): Promise<string[]> {
  const said: string[] = [];
  const { output } = await runCommand(['epoch', 'list'], { ...process.env, ...env });
  for (const line of output.split('\n').filter((one) => one.includes(node.machine.name))) {
    const [epoch = ''] = line.trim().split(/\s+/);
    const args = ['epoch', 'abandon', epoch, '--machine', node.machine.name, '--force'];
    said.push(line, (await runCommand(args, { ...process.env, ...env })).output.trim());
  }
  return said;
}

async function endNode(node: Node): Promise<void> {
  node.machine.heal();
  if (node.supervisor.exitCode === null && node.supervisor.signalCode === null) {
    const children = listDescendants(node.supervisor.pid as number);
    node.supervisor.kill('SIGTERM');
    await Promise.race([once(node.supervisor, 'exit'), pause(60_000)]);
    for (const child of children) if (isRunning(child)) process.kill(child.pid, 'SIGKILL');
  }
  node.machine.shutDown();
}

/** Machines that are neither cut off nor gone serve whoever has room. */
function falseRefusals(phases: MachinesReport['phases']): string[] {
  return Object.entries(phases).flatMap(([name, machines]) =>
    Object.entries(machines).flatMap(([machine, answers]) => {
      if (name.startsWith(machine) || (machine === 'machine-3' && name === 'its epochs given up')) return [];
      const refused = Object.keys(answers).filter((answer) => !answer.startsWith('limited') && answer !== '200');
      const silent = answers['200'] === undefined ? [`${name}: ${machine} served nobody`] : [];
      return [...silent, ...refused.map((answer) => `${name}: ${machine} answered ${answers[answer]} times ${answer}`)];
    }),
  );
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '20' },
      seed: { type: 'string', default: '1' },
      upgrade: { type: 'boolean', default: false },
      from: { type: 'string' },
    },
  });
  const missing = missingForMachines();
  if (missing !== null) {
    process.stderr.write(`${missing}\n`);
    process.exit(1);
  }
  const code = await inOwnNetwork();
  if (code !== null) process.exit(code);
  const next = mkdtempSync(join(tmpdir(), 'tollgate-next-version-'));
  if (values.upgrade) makeNextVersion(HERE, next);
  const older = values.from === undefined ? null : { from: resolve(values.from), to: HERE };
  const report = await runMachines({
    seconds: Number(values.seconds),
    seed: Number(values.seed),
    upgrade: values.upgrade ? { from: HERE, to: next } : older,
    print: (line) => process.stdout.write(`${line}\n`),
  }).finally(() => rmSync(next, { recursive: true, force: true }));
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  process.exit(report.problems.length === 0 ? 0 : 1);
}
