// P4 and P13: CPU per stream event and how late an event reaches the client, at the same load for every proxy: 100
// streams with an event every 5 ms, and 50 streams with 16 events back to back every 16 ms. An event carries the stub's
// send time on the machine's monotonic clock.

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

interface StreamLoad {
  readonly reply: StubReply;
  readonly streams: number;
  readonly what: string;
  readonly goal: number;
}

const PACED: StreamLoad = { reply: 'events/200/1/5', streams: 100, what: 'events 5 ms apart, 100 streams', goal: 2 };
/** 16 events back to back every 16 ms: as dense as a burst, and the same load for every proxy whatever it can bear. */
const BURST: StreamLoad = { reply: 'events/400/16/16', streams: 50, what: 'bursts of 16 events, 50 streams', goal: 1 };

const cpuUs = (sample: Sample): number => sample.cpuNs / sample.result.events / 1000;

export const streamEvents: Measure = {
  ids: ['P4', 'P13'],
  async run(run) {
    return [...(await measureStreams(run, PACED, true)), ...(await measureStreams(run, BURST, false))];
  },
};

async function measureStreams(
  run: Run,
  { reply, streams, what, goal }: StreamLoad,
  withLatency: boolean,
): Promise<Row[]> {
  const proxies = [...run.proxies.values()].filter(
    (proxy) => proxy.name !== 'portkey22' && (!isPortkey(proxy) || withLatency),
  );
  const samples = await interleave(run, withLatency ? [run.direct, ...proxies] : proxies, (proxy) => ({
    kind: 'closed',
    // Portkey spends about 50 µs on an event, so it would not keep up with the full load.
    target: targetOf(proxy, reply, 'stream', null),
    connections: isPortkey(proxy) ? streams / 2 : streams,
    thinkMs: 0,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs,
  }));
  const subject = subjectOf(run);
  const cpu = medians(samples, cpuUs);
  delete cpu.direct;
  const rows: Row[] = [
    {
      id: 'P4',
      what: `CPU per event, ${what}`,
      unit: 'µs',
      values: cpu,
      figure: ratio(samples, subject, 'nginx', cpuUs),
      goal,
      goalIs: 'at most',
    },
  ];
  if (!withLatency) return rows;
  for (const [quantile, most] of [
    ['p50', 2],
    ['p99', 10],
  ] as const) {
    const eventUs = (sample: Sample): number => sample.result.eventUs[quantile];
    const latency = medians(samples, eventUs);
    rows.push({
      id: 'P13',
      what: `${quantile} from stub to client, ${what}`,
      unit: 'µs',
      values: latency,
      figure: ratio(samples, subject, 'nginx', eventUs),
      goal: most,
      goalIs: 'at most',
    });
  }
  return rows;
}
