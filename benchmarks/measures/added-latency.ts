// P7 and P8: the latency that a proxy adds to a request, at a rate that all proxies bear easily: 2,000 requests a
// second, minus the latency of the same requests without a proxy. They are sent by a schedule, whatever the replies do.

import { isPortkey } from '../harness/portkey.ts';
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

const REQUESTS_PER_SECOND = 2000;

const cpuUs = (sample: Sample): number => sample.cpuNs / sample.result.requests / 1000;

export const addedLatency: Measure = {
  ids: ['P7', 'P8'],
  async run(run) {
    const proxies = [...run.proxies.values()].filter((proxy) => !isPortkey(proxy));
    const samples = await interleave(run, [run.direct, ...proxies], (proxy) => ({
      kind: 'rate',
      target: targetOf(proxy, 'json/1024', '1k', 1024),
      requestsPerSecond: REQUESTS_PER_SECOND,
      warmupMs: run.warmupMs,
      durationMs: run.windowMs * 2,
    }));
    const cpu = medians(samples, cpuUs);
    delete cpu.direct;
    const subject = subjectOf(run);
    return [
      latencyRow(
        run,
        'P7',
        'p50',
        2,
        medians(samples, (sample) => sample.result.latencyUs.p50),
      ),
      latencyRow(
        run,
        'P8',
        'p99',
        5,
        medians(samples, (sample) => sample.result.latencyUs.p99),
      ),
      {
        id: 'P7',
        what: `CPU per request at ${REQUESTS_PER_SECOND}/s`,
        unit: 'µs',
        values: cpu,
        figure: ratio(samples, subject, 'nginx', cpuUs),
        goal: null,
        goalIs: 'at most',
      },
    ];
  },
};

function latencyRow(
  run: Run,
  id: string,
  quantile: string,
  goal: number,
  latency: Readonly<Record<string, number>>,
): Row {
  const base = latency.direct ?? 0;
  const added = Object.fromEntries(
    Object.entries(latency).map(([name, us]) => [name, name === 'direct' ? us : us - base]),
  );
  const [ours, nginx] = [added[subjectOf(run)], added.nginx];
  return {
    id,
    what: `added ${quantile} at ${REQUESTS_PER_SECOND}/s (direct: its own)`,
    unit: 'µs',
    values: added,
    figure: ours === undefined || nginx === undefined || nginx <= 0 ? null : ours / nginx,
    goal,
    goalIs: 'at most',
  };
}
