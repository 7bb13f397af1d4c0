// P10 and P11: what thousands of open, nearly silent streams cost the other requests, and how much memory the streams
// take.

import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../harness/median.ts';
import type { Proxy } from '../harness/proxies.ts';
import { type Measure, type Row, type Run, residentBytes, sample, subjectOf, targetOf } from './measure.ts';

const STREAMS = 5000;
const CONNECTIONS = 64;
const MEBIBYTE = 1024 * 1024;
const NAMES = ['nginx', 'bare', 'tollgate'];

interface Cost {
  readonly withoutUs: number;
  readonly withUs: number;
  readonly idleBytes: number;
  readonly loadedBytes: number;
  readonly perStreamBytes: number;
}

export const openStreams: Measure = {
  ids: ['P10', 'P11'],
  async run(run) {
    const costs = new Map<string, Cost>();
    for (const name of NAMES) {
      const proxy = run.proxies.get(name);
      if (proxy !== undefined) costs.set(name, await measureProxy(run, proxy));
    }
    const ours = costs.get(subjectOf(run));
    const values = (figure: (cost: Cost) => number): Record<string, number> =>
      Object.fromEntries([...costs].map(([name, cost]) => [name, figure(cost)]));
    const rows: Row[] = [
      {
        id: 'P10',
        what: `CPU per request with ${STREAMS} open streams ÷ with none, core full`,
        unit: '×',
        values: values((cost) => cost.withUs / cost.withoutUs),
        figure: ours === undefined ? null : ours.withUs / ours.withoutUs,
        goal: 1.5,
        goalIs: 'at most',
      },
      {
        id: 'P11',
        what: 'resident memory, started and idle',
        unit: 'MB',
        values: values((cost) => cost.idleBytes / MEBIBYTE),
        figure: ours === undefined ? null : ours.idleBytes / MEBIBYTE,
        goal: 150,
        goalIs: 'at most',
      },
      {
        id: 'P11',
        what: 'resident memory after all the load',
        unit: 'MB',
        values: values((cost) => cost.loadedBytes / MEBIBYTE),
        figure: null,
        goal: null,
        goalIs: 'at most',
      },
      {
        id: 'P11',
        what: 'memory per open stream',
        unit: 'KB',
        values: values((cost) => cost.perStreamBytes / 1024),
        figure: ours === undefined ? null : ours.perStreamBytes / 1024,
        goal: 60,
        goalIs: 'at most',
      },
    ];
    return rows;
  },
};

async function measureProxy(run: Run, proxy: Proxy): Promise<Cost> {
  const requests = async (): Promise<number> => {
    const taken = await sample(run.load, proxy, {
      kind: 'closed',
      target: targetOf(proxy, 'json/1024', '1k', 1024),
      connections: CONNECTIONS,
      thinkMs: 0,
      warmupMs: run.warmupMs,
      durationMs: run.windowMs,
    });
    return taken.cpuNs / taken.result.requests / 1000;
  };
  const without: number[] = [];
  const withStreams: number[] = [];
  for (let round = 0; round < run.rounds; round++) without.push(await requests());
  const loadedBytes = residentBytes(proxy);
  const held = await run.background.hold({
    kind: 'hold',
    target: targetOf(proxy, 'events/1000/1/30000', 'stream', null),
    streams: STREAMS,
  });
  await sleep(run.warmupMs);
  const openBytes = residentBytes(proxy);
  for (let round = 0; round < run.rounds; round++) withStreams.push(await requests());
  const { errors, firstErrors } = await held.release();
  if (errors > 0)
    console.log(`  ! ${proxy.name}: ${errors} errors while holding streams, first: ${firstErrors.join('; ')}`);
  await sleep(500);
  return {
    withoutUs: median(without),
    withUs: median(withStreams),
    idleBytes: run.idleBytes.get(proxy.name) ?? 0,
    loadedBytes,
    perStreamBytes: (openBytes - loadedBytes) / STREAMS,
  };
}
