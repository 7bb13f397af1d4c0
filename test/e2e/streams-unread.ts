// Clients that stop reading in a stream that comes as fast as it is taken: what gateways and the system have for each
// of them, and when gateways let go of them.

import { readFileSync } from 'node:fs';
import type { Tollgate } from '../support/gateway.ts';
import { openLedgerView } from '../support/ledger-view.ts';
import { pause, waitFor } from '../support/waiting.ts';
import type { Streams } from './open-streams.ts';
import { type ProcessSample, sampleProcesses } from './process-growth.ts';
import type { SeenStream } from './streams-client.ts';
import { flood } from './streams-plan.ts';
import type { StreamsProvider } from './streams-provider.ts';

/** As long as uWebSockets.js has patience with a client that takes nothing. */
const UNREAD_SECONDS_MAX = 12;
/** So long buffers of who does not read take to fill on a busy machine. */
const FILL_MS = 6_000;
/** Until the gateways' notes tell of it. */
const NOTED_MS = 6_000;
/** By which the idle have been cut, after their time, on a busy machine. */
const CUT_MS = 10_000;
const STUCK_MS = 120_000;
const MEMORY_PAGE_BYTES = 4_096;

export interface UnreadReport {
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

export interface UnreadScene {
  readonly options: {
    readonly seed: number;
    /** How many of them. */
    readonly unread: number;
    readonly idleMs: number;
    readonly print: (line: string) => void;
  };
  readonly tollgate: Tollgate;
  readonly provider: StreamsProvider;
  readonly notes: string;
}

/** What a gateway has for clients that stop reading, and when it lets go of them. */
export async function leaveUnread(
  streams: Streams,
  { options, tollgate, provider, notes }: UnreadScene,
): Promise<UnreadReport> {
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
  await pause(options.idleMs + CUT_MS);
  streams.readOn();
  await Promise.all(first);
  await pause(NOTED_MS);
  const before = memoryOf(tollgate, notes);
  const ended = await openSome(options.unread, 'unread');
  await pause(FILL_MS + NOTED_MS);
  const during = memoryOf(tollgate, notes);
  await waitFor(
    'the idle to be cut',
    () => provider.openCalls(),
    (open) => open === 0,
    STUCK_MS,
  );
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
    limitSeconds: Math.min(UNREAD_SECONDS_MAX, options.idleMs / 1_000),
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
      STUCK_MS,
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
