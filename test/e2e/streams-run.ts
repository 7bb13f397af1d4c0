// Many streams at once through a whole installation, with clients that leave, read slowly or stop reading, and
// providers that cut, stall and refuse: compares every byte, and all accounts at the end; prints what events took and
// what it costs. By hand: `node test/e2e/streams-run.ts --streams 10000 --seconds 120 --seed 1 [--unread 100]`.

import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { seededRandom } from '../support/byte-splits.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { openLedgerView } from '../support/ledger-view.ts';
import { readMetrics } from '../support/metric-values.ts';
import { memoryNotes } from '../support/note-memory.ts';
import { KEYS } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';
import { type KillOrganization, UNLIMITED } from './kill-world.ts';
import { measure, type ProcessSample, sampleProcesses } from './process-growth.ts';
import { type SettledMixed, settleMixed } from './settle-mixed.ts';
import { type SeenStream, StreamClient, type StreamPlace } from './streams-client.ts';
import { drawPlan, flood, type StreamPlan } from './streams-plan.ts';
import { type StreamsProvider, startStreamsProvider } from './streams-provider.ts';

const GATEWAY_PROCESSES = 2;
/** A client that takes nothing of its reply for so long is cut off, and so is a provider that sends nothing. */
const IDLE_MS = 20_000;
/** Streams are opened over so long. */
const RAMP_SECONDS = 25;
/** So long buffers of who does not read take to fill on a busy machine. */
const FILL_MS = 6_000;
/** Until the gateways' notes tell of it. */
const NOTED_MS = 6_000;
const SAMPLE_MS = 5_000;
/** When the idle have been cut, on a busy machine. */
const CUT_MS = IDLE_MS + 10_000;
const PROBLEMS_SHOWN = 30;
const MEMORY_PAGE_BYTES = 4_096;

const PLAIN = { ...UNLIMITED, clients: 0, delayMsMax: 0, creditPico: 1_000_000n * 10n ** 12n } as const;
const ORGANIZATIONS: readonly KillOrganization[] = [
  { ...PLAIN, slug: 'acme', key: KEYS.acme },
  { ...PLAIN, slug: 'free', key: KEYS.free, creditPico: null },
];

interface Options {
  readonly streams: number;
  readonly seconds: number;
  readonly seed: number;
  /** Streams of clients that stop reading, before the others. */
  readonly unread: number;
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

interface ProcessUse {
  readonly megabytes: number;
  readonly descriptors: number;
  readonly cores: number;
  readonly loopDelayMaxMs: number | null;
}

interface UnreadReport {
  readonly streams: number;
  /** What both gateways together had more, each stream, while nobody read. */
  readonly gatewayKilobytesEach: number;
  readonly heapAndBuffersKilobytesEach: number;
  /** What the system had for all sockets on the way, each stream. */
  readonly systemKilobytesEach: number;
  /** From its admission to its end: buffers filled, then the limit. */
  readonly cutAfterSeconds: { readonly least: number; readonly most: number };
  readonly limitSeconds: number;
}

/** How long events took, in quarters of a millisecond. */
class EventTimes {
  private static readonly PER_MS = 4;
  private readonly counts = new Uint32Array(40_000);
  isMeasuring = false;
  count = 0;

  add(tookMs: number): void {
    if (!this.isMeasuring) return;
    this.count += 1;
    const at = Math.min(Math.max(0, Math.floor(tookMs * EventTimes.PER_MS)), this.counts.length - 1);
    this.counts[at] = (this.counts[at] as number) + 1;
  }

  quantile(part: number): number {
    let rest = part * this.count;
    const at = this.counts.findIndex((count) => {
      rest -= count;
      return count > 0 && rest <= 0;
    });
    return (at + 1) / EventTimes.PER_MS;
  }
}

class Streams {
  readonly seen: SeenStream[] = [];
  readonly times = new EventTimes();
  openNow = 0;
  private readonly open = new Set<StreamClient>();
  private readonly port: number;

  constructor(url: string) {
    this.port = Number(new URL(url).port);
  }

  run(plan: StreamPlan, onOpen: () => void = () => undefined): Promise<SeenStream> {
    const [organization] = Number(plan.order.id.split('-').at(-1)) % 3 === 0 ? ORGANIZATIONS.slice(1) : ORGANIZATIONS;
    const name = plan.order.fault === null ? 'steady' : 'failing';
    const place: StreamPlace = {
      port: this.port,
      key: (organization as KillOrganization).key,
      model: `sim/${name}`,
      providerModel: `${name}-1`,
      onEvent: (tookMs) => this.times.add(tookMs),
      onOpen: () => {
        this.openNow += 1;
        onOpen();
      },
    };
    const client = new StreamClient(plan, place);
    this.open.add(client);
    return client.ended.then((seen) => {
      if (seen.status !== null) this.openNow -= 1;
      this.open.delete(client);
      this.seen.push(seen);
      return seen;
    });
  }

