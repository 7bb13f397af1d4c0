// P1 to P3, P5, P6: CPU per request and requests per second of one process. Each proxy is driven until its core is full
// (64 connections, 32 for 256 KB). These rows have three times as many rounds as others, with windows a third as long.
// A row says when a core was not full: a proxy that idles between requests pays up to three times as much for waking
// up.

import { median } from '../harness/median.ts';
import { isPortkey } from '../harness/portkey.ts';
import type { StubReply } from '../harness/proxies.ts';
import {
  interleave,
  type Measure,
  medians,
  type Row,
  type Run,
  ratio,
  type Sample,
  subjectOf,
  targetOf,
} from './measure.ts';

const REPLY: StubReply = 'json/1024';
const REPLY_BYTES = 1024;
/** Below this share the proxy was not the bottleneck. Its figure then includes waking up, and the row says so. */
const SATURATION_MIN = 0.85;
/** Portkey answers about a thousand requests a second; more connections would only time out. */
const PORTKEY_CONNECTIONS = 16;

/**
 * Each round of the run is this many rounds here, with windows shorter by the same factor: a busy machine changes
 * within two seconds, and both halves of a pair must run on it in the same state.
 */
const ROUNDS_IN_ONE = 3;

const SIZES = [
  { id: 'P1', body: '1k', connections: 64, limit: 2.1 },
  { id: 'P2', body: '16k', connections: 64, limit: 2.1 },
  { id: 'P3', body: '256k', connections: 32, limit: 2 },
] as const;

const cpuUs = (sample: Sample): number => sample.cpuNs / sample.result.requests / 1000;

export const cpuPerRequest: Measure = {
  ids: ['P1', 'P2', 'P3', 'P5', 'P6'],
  async run(run) {
    const closer: Run = {
      ...run,
      rounds: run.rounds * ROUNDS_IN_ONE,
      windowMs: run.windowMs / ROUNDS_IN_ONE,
      warmupMs: run.warmupMs / ROUNDS_IN_ONE,
    };
    const rows: Row[] = [];
    for (const size of SIZES) rows.push(...(await measureSize(closer, size)));
    return rows;
  },
};

async function measureSize(run: Run, { id, body, connections, limit }: (typeof SIZES)[number]): Promise<Row[]> {
  const proxies = [...run.proxies.values()].filter((proxy) => !isPortkey(proxy) || id === 'P1');
  const samples = await interleave(run, proxies, (proxy) => ({
    kind: 'closed',
    target: targetOf(proxy, REPLY, body, REPLY_BYTES),
    connections: isPortkey(proxy) ? PORTKEY_CONNECTIONS : connections,
    thinkMs: 0,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs,
  }));
  const cpu = medians(samples, cpuUs);
  const subject = subjectOf(run);
  const unfilled = [...samples]
    .filter(([, taken]) => median(taken.map((sample) => sample.saturation)) < SATURATION_MIN)
    .map(([name]) => name);
  const row: Row = {
    id,
    what: `CPU per request, ${body} request, core full`,
    unit: 'µs',
    values: cpu,
    figure: ratio(samples, subject, 'nginx', cpuUs),
    goal: limit,
    goalIs: 'at most',
  };
  const rows: Row[] = [unfilled.length === 0 ? row : { ...row, note: `core not full: ${unfilled.join(', ')}` }];
  if (id !== 'P1') return rows;
  const perSecond = Object.fromEntries(
    [...samples].map(([name, taken]) => [name, Math.max(...taken.map((sample) => sample.result.requestsPerSecond))]),
  );
  rows.push(
    {
      id: 'P5',
      what: 'CPU per request, Portkey ÷ ours',
      unit: 'µs',
      values: pick(cpu, [subject, 'portkey']),
      figure: ratio(samples, 'portkey', subject, cpuUs),
      goal: 20,
      goalIs: 'at least',
    },
    {
      id: 'P5',
      what: 'the same, Portkey on the Node that runs us',
      unit: 'µs',
      values: pick(cpu, [subject, 'portkey22']),
      figure: ratio(samples, 'portkey22', subject, cpuUs),
      goal: null,
      goalIs: 'at least',
    },
    {
      id: 'P6',
      what: 'requests per second of one process, best round',
      unit: '/s',
      values: perSecond,
      figure:
        perSecond[subject] === undefined || perSecond.nginx === undefined ? null : perSecond[subject] / perSecond.nginx,
      goal: 0.5,
      goalIs: 'at least',
    },
  );
  return rows;
}

function pick(values: Readonly<Record<string, number>>, names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]])));
}
