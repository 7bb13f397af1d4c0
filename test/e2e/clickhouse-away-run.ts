// ClickHouse is away for an hour under load, and jobs and a gateway die meanwhile: everybody is served, reports are
// refused and say so, what has no facts waits in the spool; afterwards the backlog drains and all accounts agree. By
// hand: `node test/e2e/clickhouse-away-run.ts --minutes 60 --rate 60 --seed 1`.

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { type ClickHouseServer, startClickHouseServer } from '../support/clickhouse-server.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { ADMIN_TOKEN, ask } from '../support/identity-world.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { limitedKey, renderOrganization } from '../support/limited-organizations.ts';
import { readMetrics } from '../support/metric-values.ts';
import { residentBytes } from '../support/process-table.ts';
import { untilShipped } from '../support/shipped-spool.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { decimalOfPico, KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';
import {
  askWhileAway,
  openReportQuestions,
  type RefusedReports,
  type ReportQuestions,
  waitForReports,
} from './ask-reports.ts';
import { compareLedgerWithFacts, type GenerationRow, selectFacts } from './kill-accounts.ts';
import { UNLIMITED } from './kill-world.ts';
import { settleAccounts } from './settle-accounts.ts';
import { type Answers, type SteadyAsker, SteadyLoad, summarizeAnswers } from './steady-load.ts';

const GATEWAY_PROCESSES = 2;
const WARM_SECONDS = 4;
const BACK_SECONDS = 3;
/** How long anything may take on a busy machine before it counts as stuck; an hour's backlog may take longer. */
const STUCK_MS = 120_000;
const DRAIN_STUCK_MS = 900_000;
const PROBLEMS_SHOWN = 40;
const LAG = 'tollgate_spool_lag_bytes{destination="clickhouse"}';

export interface ClickHouseAwayOptions {
  readonly minutes: number;
  readonly rate: number;
  readonly seed: number;
  readonly print?: (line: string) => void;
}

/** Of one moment. */
interface Sample {
  readonly minute: number;
  /** Requests with a whole answer since the beginning. */
  readonly served: number;
  /** What its gauge says of facts that wait; NaN while no jobs process does. */
  readonly lagBytes: number;
  /** All of the spool's directory, the reserve of each process included, and the segments in it. */
  readonly spoolBytes: number;
  readonly segments: number;
  readonly jobsMegabytes: number;
  readonly gatewayMegabytes: readonly number[];
}

export interface ClickHouseAwayReport {
  readonly seed: number;
  readonly requests: number;
  /** As in `SteadyLoad`. */
  readonly behindMs: number;
  readonly warm: Readonly<Record<string, Answers>>;
  readonly away: Readonly<Record<string, Answers>>;
  /** Its times are those of a client that has the ClickHouse engine in its own process: each insert stops it. */
  readonly back: Readonly<Record<string, Answers>>;
  /** Requests that were cut by the death of their gateway. */
  readonly cut: number;
  readonly refusedReports: RefusedReports;
  readonly samples: readonly Sample[];
  /** From when ClickHouse was back. */
  readonly backMs: {
    /** Each report is answered. */
    readonly reports: Readonly<Record<string, number>>;
    /** The first facts are in, and all that was posted until then. */
    readonly firstFacts: number;
    readonly backlog: number;
    /** The load has ended, and there is nothing without facts any more; nor a segment but those that are written to. */
    readonly lagZero: number;
    readonly segmentsDeleted: number;
  };
  /**
   * Facts that came with the backlog; their rate between the first and the last of them, null where one insert took
   * all.
   */
  readonly drain: { readonly facts: number; readonly factsPerSecond: number | null };
  readonly generations: number;
  readonly facts: number;
  readonly picoUsd: {
    readonly provider: bigint;
    readonly ledger: bigint;
    readonly facts: bigint;
    readonly charged: bigint;
  };
  readonly unpaidReplies: number;
  readonly problemCount: number;
  readonly problems: readonly string[];
}

