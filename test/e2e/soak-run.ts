// A soak: a whole installation under a moderate load of everything for hours. Samples what its processes take, prints
// what grows in an hour, and compares all accounts at the end. By hand: `node test/e2e/soak-run.ts --minutes 120 --rate
// 60 --streams 200 --seed 1`. Event loop delays are those of the machine, too: what else runs on it holds them up.

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { seededRandom } from '../support/byte-splits.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { memoryNotes } from '../support/note-memory.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { pause } from '../support/waiting.ts';
import { type ProcessGrowth, type ProcessSample, sampleProcesses, summarizeGrowth } from './process-growth.ts';
import { type SettledMixed, settleMixed } from './settle-mixed.ts';
import { SoakClients, type SoakSeen } from './soak-clients.ts';
import { drawLongStream, drawRequest, makeUnread, type SoakMemory, type SoakRequest } from './soak-requests.ts';
import { IMPATIENT_MS, SOAK_ORGANIZATIONS, soakConfiguration } from './soak-world.ts';

const GATEWAY_PROCESSES = 2;
const SAMPLE_MS = 30_000;
const SUMMARY_MS = 300_000;
const UNREAD_EVERY_MS = 60_000;
/** Longer than the provider's patience with clients, by what a busy machine takes to notice. */
const UNREAD_MS = IMPATIENT_MS + 15_000;
/** What is kept of answers for later requests to ask for. */
const REMEMBERED_MAX = 500;
/** Streams begin one after the other, as they would. */
const STREAM_START_MS = 10;
const PROBLEMS_SHOWN = 30;
/** The beginning, in which caches, pools and pages of memory fill, says nothing about growth. */
const WARM_SHARE = 0.25;
/** A shorter run has too few samples for a slope that means anything. */
const JUDGED_MINUTES_MIN = 30;
/** In an hour, of the last half of what follows the warm-up. */
const GROWTH_MAX = { heapMegabytes: 8, residentMegabytes: 40, descriptors: 20 } as const;

interface Options {
  readonly minutes: number;
  readonly rate: number;
  readonly streams: number;
  readonly seed: number;
  readonly print: (line: string) => void;
}

class Soak {
  readonly seen: SoakSeen[] = [];
  readonly samples: ProcessSample[] = [];
  readonly startedMs = performance.now();
  private readonly memory: SoakMemory = { executions: [], responses: [], files: [] };
  private readonly random: () => number;
  private readonly clients: SoakClients;
  private readonly open = new Set<Promise<unknown>>();
  private readonly options: Options;
  private count = 0;
  private readonly endMs: number;

  constructor(url: string, options: Options) {
    this.options = options;
    this.random = seededRandom(options.seed);
    this.clients = new SoakClients(url);
    this.endMs = this.startedMs + options.minutes * 60_000;
  }

  isOver(): boolean {
    return performance.now() >= this.endMs;
  }

  /** So many requests a second, by a schedule that waits for nobody. */
  async runRequests(): Promise<void> {
    for (let index = 0; !this.isOver(); index += 1) {
      const waitMs = this.startedMs + (index * 1_000) / this.options.rate - performance.now();
      if (waitMs > 1) await pause(waitMs);
      void this.start(drawRequest(this.nextId(), this.random, this.memory));
    }
  }

  /** So many at once: where one ends another begins. */
  async runStreams(): Promise<void> {
    const keepOne = async (): Promise<void> => {
      while (!this.isOver()) {
        const msLeft = this.endMs - performance.now();
        await this.start(drawLongStream(this.nextId(), this.random, this.memory, msLeft));
      }
    };
    const all: Promise<void>[] = [];
    for (let index = 0; index < this.options.streams; index += 1) {
      all.push(keepOne());
      await pause(STREAM_START_MS);
    }
    await Promise.all(all);
  }

  async runUnread(): Promise<void> {
    while (!this.isOver()) {
      void this.start(makeUnread(this.nextId(), this.random, this.memory, UNREAD_MS));
      await pause(Math.min(UNREAD_EVERY_MS, Math.max(0, this.endMs - performance.now())));
    }
  }

  async runSamples(take: () => ProcessSample[]): Promise<void> {
    while (!this.isOver()) {
      await pause(Math.min(SAMPLE_MS, Math.max(0, this.endMs - performance.now())));
      this.samples.push(...take());
    }
  }

  async end(): Promise<void> {
    while (this.open.size > 0) await Promise.all(this.open);
    this.clients.close();
  }

  private nextId(): string {
    this.count += 1;
    return `${this.options.seed}-${this.count}`;
  }

  private start(request: SoakRequest): Promise<unknown> {
    const ended = this.clients.send(request).then((seen) => {
      this.seen.push(seen);
      this.remember(seen);
      this.open.delete(ended);
    });
    this.open.add(ended);
    return ended;
  }

  private remember({ request: { organization, expected }, executionId, savedId, fileId, isWhole }: SoakSeen): void {
    if (!isWhole || expected !== 'whole') return;
    const { executions, responses, files } = this.memory;
    const sinceMs = performance.now();
    for (const [kept, id] of [
      [executions, executionId],
      [responses, savedId],
      [files, fileId],
    ] as const) {
      if (id === null) continue;
      kept.push({ id, organization, sinceMs });
      if (kept.length > REMEMBERED_MAX) kept.shift();
    }
  }
}

interface SoakReport extends SettledMixed {
  readonly minutes: number;
  readonly requests: number;
  /** By sort: how its requests were answered. */
  readonly answers: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly processes: Readonly<Record<string, ProcessGrowth>>;
  readonly problemCount: number;
}

