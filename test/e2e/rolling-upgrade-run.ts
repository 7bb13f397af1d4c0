// A rolling upgrade under load, on one machine: jobs first, then the gateways one by one, each by `tollgate jobs` and
// `tollgate gateway`. On the way jobs and gateways of both versions are killed, the order is tried the wrong way round,
// and jobs goes back once. In the end what clients saw, the provider's log, the ledger, the facts and the reports agree
// to the digit. From this checkout to a version made of it that records a field more:
// `node test/e2e/rolling-upgrade-run.ts --seconds 10 --seed 1`; from another checkout to this one: `--from ../other`.

import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../src/platform/clock.ts';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { openEmbeddedClickHouse } from '../../src/storage/clickhouse/embedded-clickhouse.ts';
import { startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { startClickHouseServer } from '../support/clickhouse-server.ts';
import { endAll } from '../support/end-all.ts';
import { findFreePort } from '../support/free-port.ts';
import { httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { limitedKey, renderOrganization } from '../support/limited-organizations.ts';
import { readMetrics } from '../support/metric-values.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import { silentLog } from '../support/silent-log.ts';
import { startSimulatedProvider } from '../support/simulated-provider.ts';
import { decimalOfPico, KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';
import { compareLedgerWithFacts, type GenerationRow, selectFacts } from './kill-accounts.ts';
import { countAnswers, startLoad } from './kill-load.ts';
import { type KillOrganization, UNLIMITED } from './kill-world.ts';
import { makeNextVersion, NEXT_COLUMN, standsNewerOnes } from './next-version.ts';
import { settleAccounts } from './settle-accounts.ts';
import { VersionProcess } from './version-process.ts';

const PLAIN = { ...UNLIMITED, clients: 3, delayMsMax: 3 } as const;
const THIN_PICO = 100_000_000_000n;
const ORGANIZATIONS: readonly KillOrganization[] = [
  { ...PLAIN, clients: 6, slug: 'acme', key: KEYS.acme, creditPico: OPENING_CREDIT_PICO },
  { ...PLAIN, slug: 'calm', key: limitedKey('calm') },
  { ...PLAIN, clients: 1, slug: 'thin', key: limitedKey('thin'), creditPico: THIN_PICO },
  { ...PLAIN, clients: 1, slug: 'rated', key: limitedKey('rated'), requestsPerMinute: 60 },
];
/** Nothing limits these: every refusal of theirs is a false one. */
const ROOMY = new Set(['acme', 'calm']);
const GATEWAYS = 3;
const CUT_AT_END_MAX = 5;
/** Into the start of jobs, where it migrates. */
const KILL_JOBS_AFTER_MS_MAX = 1_500;

export interface UpgradeReport {
  readonly from: string;
  readonly to: string;
  readonly requests: number;
  readonly generations: number;
  /** Of them those that the next version's gateways recorded. */
  readonly ofNextVersion: number;
  /** What clients saw in each phase. */
  readonly phases: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly notes: readonly string[];
  readonly problems: readonly string[];
}

interface Options {
  readonly from: string;
  readonly to: string;
  /** `to` was made of `from` (next-version.ts). */
  readonly isMade: boolean;
  readonly seconds: number;
  readonly seed: number;
  readonly print: (line: string) => void;
}

/** The databases and the provider of a run. */
async function openWorld(directory: string, undo: (() => unknown)[]) {
  const provider = await startSimulatedProvider();
  undo.push(() => provider.stop());
  undo.push(() => removeInstallation(join(directory, 'hub')));
  const postgres = await startEmbeddedPostgres({ dataDir: join(directory, 'hub'), log: silentLog });
  undo.push(() => postgres.stop());
  const engine = await openEmbeddedClickHouse({ directory: join(directory, 'facts'), clock: systemClock });
  undo.push(() => engine.close());
  const clickhouse = await startClickHouseServer(engine);
  undo.push(() => clickhouse.close());
  const file = join(directory, 'tollgate.yaml');
  writeFileSync(file, configuration(provider.url));
  const port = await findFreePort();
  const env = {
    DATABASE_URL: postgres.url,
    CLICKHOUSE_URL: clickhouse.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    DELEGATION_KEY: randomBytes(32).toString('base64'),
    ADMIN_TOKEN: randomBytes(32).toString('base64'),
    DATA_DIR: join(directory, 'data'),
    HOST: '127.0.0.1',
    PORT: String(port),
    GATEWAY_PROCESSES: '1',
    DRAIN_SECONDS: '10',
    // A checkout need not have built it.
    CONSOLE: 'off',
    LOG_LEVEL: 'warn',
  };
  return { provider, postgres, engine, file, env, url: `http://127.0.0.1:${port}` };
}

export async function runRollingUpgrade({ from, to, isMade, seconds, seed, print }: Options): Promise<UpgradeReport> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-upgrade-'));
  const undo: (() => unknown)[] = [];
  const problems: string[] = [];
  const notes: string[] = [];
  const note = (line: string): void => {
    notes.push(line);
    print(line);
  };
  try {
    const { provider, postgres, engine, file, env, url } = await openWorld(directory, undo);
    const running = new Set<VersionProcess>();
    undo.push(() => Promise.all([...running].map((one) => one.end('SIGKILL'))));
    const ports = await Promise.all(Array.from({ length: GATEWAYS + 2 }, findFreePort));
    const launch = (checkout: string, slot: number, args?: readonly string[]): VersionProcess => {
      const started = new VersionProcess({
        checkout,
        args: args ?? [slot === 0 ? 'jobs' : 'gateway'],
        env,
        adminPort: ports[slot] as number,
      });
      running.add(started);
      void started.ended().then(() => running.delete(started));
      return started;
    };
    const start = (checkout: string, slot: number): Promise<VersionProcess> => launch(checkout, slot).becomeReady();

    // The database of the version before, with its configuration.
    const first = await launch(from, 0, ['start', '--config', file]).becomeReady();
    await first.end();
    const slots = await Promise.all(Array.from({ length: GATEWAYS + 1 }, (_, slot) => start(from, slot)));
    const replace = async (slot: number, checkout: string, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM') => {
      await slots[slot]?.end(signal);
      slots[slot] = await start(checkout, slot);
    };

    const load = startLoad({ url, seed, organizations: ORGANIZATIONS, cloaks: new Map() });
    const phases: Record<string, Record<string, number>> = {};
    const phase = async (name: string, work: () => Promise<unknown>): Promise<void> => {
      const before = load.seen.length;
      await work();
      await pause(seconds * 1_000);
      phases[name] = countAnswers(load.seen.slice(before), ROOMY);
      print(`${name}: ${JSON.stringify(phases[name])}`);
    };
    const standsNewer = standsNewerOnes(from);

    await phase('all of the version before', async () => undefined);
    await phase('a gateway of the new version comes before jobs', async () => {
      const early = launch(to, GATEWAYS + 1);
      const serves = await early.serves();
      await early.end();
      if (serves || !/start jobs of this version first/.test(early.output))
        problems.push(`a gateway before jobs said: ${early.output.slice(-500)}`);
    });
    await phase('jobs is new, killed as it starts, and started again', async () => {
      await slots[0]?.end();
      const killed = launch(to, 0);
      await pause((seed * 389) % KILL_JOBS_AFTER_MS_MAX);
      await killed.end('SIGKILL');
      slots[0] = await start(to, 0);
    });
    await phase('a gateway of the version before is killed and comes back', async () => {
      await slots[1]?.end('SIGKILL');
      const back = launch(from, 1);
      if (await back.serves()) slots[1] = back;
      else if (standsNewer) problems.push(`it does not come back: ${back.output.slice(-500)}`);
      else {
        note('a gateway of the version before that dies does not come back beside the newer schema: the new one does');
        slots[1] = await start(to, 1);
      }
    });
    await phase('the first gateway is new', () => replace(1, to));
    await phase('jobs is killed while the second gateway becomes new', async () => {
      await Promise.all([replace(2, to), replace(0, to, 'SIGKILL')]);
    });
    if (standsNewer)
      await phase('jobs goes back to the version before', async () => {
        await replace(0, from);
        const { adminUrl } = slots[0] as VersionProcess;
        const unreadable = await waitFor(
          'jobs of the version before to see the spools',
          async () => (await readMetrics(adminUrl))('tollgate_spool_unreadable'),
          (count) => count >= 2,
          60_000,
        );
        note(`jobs of the version before leaves ${unreadable} spools of the new form alone`);
      });
    if (standsNewer) await phase('jobs is new again', () => replace(0, to));
    await phase('the third gateway is killed and comes back new', () => replace(3, to, 'SIGKILL'));
    await phase('all of the new version', async () => undefined);
    await load.stop();

    const ledger = openLedgerView(postgres.url);
    undo.push(() => ledger.close());
    const settled = await settleAccounts({
      ledger,
      postgresUrl: postgres.url,
      provider,
      seen: load.seen,
      organizations: ORGANIZATIONS,
    });
    const { generations } = settled;
    const facts = await waitFor(
      'the facts',
      () => selectFacts((query) => selectRows(engine, query)),
      ({ rows }) => compareLedgerWithFacts(generations, rows).length === 0,
      120_000,
    ).catch(() => selectFacts((query) => selectRows(engine, query)));
    const reported = await reportedPico(url, KEYS.acme);
    const charged = chargedOf(generations, 'acme');
    if (reported !== charged) problems.push(`the report of acme says ${reported}, the ledger ${charged}`);
    const noted = isMade ? await compareNotes(ledger, engine) : null;
    for (const slot of [3, 2, 1, 0]) await slots[slot]?.end();
    const spool = join(env.DATA_DIR, 'spool');
    if (existsSync(join(spool, 'quarantine'))) problems.push('records were set aside as damaged');
    return {
      from,
      to,
      requests: load.seen.length,
      generations: generations.length,
      ofNextVersion: noted?.count ?? 0,
      phases,
      notes,
      problems: [
        ...problems,
        ...settled.problems,
        ...compareLedgerWithFacts(generations, facts.rows),
        ...(noted?.problems ?? []),
        ...falseRefusals(phases),
      ],
    };
  } finally {
    await endAll(undo);
    rmSync(directory, { recursive: true, force: true });
  }
}

function configuration(upstreamUrl: string): string {
  const others = ORGANIZATIONS.filter(({ slug }) => slug !== 'acme').map(({ slug, creditPico, requestsPerMinute }) =>
    renderOrganization({
      slug,
      credit: creditPico === null ? null : decimalOfPico(creditPico),
      limits: requestsPerMinute === null ? [] : [`{ kind: requests_per_minute, limit: ${requestsPerMinute} }`],
    }),
  );
  return testConfiguration({ upstreamUrl }) + others.join('');
}

function chargedOf(generations: readonly GenerationRow[], organization: string): bigint {
  return generations
    .filter((row) => row.organization === organization)
    .reduce((sum, row) => sum + BigInt(row.charge ?? 0), 0n);
}

/** What the report of a key's holder says that was spent, of all time that it shows. */
async function reportedPico(url: string, key: string): Promise<bigint> {
  const { status, body } = await httpCall(`${url}/v1/usage/me`, { headers: { authorization: `Bearer ${key}` } });
  const { data } = JSON.parse(body.toString()) as { data?: { cost: string } };
  const [, dollars, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(data?.cost ?? '') ?? [];
  if (dollars === undefined) throw new Error(`the report is ${status}: ${body.toString()}`);
  return BigInt(dollars + fraction.padEnd(12, '0').slice(0, 12));
}

/** The new column is in the facts as it is in the ledger. */
async function compareNotes(ledger: LedgerView, engine: Parameters<typeof selectRows>[0]) {
  const rows = await ledger.query(
    `SELECT id::text AS id FROM generations WHERE ${NEXT_COLUMN} IS NOT NULL ORDER BY id`,
  );
  const facts = await selectRows<{ id: string }>(
    engine,
    `SELECT toString(id) AS id FROM request_facts FINAL WHERE ${NEXT_COLUMN} IS NOT NULL ORDER BY id`,
  );
  const inFacts = new Set(facts.map(({ id }) => id));
  const missing = rows.filter(({ id }) => !inFacts.has(String(id)));
  const problems = [
    ...(rows.length === 0 ? ['no execution has the new column'] : []),
    ...(missing.length === 0 && rows.length === facts.length
      ? []
      : [`the ledger has the new column of ${rows.length} executions, the facts of ${facts.length}`]),
  ];
  return { count: rows.length, problems };
}

/**
 * Whoever has room is served. What a process that is killed had open is cut; of one that ends in its own time at most
 * what comes to it in the instant in which it closes.
 */
function falseRefusals(phases: UpgradeReport['phases']): string[] {
  return Object.entries(phases).flatMap(([name, answers]) => {
    const cutMax = /gateway .*killed/.test(name) ? Number.POSITIVE_INFINITY : CUT_AT_END_MAX;
    const wrong = Object.entries(answers).filter(
      ([answer, count]) =>
        !answer.startsWith('limited: ') && answer !== '200' && !(answer === 'no answer' && count <= cutMax),
    );
    const silent = answers['200'] === undefined ? [`${name}: nobody was served`] : [];
    return [...silent, ...wrong.map(([answer, count]) => `${name}: ${count} times ${answer}`)];
  });
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      from: { type: 'string' },
      seconds: { type: 'string', default: '10' },
      seed: { type: 'string', default: '1' },
    },
  });
  const here = join(import.meta.dirname, '../..');
  const next = mkdtempSync(join(tmpdir(), 'tollgate-next-version-'));
  if (values.from === undefined) makeNextVersion(here, next);
  try {
    const report = await runRollingUpgrade({
      ...(values.from === undefined ? { from: here, to: next } : { from: resolve(values.from), to: here }),
      isMade: values.from === undefined,
      seconds: Number(values.seconds),
      seed: Number(values.seed),
      print: (line) => process.stdout.write(`${line}\n`),
    });
    process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
    process.exitCode = report.problems.length === 0 ? 0 : 1;
  } finally {
    rmSync(next, { recursive: true, force: true });
  }
  process.exit();
}
