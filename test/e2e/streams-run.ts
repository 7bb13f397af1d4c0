// Many streams at once through a whole installation, with clients that leave, read slowly or stop reading, and
// providers that cut, stall and refuse: compares every byte, and all accounts at the end; prints what events took and
// what it costs. By hand: `node test/e2e/streams-run.ts --streams 10000 --seconds 120 --seed 1 [--unread 100]`.

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { seededRandom } from '../support/byte-splits.ts';
import { endAll } from '../support/end-all.ts';
import { startTollgate } from '../support/gateway.ts';
import { openLedgerView } from '../support/ledger-view.ts';
import { readMetrics } from '../support/metric-values.ts';
import { memoryNotes } from '../support/note-memory.ts';
import { pause } from '../support/waiting.ts';
import { STREAM_ORGANIZATIONS, Streams, streamsConfiguration } from './open-streams.ts';
import { measure, type ProcessSample, sampleProcesses } from './process-growth.ts';
import { type SettledMixed, settleMixed } from './settle-mixed.ts';
import { checkStreams, countSeen, type ProcessUse, usesOf } from './streams-figures.ts';
import { drawPlan } from './streams-plan.ts';
import { startStreamsProvider } from './streams-provider.ts';
import { leaveUnread, type UnreadReport, type UnreadScene } from './streams-unread.ts';

const GATEWAY_PROCESSES = 2;
/** Of the providers, unless a run says otherwise: a provider that sends nothing for so long is cut off. */
const IDLE_MS = 20_000;
/** Streams are opened over so long. */
const RAMP_SECONDS = 25;
const LOOK_MS = 5_000;
/** After a look at the processes, until what it held up is read. */
const CAUGHT_UP_MS = 1_000;
/** By which the idle have been cut, after their time, on a busy machine. */
const CUT_MS = 10_000;
const STUCK_MS = 120_000;
const PROBLEMS_SHOWN = 30;

interface Options {
  readonly streams: number;
  readonly seconds: number;
  readonly seed: number;
  /** Streams of clients that stop reading, before the others. */
  readonly unread: number;
  readonly idleMs: number;
  readonly print: (line: string) => void;
}

interface StreamsReport extends SettledMixed {
  readonly seed: number;
  readonly streams: number;
  readonly openAtOnce: number;
  readonly events: number;
  readonly eventsPerSecond: number;
  /** From the provider's hand to the client's, of clients that read. */
  readonly eventMs: Readonly<Record<'p50' | 'p90' | 'p99' | 'p999' | 'longest', number>>;
  /** By how the client read and how the provider failed: how many were whole, cut, refused. */
  readonly seen: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly processes: Readonly<Record<string, ProcessUse>>;
  readonly unread: UnreadReport | null;
  readonly problemCount: number;
}

export async function runStreams(options: Options): Promise<StreamsReport> {
  const notes = mkdtempSync(join(tmpdir(), 'tollgate-streams-notes-'));
  const undo: (() => unknown)[] = [() => rmSync(notes, { recursive: true, force: true })];
  try {
    const provider = await startStreamsProvider();
    undo.push(() => provider.stop());
    const tollgate = await startTollgate({
      ownPostgres: true,
      configurationYaml: streamsConfiguration(provider.url, options.idleMs),
      gatewayProcesses: GATEWAY_PROCESSES,
      env: { MASTER_KEY: randomBytes(32).toString('base64'), ...memoryNotes(notes) },
    });
    undo.push(() => tollgate.stop());
    const streams = new Streams(tollgate.url);
    const unread = options.unread === 0 ? null : await leaveUnread(streams, { options, tollgate, provider, notes });
    const held = await holdStreams(streams, { options, tollgate, provider, notes });
    const ledger = openLedgerView(tollgate.postgresUrl);
    undo.push(() => ledger.close());
    const exchanges = streams.seen.map((one) => ({ ...one, id: one.plan.order.id, providerIds: [] }));
    const settled = await settleMixed({ tollgate, ledger, provider, exchanges, organizations: STREAM_ORGANIZATIONS });
    const problems = [...held.problems, ...checkStreams(streams.seen), ...settled.problems];
    const { times } = streams;
    return {
      seed: options.seed,
      streams: streams.seen.length,
      openAtOnce: held.openAtOnce,
      events: times.count,
      eventsPerSecond: Math.round(times.count / held.seconds),
      eventMs: {
        p50: times.quantile(0.5),
        p90: times.quantile(0.9),
        p99: times.quantile(0.99),
        p999: times.quantile(0.999),
        longest: times.quantile(1),
      },
      seen: countSeen(streams.seen),
      processes: held.processes,
      unread,
      ...settled,
      problemCount: problems.length,
      problems: problems.slice(0, PROBLEMS_SHOWN),
    };
  } finally {
    await endAll(undo);
  }
}

