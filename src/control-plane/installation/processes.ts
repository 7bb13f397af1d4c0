// How the processes of the installation stand, and what all of them serve at this time.

import { z } from 'zod';
import {
  isSilent,
  type LiveFigures,
  liveView,
  type Percentiles,
  type ProcessState,
  STATUS_CLASSES,
} from '../../domain/processes/live-figures.ts';
import { BEAT_INTERVAL_MS, type GaugeName } from '../../domain/processes/process-sample.ts';
import { answerOf } from '../answers.ts';
import { showMoment, shownMoment } from '../identity/fields.ts';
import { type Operation, operation } from '../operation.ts';
import type { InstallationStore } from './installation-store.ts';

const gauge = z.number().nullable();

const shownProcess = z
  .object({
    machine: z.string(),
    kind: z.string(),
    pid: z.int(),
    epoch: z.int().nullable().meta({ description: 'null: the process writes no records.' }),
    version: z.string(),
    started_at: shownMoment,
    last_seen_at: shownMoment,
    silent: z
      .boolean()
      .meta({ description: 'The process wrote nothing in the last three intervals, and has not ended.' }),
    in_flight: gauge,
    connections: gauge,
    paused_models: gauge,
    lent_usd: gauge.meta({ description: 'Leased from wallets and held by no request. A measurement, not the ledger.' }),
    held_usd: gauge,
    unposted_bytes: gauge.meta({ description: 'Bytes of the spools on its machine that are not in Postgres yet.' }),
    unreported_bytes: gauge.meta({ description: 'Bytes of the spools on its machine that are not in ClickHouse yet.' }),
    quarantined_files: gauge.meta({
      description: 'Files of spooled bytes on its machine that could not be posted.',
    }),
    blocked: z.boolean().meta({ description: 'The process admits nothing, because its spool cannot be written.' }),
    loop_delay_ms: gauge.meta({ description: 'The longest delay in the last interval.' }),
    memory_bytes: gauge,
  })
  .meta({ id: 'Process' });

/** A gauge that a process of its kind does not have is null. */
function showProcess(state: ProcessState, nowMs: number): z.output<typeof shownProcess> {
  const { machine, kind, pid, epoch, version, startedAtMs, lastBeatAtMs, gauges } = state;
  const read = (name: GaugeName): number | null => gauges[name] ?? null;
  return {
    machine,
    kind,
    pid,
    epoch,
    version,
    started_at: showMoment(startedAtMs),
    last_seen_at: showMoment(lastBeatAtMs),
    silent: isSilent(state, nowMs),
    in_flight: read('in_flight'),
    connections: read('connections'),
    paused_models: read('paused_models'),
    lent_usd: read('lent_usd'),
    held_usd: read('held_usd'),
    unposted_bytes: read('unposted_bytes'),
    unreported_bytes: read('unreported_bytes'),
    quarantined_files: read('quarantined_files'),
    blocked: (read('blocked') ?? 0) > 0,
    loop_delay_ms: read('loop_delay_ms'),
    memory_bytes: read('memory_bytes'),
  };
}

export function listProcesses(store: InstallationStore): Operation {
  return operation({
    id: 'listProcesses',
    summary: 'Lists the gateway and jobs processes of all machines, by what each wrote last.',
    answer: z.object({ data: z.array(shownProcess) }),
    run: async () => ({ data: (await store.processes()).map((state) => showProcess(state, store.nowMs())) }),
  });
}

const shownPercentiles = z
  .object({ p50: gauge, p95: gauge, p99: gauge })
  .meta({ description: 'Milliseconds, estimated within the buckets of a histogram; null: nothing ended.' });

