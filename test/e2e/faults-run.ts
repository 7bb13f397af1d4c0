// A fault under load: the disk is full, or read-only as after an error; the clock jumps an hour ahead and an hour back;
// gateways are rolled again and again. What is admitted is kept, what cannot be is refused and told when to come again,
// and afterwards the provider's log, the ledger and the facts agree to the digit. By hand, the disks as root:
// `node test/e2e/faults-run.ts --fault disk-full|read-only|clock|roll --seconds 120 --rate 60 --seed 1`. Postgres and
// ClickHouse away have runs of their own (database-away-run.ts, clickhouse-away-run.ts).

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { endAll } from '../support/end-all.ts';
import { startTollgate, type Tollgate, type TollgateOptions } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { limitedKey, renderOrganization } from '../support/limited-organizations.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import { silentLog } from '../support/silent-log.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { SmallDisk } from '../support/small-disk.ts';
import { KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';
import { UNLIMITED } from './kill-world.ts';
import { settleAndCompareFacts } from './settle-accounts.ts';
import { type Answers, type SteadyAsker, SteadyLoad, summarizeAnswers } from './steady-load.ts';

const FAULTS = ['disk-full', 'read-only', 'clock', 'roll'] as const;
type Fault = (typeof FAULTS)[number];
type Phase = 'warm' | 'fault' | 'back';

const WARM_SECONDS = 4;
const BACK_SECONDS = 4;
const UNDER_WAY_MS = 1_500;
const STUCK_MS = 120_000;
/** Each gateway may take a minute to be ready, and is then replaced by another attempt. */
const ROLL_STUCK_MS = 400_000;
const HOUR_MS = 3_600_000;
/** The embedded ClickHouse is on it, too. */
const DISK_MEGABYTES = 1_500;
const PROBLEMS_SHOWN = 20;

const PLAIN = { ...UNLIMITED, clients: 0, delayMsMax: 2 } as const;
/** Nothing limits these: every refusal of theirs is of the fault. */
const ASKERS: readonly SteadyAsker[] = [
  { ...PLAIN, slug: 'acme', key: KEYS.acme, creditPico: OPENING_CREDIT_PICO, share: 0.6 },
  { ...PLAIN, slug: 'calm', key: limitedKey('calm'), share: 0.2 },
  { ...PLAIN, slug: 'free', key: KEYS.free, creditPico: null, share: 0.2 },
];

interface FaultReport {
  readonly fault: Fault;
  readonly requests: number;
  /** As in `SteadyLoad`. */
  readonly behindMs: number;
  /** Rolling restarts that were done. */
  readonly rolls: number;
  readonly answers: Readonly<Record<Phase, Readonly<Record<string, Answers>>>>;
  readonly generations: number;
  readonly facts: number;
  readonly providerCalls: number;
  /** What the provider served, what it is worth in the ledger, and what of that was charged: not what is not billed. */
  readonly picoUsd: { readonly provider: bigint; readonly ledger: bigint; readonly charged: bigint };
  readonly unpaidReplies: number;
  readonly problems: readonly string[];
}

interface Options {
  readonly fault: Fault;
  readonly seconds: number;
  readonly rate: number;
  readonly seed: number;
}

interface Scene {
  tollgate: Tollgate;
  readonly launch: () => Promise<Tollgate>;
  readonly load: SteadyLoad<Phase>;
  readonly disk: SmallDisk | null;
  readonly clockFile: string;
  readonly seconds: number;
  rolls: number;
}

async function runFault(options: Options): Promise<FaultReport> {
  const { fault } = options;
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  const undo: (() => unknown)[] = [() => removeInstallation(directory)];
  try {
    const provider = await startSimulatedProvider();
    undo.push(() => provider.stop());
    const postgres = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
    undo.push(() => postgres.stop());
    const disk = fault === 'disk-full' || fault === 'read-only' ? new SmallDisk(DISK_MEGABYTES) : null;
    if (disk !== null) undo.push(() => disk.remove());
    const clockFile = join(directory, 'clock-offset');
    writeFileSync(clockFile, '0');
    const start: TollgateOptions = {
      configurationYaml: configuration(provider.url),
      gatewayProcesses: 2,
      dataDir: join(disk?.directory ?? directory, 'data'),
      env: {
        DATABASE_URL: postgres.url,
        MASTER_KEY: randomBytes(32).toString('base64'),
        ...(fault === 'clock' ? jumpingClock(clockFile) : {}),
      },
    };
    const launch = () => startTollgate(start);
    const tollgate = await launch();
    const scene: Scene = {
      tollgate,
      launch,
      load: new SteadyLoad<Phase>(tollgate.url, options),
      disk,
      clockFile,
      seconds: options.seconds,
      rolls: 0,
    };
    undo.push(() => scene.tollgate.stop());
    return await playAndCompare(scene, { fault, provider, postgresUrl: postgres.url });
  } finally {
    await endAll(undo);
    rmSync(directory, { recursive: true, force: true });
  }
}

async function playAndCompare(
  scene: Scene,
  { fault, provider, postgresUrl }: { fault: Fault; provider: SimulatedProvider; postgresUrl: string },
): Promise<FaultReport> {
  const { load } = scene;
  await load.run('warm', ASKERS, WARM_SECONDS);
  // What is under way ends before the fault.
  await pause(UNDER_WAY_MS);
  const broken = PLAYS[fault](scene);
  await load.run('fault', ASKERS, broken);
  await broken;
  await waitUntilServed(scene);
  await load.run('back', ASKERS, BACK_SECONDS);
  await load.end();
  const settled = await settleAndCompareFacts({
    tollgate: scene.tollgate,
    postgresUrl,
    provider,
    seen: load.sent.map(({ response }) => response),
    organizations: ASKERS,
  });
  const answersIn = (phase: Phase) => summarizeAnswers(load.sent, phase, ASKERS);
  return {
    fault,
    requests: load.sent.length,
    behindMs: load.behindMs,
    rolls: scene.rolls,
    answers: { warm: answersIn('warm'), fault: answersIn('fault'), back: answersIn('back') },
    generations: settled.generations.length,
    facts: settled.facts,
    providerCalls: settled.providerCalls,
    picoUsd: {
      provider: settled.servedPico,
      ledger: settled.generations.reduce((sum, row) => sum + BigInt(row.rated_cost ?? 0), 0n),
      charged: settled.chargedPico,
    },
    unpaidReplies: settled.unpaidReplies,
    problems: [...settled.problems, ...checkAnswers(scene, fault)].slice(0, PROBLEMS_SHOWN),
  };
}

/** What happens under load; resolves when it is over. */
const PLAYS: Readonly<Record<Fault, (scene: Scene) => Promise<void>>> = {
  async 'disk-full'({ disk, seconds }) {
    disk?.fill();
    // What is freed meanwhile is taken, too.
    for (let second = 0; second < seconds; second += 1) {
      await pause(1_000);
      disk?.fill();
    }
    disk?.empty();
  },
  /** The operator ends it, repairs the disk and starts it again. */
  async 'read-only'(scene) {
    scene.disk?.breakOff();
    await pause(scene.seconds * 1_000);
    await scene.tollgate.stop({ keepData: true });
    scene.disk?.repair();
    scene.tollgate = await scene.launch();
    scene.load.goTo(scene.tollgate.url);
  },
  async clock({ clockFile, seconds }) {
    for (const offsetMs of [HOUR_MS, 0, -HOUR_MS, 0]) {
      writeFileSync(clockFile, String(offsetMs));
      await pause((seconds * 1_000) / 4);
    }
  },
  async roll(scene) {
    const endMs = performance.now() + scene.seconds * 1_000;
    while (performance.now() < endMs) {
      const before = scene.tollgate.gatewayPids();
      await waitFor(
        'a rolling restart',
        () => {
          // One that comes before the last roll has ended is not heard.
          process.kill(scene.tollgate.pid, 'SIGHUP');
          return scene.tollgate.gatewayPids();
        },
        (pids) => pids.length === before.length && pids.every((pid) => !before.includes(pid)),
        ROLL_STUCK_MS,
      );
      scene.rolls += 1;
    }
  },
};

function jumpingClock(file: string): Record<string, string> {
  const module = fileURLToPath(new URL('../support/jumping-clock.ts', import.meta.url));
  return { NODE_OPTIONS: `--import=${module}`, CLOCK_OFFSET_FILE: file };
}

function configuration(upstreamUrl: string): string {
  return testConfiguration({ upstreamUrl }) + renderOrganization({ slug: 'calm', credit: '1000', limits: [] });
}

/** By every process: several times in a row. */
async function waitUntilServed({ tollgate, load }: Scene): Promise<void> {
  await waitFor(
    'it to be ready',
    async () => (await httpCall(`${tollgate.adminUrl}/readyz`).catch(() => null))?.status,
    (status) => status === 200,
    STUCK_MS,
  );
  const startedMs = performance.now();
  for (let row = 0; row < 16; ) {
    await load.start('fault', ASKERS[0] as SteadyAsker, { ownConnection: true });
    row = load.sent.at(-1)?.response.status === 200 ? row + 1 : 0;
    if (performance.now() - startedMs > STUCK_MS) throw new Error('nobody is served although the fault is over');
  }
}

/** The statuses that a request may meet while the fault lasts; none: everybody is served. */
const MAY_BE_REFUSED: Readonly<Record<Fault, boolean>> = {
  'disk-full': true,
  'read-only': true,
  clock: false,
  roll: false,
};

function checkAnswers({ load }: Scene, fault: Fault): string[] {
  return load.countProblems(({ phase, response }) => {
    const { organization, status, refusal, retryAfter, complete } = response;
    const mayFail = phase === 'fault' && MAY_BE_REFUSED[fault];
    // Stopped for the repair.
    const isStopped = fault === 'read-only' && phase === 'fault' && status === null;
    const isExpected = status === 200 ? complete : mayFail && ((status === 503 && retryAfter !== null) || isStopped);
    return isExpected
      ? null
      : `${organization}, ${phase}: ${status} ${refusal}, Retry-After ${retryAfter}, complete ${complete}`;
  });
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      fault: { type: 'string', default: 'roll' },
      seconds: { type: 'string', default: '60' },
      rate: { type: 'string', default: '60' },
      seed: { type: 'string', default: '1' },
    },
  });
  const fault = FAULTS.find((one) => one === values.fault);
  if (fault === undefined) throw new Error(`--fault is one of ${FAULTS.join(', ')}`);
  const report = await runFault({
    fault,
    seconds: Number(values.seconds),
    rate: Number(values.rate),
    seed: Number(values.seed),
  });
  process.stdout.write(
    `${JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`,
  );
  process.exitCode = report.problems.length === 0 ? 0 : 1;
}