  /** Who had stopped reads what has come. */
  readOn(): void {
    for (const client of this.open) client.readOn();
  }
}

export async function runStreams(options: Options): Promise<StreamsReport> {
  const notes = mkdtempSync(join(tmpdir(), 'tollgate-streams-notes-'));
  const undo: (() => unknown)[] = [() => rmSync(notes, { recursive: true, force: true })];
  try {
    const provider = await startStreamsProvider();
    undo.push(() => provider.stop());
    const tollgate = await startTollgate({
      ownPostgres: true,
      configurationYaml: configuration(provider.url),
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
    const settled = await settleMixed({ tollgate, ledger, provider, exchanges, organizations: ORGANIZATIONS });
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
    for (const step of undo.toReversed()) await step();
  }
}

interface Scene {
  readonly options: Options;
  readonly tollgate: Tollgate;
  readonly provider: StreamsProvider;
  readonly notes: string;
}

/** So many at once for so long: where one ends another begins. */
async function holdStreams(streams: Streams, { options, tollgate, provider, notes }: Scene) {
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
  const take = (): void => {
    samples.push(...sampleProcesses(tollgate.pid, notes));
    for (const [name, pid] of [['provider', provider.pid], ['clients', process.pid]] as const)
      samples.push({ ...measure(pid, notes), name, atMs: performance.now() });
  };
  take();
  streams.times.isMeasuring = true;
  const measuredFromMs = performance.now();
  let openAtOnce = streams.openNow;
  while (performance.now() < endMs - SAMPLE_MS) {
    await pause(Math.min(SAMPLE_MS, endMs - performance.now()));
    take();
    openAtOnce = Math.min(openAtOnce, streams.openNow);
    options.print(`${streams.openNow} open, ${streams.times.count} events, p99 ${streams.times.quantile(0.99)} ms`);
  }
  streams.times.isMeasuring = false;
  const seconds = (performance.now() - measuredFromMs) / 1_000;
  const delayMs = (await readMetrics(tollgate.adminUrl))('tollgate_event_loop_delay_max_seconds') * 1_000;
  options.print(`the load is over; since the scrape before, no event loop was held up for more than ${delayMs} ms`);
  const over = Promise.all(all);
  await Promise.race([over, pause(endMs - performance.now() + CUT_MS)]);
  streams.readOn();
  await Promise.race([over, pause(CUT_MS)]);
  const left = streams.openNow;
  return {
    openAtOnce,
    seconds,
    processes: usesOf(samples),
    problems: left === 0 ? [] : [`${left} streams have no end`],
  };
}

/** What a gateway has for clients that stop reading, and when it lets go of them. */
async function leaveUnread(streams: Streams, { options, tollgate, provider, notes }: Scene): Promise<UnreadReport> {
  const openSome = async (count: number, name: string): Promise<Promise<SeenStream>[]> => {
    const ended: Promise<SeenStream>[] = [];
    const opened = Array.from({ length: count }, (_, index) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      ended.push(streams.run(flood(`${options.seed}-${name}-${index + 1}`), resolve));
      return promise;
    });
    await Promise.all(opened);
    return ended;
  };
  // What the code itself takes when it first runs is no stream's.
  const first = await openSome(Math.ceil(options.unread / 2), 'first');
  await pause(CUT_MS);
  streams.readOn();
  await Promise.all(first);
  await pause(NOTED_MS);
  const before = memoryOf(tollgate, notes);
  const ended = await openSome(options.unread, 'unread');
  await pause(FILL_MS + NOTED_MS);
  const during = memoryOf(tollgate, notes);
  await waitFor('the idle to be cut', () => provider.openCalls(), (open) => open === 0, CUT_MS * 2);
  streams.readOn();
  await Promise.all(ended);
  const durations = await readDurations(tollgate, `${options.seed}-unread-%`, options.unread);
  const each = (of: (memory: GatewayMemory) => number): number =>
    Math.round((of(during) - of(before)) / options.unread / 100) / 10;
  const report: UnreadReport = {
    streams: options.unread,
    gatewayKilobytesEach: each((memory) => memory.resident),
    heapAndBuffersKilobytesEach: each((memory) => memory.heapAndBuffers),
    systemKilobytesEach: each((memory) => memory.system),
    cutAfterSeconds: durations,
    limitSeconds: IDLE_MS / 1_000,
  };
  options.print(`unread: ${JSON.stringify(report)}`);
  return report;
}

/** What the ledger says that executions took, in seconds. */
async function readDurations(tollgate: Tollgate, requests: string, count: number) {
  const ledger = openLedgerView(tollgate.postgresUrl);
  try {
    const [row] = await waitFor(
      'all of them to be posted',
      () =>
        ledger.query(
          `SELECT count(*)::int AS ended, min(latency_ms)::int AS least, max(latency_ms)::int AS most FROM generations
            WHERE client_request_id LIKE $1 AND outcome IS NOT NULL`,
          [requests],
        ),
      (rows) => rows[0]?.ended === count,
      CUT_MS,
    );
    return { least: Number(row?.least) / 1_000, most: Number(row?.most) / 1_000 };
  } finally {
    await ledger.close();
  }
}

interface GatewayMemory {
  readonly resident: number;
  readonly heapAndBuffers: number;
  readonly system: number;
}

/** Of both gateways together, and what the system has for all TCP connections of the machine. */
function memoryOf(tollgate: Tollgate, notes: string): GatewayMemory {
  const own = sampleProcesses(tollgate.pid, notes).filter(({ name }) => name.startsWith('gateway'));
  const sum = (of: (sample: ProcessSample) => number): number => own.reduce((total, sample) => total + of(sample), 0);
  const pages = /^TCP: .* mem (\d+)$/m.exec(readFileSync('/proc/net/sockstat', 'latin1'))?.[1];
  return {
    resident: sum(({ residentBytes }) => residentBytes),
    heapAndBuffers: sum(({ memory }) => (memory?.heapBytes ?? 0) + (memory?.externalBytes ?? 0)),
    system: Number(pages ?? 0) * MEMORY_PAGE_BYTES,
  };
}

function configuration(upstreamUrl: string): string {
  const timeouts = `timeouts: { first_byte_ms: ${IDLE_MS}, idle_ms: ${IDLE_MS} }`;
  const price = '{ input: "1.25", cached_input: "0.125", cache_write: "1.5", output: "10.00" }';
  const names = ['steady', 'failing'] as const;
  return `providers:
${names.map((name) => `  - { id: ${name}, base_url: ${upstreamUrl}, api_key: sk-${name}, ${timeouts} }\n`).join('')}models:
${names
  .map(
    (name) =>
      `  - { id: sim/${name}, context_length: 1000000, max_output_tokens: 500000, tokenizer: o200k_base, served_by: ` +
      `[{ provider: ${name}, model: ${name}-1, apis: [chat_completions], price: ${price} }] }\n`,
  )
  .join('')}organizations:
${ORGANIZATIONS.map(
  ({ slug, key, creditPico }) => `  - slug: ${slug}
    billing: ${creditPico === null ? 'none' : 'prepaid\n    opening_credit: "1000000"'}
    users: [{ email: o@${slug}.test, role: owner }]
    keys: [{ name: only, user: o@${slug}.test, secret: ${key} }]
`,
).join('')}`;
}

function nameOf({ plan: { order, reading } }: SeenStream): string {
  if (order.fault !== null) return `provider: ${order.fault}`;
  return `${order.gapMs === 0 ? 'flooded, ' : ''}client: ${reading}`;
}

function answerOf({ status, isWhole }: SeenStream): string {
  if (status === null) return 'no answer';
  return status === 200 ? (isWhole ? 'whole' : 'not whole') : String(status);
}

function countSeen(seen: readonly SeenStream[]): Record<string, Record<string, number>> {
  const found: Record<string, Record<string, number>> = {};
  for (const one of seen) {
    const own = (found[nameOf(one)] ??= {});
    own[answerOf(one)] = (own[answerOf(one)] ?? 0) + 1;
  }
  return found;
}

/** Every byte is the right one, and everything is whole that nobody cut. */
function checkStreams(seen: readonly SeenStream[]): string[] {
  const problems: string[] = [];
  for (const one of seen) {
    const { order, reading } = one.plan;
    if (one.problem !== null) problems.push(one.problem);
    const isFlooded = order.gapMs === 0;
    const mustBeWhole = order.fault === null && reading !== 'leaves' && !(isFlooded && reading === 'stops');
    if (mustBeWhole && !one.isWhole) problems.push(`stream ${order.id}, ${nameOf(one)}: ${answerOf(one)}, ${one.deltas} events`);
    if (order.fault !== null && one.isEnded && one.status === 200)
      problems.push(`stream ${order.id} failed and its framing ended`);
    if (order.fault !== null && one.isWhole) problems.push(`stream ${order.id} failed and looks whole`);
    if (isFlooded && reading === 'stops' && one.isWhole) problems.push(`stream ${order.id} was not read and is whole`);
    if (order.fault === 'refuse' && one.status === 200) problems.push(`stream ${order.id} was refused and served`);
  }
  return problems;
}

/** While streams were open: the most memory and descriptors, and the share of a core. */
function usesOf(samples: readonly ProcessSample[]): Record<string, ProcessUse> {
  const found: Record<string, ProcessUse> = {};
  for (const name of new Set(samples.map((sample) => sample.name))) {
    const own = samples.filter((sample) => sample.name === name);
    const [first, last] = [own[0] as ProcessSample, own.at(-1) as ProcessSample];
    const delays = own.flatMap(({ memory }) => (memory === null ? [] : [memory.loopDelayMaxMs]));
    const seconds = Math.max(1, last.atMs - first.atMs) / 1_000;
    found[name] = {
      megabytes: Math.round(Math.max(...own.map(({ residentBytes }) => residentBytes)) / 1e5) / 10,
      descriptors: Math.max(...own.map(({ descriptors }) => descriptors)),
      cores: Math.round(((last.cpuSeconds - first.cpuSeconds) / seconds) * 100) / 100,
      loopDelayMaxMs: delays.length === 0 ? null : Math.round(Math.max(...delays) * 10) / 10,
    };
  }
  return found;
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
    print: (line) => process.stdout.write(`${line}\n`),
  });
  process.stdout.write(
    `${JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`,
  );
  process.exitCode = report.problemCount === 0 ? 0 : 1;
}