const figures = {
  requests: z.number().meta({ description: 'Admitted requests that ended.' }),
  requests_per_second: z.number(),
  tokens_per_second: z.number(),
  by_status: z.object(Object.fromEntries(STATUS_CLASSES.map((name) => [name, z.number()]))),
  errors: z.number().meta({ description: 'Ended with 5xx, or without an answer to a client that waited.' }),
  refusals: z.number(),
  failed_calls: z.number().meta({ description: 'Calls to providers that failed, also where another one served.' }),
  latency_ms: shownPercentiles,
  first_byte_ms: shownPercentiles,
};
const shownFigures = z.object(figures).meta({ id: 'LiveFigures' });
const shownPoint = z.object({ at: shownMoment, ...figures }).meta({ id: 'LivePoint' });

function showPercentiles({ p50Ms, p95Ms, p99Ms }: Percentiles): z.output<typeof shownPercentiles> {
  return { p50: p50Ms, p95: p95Ms, p99: p99Ms };
}

function showFigures(found: LiveFigures): z.output<typeof shownFigures> {
  return {
    requests: found.requests,
    requests_per_second: found.requestsPerSecond,
    tokens_per_second: found.tokensPerSecond,
    by_status: { ...found.byStatus },
    errors: found.errors,
    refusals: found.refusals,
    failed_calls: found.failedCalls,
    latency_ms: showPercentiles(found.latency),
    first_byte_ms: showPercentiles(found.firstByte),
  };
}

const shownLive = z
  .object({
    at: shownMoment.meta({ description: 'The end of the last point.' }),
    seconds_per_point: z.number(),
    minute: shownFigures.meta({ description: 'The last sixty seconds.' }),
    points: z.array(shownPoint).meta({ description: 'The points of the last five minutes, the oldest first.' }),
    refusals: z.array(z.object({ code: z.string(), count: z.number() })),
    failed_calls: z.array(z.object({ provider: z.string(), kind: z.string(), count: z.number() })),
    paused: z
      .array(z.object({ provider: z.string(), model: z.string().nullable(), until: shownMoment }))
      .meta({ description: 'Models that gateways do not call for now; null: the whole provider.' }),
    in_flight: z.number(),
    unposted_bytes: z.number(),
    unreported_bytes: z.number(),
    quarantined_files: z.number().meta({ description: 'On all machines. Above zero, an operator has to look.' }),
    blocked_processes: z.int(),
    processes: z.int(),
    silent_processes: z.int(),
  })
  .meta({ id: 'Live' });

export function showLive(store: InstallationStore): Operation {
  return operation({
    id: 'getLive',
    summary: 'Shows what all gateways together serve: the last minute, and each five seconds of the last five minutes.',
    answer: answerOf(shownLive),
    run: async () => {
      const [beats, states, health] = await Promise.all([
        store.beatCounts(),
        store.processes(),
        store.providerHealth(),
      ]);
      const nowMs = store.nowMs();
      const view = liveView(beats, nowMs);
      const present = states.filter((state) => !isSilent(state, nowMs));
      const sum = (name: GaugeName) => present.reduce((total, { gauges }) => total + (gauges[name] ?? 0), 0);
      return {
        data: {
          at: showMoment(view.atMs),
          seconds_per_point: BEAT_INTERVAL_MS / 1_000,
          minute: showFigures(view.minute),
          points: view.points.map((point) => ({ at: showMoment(point.atMs), ...showFigures(point) })),
          refusals: view.refusals.map((one) => ({ ...one })),
          failed_calls: view.failedCalls.map((one) => ({ ...one })),
          paused: [...health].flatMap(([provider, { pauses }]) =>
            pauses
              .filter(({ untilMs }) => untilMs > nowMs)
              .map(({ model, untilMs }) => ({ provider, model, until: showMoment(untilMs) })),
          ),
          in_flight: sum('in_flight'),
          unposted_bytes: sum('unposted_bytes'),
          unreported_bytes: sum('unreported_bytes'),
          quarantined_files: sum('quarantined_files'),
          blocked_processes: sum('blocked'),
          processes: present.length,
          silent_processes: states.length - present.length,
        },
      };
    },
  });
}