export async function runSoak(options: Options): Promise<SoakReport> {
  const notes = mkdtempSync(join(tmpdir(), 'tollgate-soak-notes-'));
  const provider = await startSimulatedProvider();
  let tollgate: Tollgate | null = null;
  let ledger: LedgerView | null = null;
  try {
    tollgate = await startTollgate({
      ownPostgres: true,
      configurationYaml: soakConfiguration(provider.url),
      gatewayProcesses: GATEWAY_PROCESSES,
      env: { MASTER_KEY: randomBytes(32).toString('base64'), ...memoryNotes(notes) },
    });
    const { pid } = tollgate;
    const soak = new Soak(tollgate.url, options);
    const summaries = setInterval(() => options.print(intermediate(soak, options)), SUMMARY_MS);
    await Promise.all([
      soak.runRequests(),
      soak.runStreams(),
      soak.runUnread(),
      soak.runSamples(() => sampleProcesses(pid, notes)),
    ]);
    await soak.end();
    clearInterval(summaries);
    options.print(`the load is over: ${intermediate(soak, options)}`);
    ledger = openLedgerView(tollgate.postgresUrl);
    return await compareAll(soak, { options, tollgate, ledger, provider });
  } finally {
    await ledger?.close();
    await tollgate?.stop();
    await provider.stop();
    rmSync(notes, { recursive: true, force: true });
  }
}

async function compareAll(
  soak: Soak,
  { options, ...parts }: { options: Options; tollgate: Tollgate; ledger: LedgerView; provider: SimulatedProvider },
): Promise<SoakReport> {
  const exchanges = soak.seen.map((one) => ({ ...one, id: one.request.id, hashes: one.request.hashes }));
  const settled = await settleMixed({ ...parts, exchanges, organizations: SOAK_ORGANIZATIONS });
  const processes = summarizeGrowth(soak.samples, warmAt(soak, options.minutes));
  const problems = [
    ...checkAnswers(soak.seen),
    ...settled.problems,
    ...(options.minutes < JUDGED_MINUTES_MIN ? [] : judgeGrowth(processes)),
  ];
  return {
    minutes: options.minutes,
    requests: soak.seen.length,
    answers: countAnswers(soak.seen),
    processes,
    ...settled,
    problemCount: problems.length,
    problems: problems.slice(0, PROBLEMS_SHOWN),
  };
}

function warmAt(soak: Soak, minutes: number): number {
  return soak.startedMs + minutes * 60_000 * WARM_SHARE;
}

/** So that a run that is cut off has figures, too. */
function intermediate(soak: Soak, options: Options): string {
  const minutes = Math.round((performance.now() - soak.startedMs) / 6_000) / 10;
  const problems = checkAnswers(soak.seen);
  return JSON.stringify({
    at: new Date().toISOString(),
    minutes,
    seed: options.seed,
    requests: soak.seen.length,
    problems: problems.slice(0, 5),
    processes: summarizeGrowth(soak.samples, warmAt(soak, minutes)),
  });
}

function nameOf({ status, refusal, isWhole }: SoakSeen): string {
  if (status === null) return 'no answer';
  if (status !== 200) return `${status} ${refusal}`;
  return isWhole ? '200' : '200, not whole';
}

function countAnswers(seen: readonly SoakSeen[]): Record<string, Record<string, number>> {
  const found: Record<string, Record<string, number>> = {};
  for (const one of seen) {
    const own = (found[one.request.sort] ??= {});
    own[nameOf(one)] = (own[nameOf(one)] ?? 0) + 1;
  }
  return found;
}

/** Nobody is refused, cut or left without an answer who need not be. */
function checkAnswers(seen: readonly SoakSeen[]): string[] {
  const problems = new Map<string, number>();
  for (const one of seen) {
    const { expected, sort, id } = one.request;
    const isGood = expected === 'anything' || (expected === 'whole' ? one.isWhole : expected.includes(one.status ?? 0));
    if (!isGood) problems.set(`${sort}: ${nameOf(one)}`, (problems.get(`${sort}: ${nameOf(one)}`) ?? 0) + 1);
    if (one.providerIds.length > 1) problems.set(`${id} has ${one.providerIds.join(' and ')}`, 1);
    if (one.reads === 'stops' && one.isWhole) problems.set(`${id}: who stopped reading has a whole reply`, 1);
  }
  return [...problems].map(([problem, count]) => `${count} × ${problem}`);
}

function judgeGrowth(processes: Readonly<Record<string, ProcessGrowth>>): string[] {
  return Object.entries(processes).flatMap(([name, growth]) =>
    (Object.keys(GROWTH_MAX) as (keyof typeof GROWTH_MAX)[]).flatMap((what) => {
      const perHour = growth[what]?.perHourLate ?? 0;
      return perHour > GROWTH_MAX[what] ? [`${name}: ${what} grow by ${perHour} an hour`] : [];
    }),
  );
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '120' },
      rate: { type: 'string', default: '60' },
      streams: { type: 'string', default: '200' },
      seed: { type: 'string', default: '1' },
    },
  });
  const report = await runSoak({
    minutes: Number(values.minutes),
    rate: Number(values.rate),
    streams: Number(values.streams),
    seed: Number(values.seed),
    print: (line) => process.stdout.write(`${line}\n`),
  });
  process.stdout.write(
    `${JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`,
  );
  process.exitCode = report.problemCount === 0 ? 0 : 1;
}