type Phase = 'warm' | 'away' | 'back';

const PLAIN = { ...UNLIMITED, clients: 0, delayMsMax: 2 } as const;
const ASKERS: readonly SteadyAsker[] = [
  { ...PLAIN, slug: 'acme', key: KEYS.acme, creditPico: OPENING_CREDIT_PICO, share: 0.6 },
  { ...PLAIN, slug: 'calm', key: limitedKey('calm'), creditPico: 10_000n * 10n ** 12n, share: 0.2 },
  { ...PLAIN, slug: 'free', key: KEYS.free, creditPico: null, share: 0.2 },
];

interface Scene {
  readonly options: ClickHouseAwayOptions;
  readonly engine: TestClickHouse;
  readonly clickhouse: ClickHouseServer;
  readonly provider: SimulatedProvider;
  readonly tollgate: Tollgate;
  readonly ledger: LedgerView;
  readonly load: SteadyLoad<Phase>;
  readonly questions: ReportQuestions;
}

export async function runClickHouseAway(options: ClickHouseAwayOptions): Promise<ClickHouseAwayReport> {
  const engine = await openTestClickHouse();
  const clickhouse = await startClickHouseServer(engine.client);
  const provider = await startSimulatedProvider();
  let tollgate: Tollgate | null = null;
  let ledger: LedgerView | null = null;
  let load: SteadyLoad<Phase> | null = null;
  try {
    const configurationYaml =
      testConfiguration({ upstreamUrl: provider.url }) + renderOrganization({ slug: 'calm', credit: '10000' });
    tollgate = await startTollgate({
      configurationYaml,
      gatewayProcesses: GATEWAY_PROCESSES,
      env: { CLICKHOUSE_URL: clickhouse.url, ADMIN_TOKEN },
    });
    ledger = openLedgerView(tollgate.postgresUrl);
    load = new SteadyLoad<Phase>(tollgate.url, options);
    const questions = await openReportQuestions(tollgate.url);
    return await play({ options, engine, clickhouse, provider, tollgate, ledger, load, questions });
  } finally {
    await load?.end();
    await ledger?.close();
    await tollgate?.stop();
    await provider.stop();
    await clickhouse.close();
    await engine.close();
  }
}

async function play(scene: Scene): Promise<ClickHouseAwayReport> {
  const { options, engine, provider, tollgate, ledger, load } = scene;
  load.spread('warm', ASKERS);
  await load.run('warm', ASKERS, WARM_SECONDS);
  const away = await serveWhileAway(scene);
  const back = await comeBack(scene);
  const seen = load.sent.map(({ response }) => response);
  const settled = await settleAccounts({
    ledger,
    postgresUrl: tollgate.postgresUrl,
    provider,
    seen,
    organizations: ASKERS,
  });
  await untilShipped(tollgate, ledger);
  const backMs = { ...back.backMs, ...(await spoolToBeEmpty(scene, back.atMs)) };
  const facts = await selectFacts((query) => selectRows(engine.client, query));
  const { generations } = settled;
  const picoUsd = {
    provider: settled.servedPico,
    ledger: ratedPico(generations),
    facts: facts.ratedPico,
    charged: settled.chargedPico,
  };
  const isSameSum = picoUsd.provider === picoUsd.ledger && picoUsd.ledger === picoUsd.facts;
  const problems = [
    ...away.problems,
    ...checkServed(load, away.death),
    ...settled.problems,
    ...compareLedgerWithFacts(generations, facts.rows),
    ...(isSameSum
      ? []
      : [
          `the provider served ${picoUsd.provider} pico-dollars, the ledger rated ${picoUsd.ledger}, the ` +
            `facts ${picoUsd.facts}`,
        ]),
    ...(await compareUsage(scene, generations)),
  ];
  return {
    seed: options.seed,
    requests: load.sent.length,
    behindMs: load.behindMs,
    warm: summarizeAnswers(load.sent, 'warm', ASKERS),
    away: summarizeAnswers(load.sent, 'away', ASKERS),
    back: summarizeAnswers(load.sent, 'back', ASKERS),
    cut: load.sent.filter(({ response }) => !response.complete).length,
    refusedReports: away.refused,
    samples: away.samples,
    backMs,
    drain: back.drain,
    generations: generations.length,
    facts: facts.rows.length,
    picoUsd,
    unpaidReplies: settled.unpaidReplies,
    problemCount: problems.length,
    problems: problems.slice(0, PROBLEMS_SHOWN),
  };
}