/** So many at once for so long: where one ends another begins. */
async function holdStreams(
  streams: Streams,
  { options, tollgate, provider, notes }: UnreadScene & { readonly options: Options },
) {
  const random = seededRandom(options.seed);
  const startedMs = performance.now();
  const rampSeconds = Math.min(RAMP_SECONDS, options.seconds);
  const endMs = startedMs + (rampSeconds + options.seconds) * 1_000;
  let count = 0;
  const keepOne = async (): Promise<void> => {
    while (performance.now() < endMs - 1_000) {
      count += 1;
      const seen = await streams.run(drawPlan(`${options.seed}-${count}`, random, endMs - performance.now()));
      // Who is refused or cut at once would only spin.
      if (seen.status !== 200) await pause(1_000);
    }
  };
  const all: Promise<void>[] = [];
  for (let index = 0; index < options.streams; index += 1) {
    const waitMs = startedMs + (index * rampSeconds * 1_000) / options.streams - performance.now();
    if (waitMs > 1) await pause(waitMs);
    all.push(keepOne());
  }
  options.print(`${streams.openNow} streams are open`);
  const samples: ProcessSample[] = [];
  // Before and after what is measured, not within it: with ten thousand descriptors a process one look holds up the
  // clients for a tenth of a second, and events would seem to be late.
  const take = (): void => {
    samples.push(...sampleProcesses(tollgate.pid, notes));
    for (const [name, pid] of [
      ['provider', provider.pid],
      ['clients', process.pid],
    ] as const)
      samples.push({ ...measure(pid, notes), name, atMs: performance.now() });
  };
  take();
  await pause(CAUGHT_UP_MS);
  streams.times.isMeasuring = true;
  const measuredFromMs = performance.now();
  let openAtOnce = streams.openNow;
  while (performance.now() < endMs - LOOK_MS) {
    await pause(Math.min(LOOK_MS, endMs - performance.now()));
    openAtOnce = Math.min(openAtOnce, streams.openNow);
    options.print(`${streams.openNow} open, ${streams.times.count} events, p99 ${streams.times.quantile(0.99)} ms`);
  }
  streams.times.isMeasuring = false;
  const seconds = (performance.now() - measuredFromMs) / 1_000;
  take();
  const delayMs = (await readMetrics(tollgate.adminUrl))('tollgate_event_loop_delay_max_seconds') * 1_000;
  options.print(`the load is over; since the scrape before, no event loop was held up for more than ${delayMs} ms`);
  const over = Promise.all(all);
  await waitAtMost(over, endMs - performance.now() + options.idleMs + CUT_MS);
  streams.readOn();
  await waitAtMost(over, STUCK_MS);
  const left = streams.openCount();
  return {
    openAtOnce,
    seconds,
    processes: usesOf(samples),
    problems: left === 0 ? [] : [`${left} streams have no end`],
  };
}

/** Leaves no clock behind, which would keep the process from ending. */
async function waitAtMost(ended: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([ended, over]);
  clearTimeout(timer);
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      streams: { type: 'string', default: '10000' },
      seconds: { type: 'string', default: '120' },
      seed: { type: 'string', default: '1' },
      unread: { type: 'string', default: '100' },
    },
  });
  const report = await runStreams({
    streams: Number(values.streams),
    seconds: Number(values.seconds),
    seed: Number(values.seed),
    unread: Number(values.unread),
    idleMs: IDLE_MS,
    print: (line) => process.stdout.write(`${line}\n`),
  });
  process.stdout.write(
    `${JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`,
  );
  process.exitCode = report.problemCount === 0 ? 0 : 1;
}
