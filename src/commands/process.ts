// `tollgate process`: shows the state of the gateway and jobs processes of all machines, and what they serve at this
// time.

import { isSilent, type LiveView, liveView, type ProcessState } from '../domain/processes/live-figures.ts';
import { systemClock } from '../platform/clock.ts';
import { readBeatCounts, readProcesses } from '../storage/postgres/processes/beats.ts';
import { type Command, type CommandContext, expectAction, parseArguments } from './command/command.ts';
import { withDatabase } from './command/database.ts';

export const processCommand: Command = {
  usage: ['tollgate process list', 'tollgate process live'],
  summary:
    'Lists the gateway and jobs processes of all machines, by their reports of the last seconds. live: what all ' +
    'gateways together served in the last minute.',
  run,
};

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { positionals } = parseArguments(args, {});
  const action = expectAction(positionals, ['list', 'live']);
  const nowMs = systemClock.nowMs();
  await withDatabase(environment, async (postgres) => {
    if (action === 'list')
      for (const state of await readProcesses(postgres, nowMs)) print(describeProcess(state, nowMs));
    else for (const line of describeLive(liveView(await readBeatCounts(postgres, nowMs), nowMs))) print(line);
  });
  return 0;
}

/** Also used by `tollgate status`. */
export function describeProcess(state: ProcessState, nowMs: number): string {
  const { machine, kind, pid, version, gauges, lastBeatAtMs } = state;
  const seen = isSilent(state, nowMs) ? `SILENT for ${Math.round((nowMs - lastBeatAtMs) / 1_000)} s` : 'runs';
  const figures = Object.entries(gauges).map(([name, value]) => `${name} ${Math.round(value * 1_000) / 1_000}`);
  return `${machine}  ${kind} ${pid}  ${version}  ${seen}  ${figures.join('  ')}`;
}

function describeLive({ minute, refusals, failedCalls }: LiveView): string[] {
  const { latency, firstByte } = minute;
  const inMs = (value: number | null): string => (value === null ? '-' : `${Math.round(value)} ms`);
  return [
    `last minute: ${minute.requests} requests, ${minute.requestsPerSecond.toFixed(1)} a second`,
    `errors ${minute.errors}  refused ${minute.refusals}  failed calls ${minute.failedCalls}`,
    `latency p50 ${inMs(latency.p50Ms)}  p95 ${inMs(latency.p95Ms)}  p99 ${inMs(latency.p99Ms)}`,
    `first byte p50 ${inMs(firstByte.p50Ms)}  p95 ${inMs(firstByte.p95Ms)}  p99 ${inMs(firstByte.p99Ms)}`,
    ...refusals.map(({ code, count }) => `refused in five minutes: ${code} ${count}`),
    ...failedCalls.map(({ provider, kind, count }) => `failed calls in five minutes: ${provider} ${kind} ${count}`),
  ];
}