/** When the gateway was killed, and when it had a successor: who was cut was cut in between. */
interface Death {
  readonly killedAtMs: number;
  readonly replacedAtMs: number;
}

async function serveWhileAway(scene: Scene) {
  const { options, clickhouse, engine, load, questions, tollgate } = scene;
  const seconds = options.minutes * 60;
  await clickhouse.stopListening();
  // What it had begun it may still have ended.
  await pause(500);
  const factsBefore = await countFacts(engine);
  const asking = askWhileAway(tollgate.url, questions);
  const watching = watchMinutes(scene);
  try {
    const [death] = await Promise.all([killMeanwhile(scene, seconds), load.run('away', ASKERS, seconds)]);
    const last = await takeSample(scene, options.minutes);
    const refused = await asking.stop();
    const factsAfter = await countFacts(engine);
    const problems = [...refused.problems];
    if (factsAfter !== factsBefore) problems.push(`${factsAfter - factsBefore} facts arrived where nobody listened`);
    if (!(last.lagBytes > 0)) problems.push(`the spool’s lag after ${options.minutes} minutes was ${last.lagBytes}`);
    return { death, refused, problems, samples: [...(await watching.stop()), last] };
  } finally {
    await Promise.all([asking.stop(), watching.stop()]);
  }
}

/** jobs after a third of the time, a gateway after two thirds, with requests of everybody under way. */
async function killMeanwhile({ tollgate, load }: Scene, seconds: number): Promise<Death> {
  const third = (seconds * 1_000) / 3;
  await pause(third);
  const jobs = tollgate.jobsPid();
  process.kill(jobs, 'SIGKILL');
  await waitFor(
    'jobs to be replaced',
    () => tollgate.jobsPid(),
    (pid) => pid !== 0 && pid !== jobs,
    STUCK_MS,
  );
  await pause(third);
  load.spread('away', ASKERS);
  await pause(10);
  const before = tollgate.gatewayPids();
  const killedAtMs = performance.now();
  process.kill(before[0] ?? 0, 'SIGKILL');
  await waitFor(
    'a gateway to be replaced',
    () => tollgate.gatewayPids(),
    (pids) => pids.length === GATEWAY_PROCESSES && pids.some((pid) => !before.includes(pid)),
    STUCK_MS,
  );
  const replacedAtMs = performance.now();
  await pause(Math.min(third / 4, 5_000));
  // What comes new has work, too.
  load.spread('away', ASKERS);
  return { killedAtMs, replacedAtMs };
}

/** Every whole minute but the last, which is taken when it is over. */
function watchMinutes(scene: Scene): { stop(): Promise<readonly Sample[]> } {
  const samples: Sample[] = [];
  let stopping = false;
  const startedMs = performance.now();
  const watching = (async () => {
    for (let minute = 1; minute < scene.options.minutes; minute += 1) {
      while (!stopping && performance.now() < startedMs + minute * 60_000) await pause(50);
      if (stopping) return;
      samples.push(await takeSample(scene, minute));
    }
  })();
  return {
    async stop() {
      stopping = true;
      await watching;
      return samples;
    },
  };
}

async function takeSample({ tollgate, load, options }: Scene, minute: number): Promise<Sample> {
  // jobs that has just begun, after it was killed, does not say how far it is yet.
  const valueOf = await waitFor(
    'jobs to say how far it is',
    () => readMetrics(tollgate.adminUrl),
    (value) => !Number.isNaN(value(LAG)),
    STUCK_MS,
  );
  const megabytes = (pid: number) => Math.round((residentBytes(pid) ?? Number.NaN) / 1e6);
  const sample = {
    minute,
    served: load.sent.filter(({ response }) => response.complete).length,
    lagBytes: valueOf(LAG),
    ...measureSpool(tollgate.dataDir),
    jobsMegabytes: megabytes(tollgate.jobsPid()),
    gatewayMegabytes: tollgate.gatewayPids().map(megabytes),
  };
  const spool = `lag ${sample.lagBytes} bytes, spool ${sample.spoolBytes} bytes in ${sample.segments} segments`;
  options.print?.(
    `minute ${minute}: ${sample.served} served; ${spool}; MB resident: jobs ${sample.jobsMegabytes}, ` +
      `gateways ${sample.gatewayMegabytes.join(' ')}`,
  );
  return sample;
}

function measureSpool(dataDir: string): { spoolBytes: number; segments: number } {
  const directory = join(dataDir, 'spool');
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) => ({
    name,
    // It may be gone meanwhile.
    entry: statSync(join(directory, name), { throwIfNoEntry: false }),
  }));
  return {
    spoolBytes: files.reduce((sum, { entry }) => sum + (entry?.isFile() === true ? entry.size : 0), 0),
    segments: files.filter(({ name, entry }) => entry !== undefined && name.endsWith('.spool')).length,
  };
}

/** The load goes on while the backlog drains. */
async function comeBack({ clickhouse, engine, ledger, load, questions, tollgate, options }: Scene) {
  const factsBefore = await countFacts(engine);
  const backlog = await readCursors(ledger);
  await clickhouse.listenAgain();
  const atMs = performance.now();
  const sinceBack = () => Math.round(performance.now() - atMs);
  const first = waitFor(
    'the first facts',
    () => countFacts(engine),
    (count) => count > factsBefore,
    STUCK_MS,
  ).then((count) => ({ count, ms: sinceBack() }));
  const reports = waitForReports(tollgate.url, questions);
  const drained = waitFor(
    'the backlog to be shipped',
    async () => isShipped(backlog, await readCursors(ledger)),
    Boolean,
    DRAIN_STUCK_MS,
  ).then(async () => ({
    ms: sinceBack(),
    count: await countFacts(engine),
  }));
  const all = Promise.all([first, reports, drained]);
  await Promise.all([all, load.run('back', ASKERS, all)]);
  await load.run('back', ASKERS, BACK_SECONDS);
  await load.end();
  const [firstFacts, reportsMs, end] = await all;
  const reportTimes = Object.values(reportsMs);
  const facts = end.count - factsBefore;
  const factsPerSecond =
    end.count > firstFacts.count
      ? Math.round(((end.count - firstFacts.count) * 1_000) / Math.max(1, end.ms - firstFacts.ms))
      : null;
  const speed = factsPerSecond === null ? 'in one insert' : `${factsPerSecond} a second`;
  options.print?.(
    `back: reports after ${Math.min(...reportTimes)} to ${Math.max(...reportTimes)} ms, the backlog ` +
      `after ${end.ms} ms: ${facts} facts, ${speed}`,
  );
  return {
    atMs,
    backMs: { reports: reportsMs, firstFacts: firstFacts.ms, backlog: end.ms },
    drain: { facts, factsPerSecond },
  };
}

/** Nothing without facts, no spool of the dead, and no segment but the one that each gateway writes to. */
async function spoolToBeEmpty(
  { tollgate }: Scene,
  backAtMs: number,
): Promise<{ lagZero: number; segmentsDeleted: number }> {
  const since = () => Math.round(performance.now() - backAtMs);
  await waitFor(
    'nothing to be without facts',
    async () => (await readMetrics(tollgate.adminUrl))(LAG),
    (lag) => lag === 0,
    STUCK_MS,
  );
  const lagZero = since();
  await waitFor(
    'the shipped segments to be deleted',
    () => measureSpool(tollgate.dataDir).segments,
    (count) => count <= GATEWAY_PROCESSES,
    STUCK_MS,
  );
  return { lagZero, segmentsDeleted: since() };
}

interface Cursor {
  readonly segment: string;
  readonly posted: number;
  readonly shipped: number;
}

async function readCursors(ledger: LedgerView): Promise<Cursor[]> {
  const rows = await ledger.query(
    `SELECT epoch || '/' || segment AS segment, posted_offset::text AS posted, facts_offset::text AS shipped
      FROM spool_cursors`,
  );
  return rows.map((row) => ({
    segment: String(row.segment),
    posted: Number(row.posted),
    shipped: Number(row.shipped),
  }));
}

/** Cursors that are gone were of spools that are shipped. */
function isShipped(backlog: readonly Cursor[], now: readonly Cursor[]): boolean {
  const shipped = new Map(now.map((cursor) => [cursor.segment, cursor.shipped]));
  return backlog.every(({ segment, posted }) => (shipped.get(segment) ?? posted) >= posted);
}

async function countFacts({ client }: TestClickHouse): Promise<number> {
  const [row] = await selectRows<{ facts: string }>(client, 'SELECT toString(count()) AS facts FROM request_facts');
  return Number(row?.facts);
}

/** Everybody is served whole, but for those whose gateway was killed. */
function checkServed(load: SteadyLoad<Phase>, { killedAtMs, replacedAtMs }: Death): string[] {
  return load.countProblems(({ phase, response, endedAtMs, tookMs }) => {
    const { organization, status, refusal, complete } = response;
    // A busy machine may tell a client that it is cut once there is a successor.
    const isMeanwhile = endedAtMs >= killedAtMs && endedAtMs - tookMs <= replacedAtMs;
    const isCut = (status === null || status === 200) && isMeanwhile;
    return complete || isCut ? null : `${organization}, ${phase}: ${status} ${refusal}, complete ${complete}`;
  });
}

function ratedPico(generations: readonly GenerationRow[]): bigint {
  return generations.reduce((sum, row) => sum + BigInt(row.rated_cost ?? 0), 0n);
}

/** What the reports count is what the ledger has, of the platform and of an organization. */
async function compareUsage({ tollgate, questions }: Scene, generations: readonly GenerationRow[]): Promise<string[]> {
  const compare = async (name: string, rows: readonly GenerationRow[]): Promise<string[]> => {
    const { path = '', token = '' } = questions[name] ?? {};
    const { requests, cost } = await ask(tollgate.url, token, 'GET', path);
    const spent = rows.reduce((sum, row) => sum + BigInt(row.charge ?? row.rated_cost ?? 0), 0n);
    const inLedger = `${rows.length} requests at ${decimalOfPico(spent)}`;
    const inReport = `${String(requests)} requests at ${String(cost)}`;
    return inReport === inLedger ? [] : [`${name} is ${inReport}, the ledger has ${inLedger}`];
  };
  const ofAcme = generations.filter(({ organization }) => organization === 'acme');
  return [
    ...(await compare('usage of the platform', generations)),
    ...(await compare('usage of an organization', ofAcme)),
  ];
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '60' },
      rate: { type: 'string', default: '60' },
      seed: { type: 'string', default: '1' },
    },
  });
  const print = (line: string) => void process.stderr.write(`${line}\n`);
  const report = await runClickHouseAway({
    minutes: Number(values.minutes),
    rate: Number(values.rate),
    seed: Number(values.seed),
    print,
  });
  process.stdout.write(
    `${JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`,
  );
  process.exitCode = report.problemCount === 0 ? 0 : 1;
}
