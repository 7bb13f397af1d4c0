// P12: for how long one large body, however awkward, keeps everybody else waiting.

import type { Proxy } from '../harness/proxies.ts';
import type { ClosedLoopJob } from '../load/job.ts';
import { MEGABYTE_BODIES } from '../load/request-bodies.ts';
import { type Measure, median, type Row, type Run, sample, subjectOf, targetOf } from './measure.ts';

/** The bystanders: small requests at this rate, one of which is always about to be delayed. */
const BYSTANDERS_PER_SECOND = 1000;
const PAUSE_BETWEEN_BODIES_MS = 100;
const NAMES = ['nginx', 'bare', 'tollgate'];

interface Stall {
  /** Worst bystander of a window, median over the rounds: a stall of the machine hits some rounds, a stall of the proxy hits all. */
  readonly worstMs: number;
  /** CPU of the proxy per large body: no stall of its own can be longer. */
  readonly cpuMs: number;
}

export const stalls: Measure = {
  ids: ['P12'],
  async run(run) {
    const rows: Row[] = [];
    const subject = subjectOf(run);
    let worst: { body: string; stall: Stall } | null = null;
    for (const body of MEGABYTE_BODIES) {
      const byProxy = new Map<string, Stall>();
      for (const name of NAMES) {
        const proxy = run.proxies.get(name);
        if (proxy !== undefined) byProxy.set(name, await measureBody(run, proxy, body));
      }
      const stall = byProxy.get(subject);
      if (stall !== undefined && (worst === null || stall.worstMs > worst.stall.worstMs)) worst = { body, stall };
      rows.push({
        id: 'P12',
        what: `longest wait of a bystander, ${body}`,
        unit: 'ms',
        values: Object.fromEntries([...byProxy].map(([name, value]) => [name, value.worstMs])),
        figure: stall?.worstMs ?? null,
        goal: 10,
        goalIs: 'at most',
        note: `CPU per body: ${[...byProxy].map(([name, value]) => `${name} ${value.cpuMs.toFixed(2)}`).join(', ')} ms`,
      });
    }
    return rows;
  },
};

async function measureBody(run: Run, proxy: Proxy, body: string): Promise<Stall> {
  const worstMs: number[] = [];
  const cpuMs: number[] = [];
  const bodies = (thinkMs: number): ClosedLoopJob => ({
    kind: 'closed',
    target: targetOf(proxy, 'json/1024', body, 1024),
    connections: 1,
    thinkMs,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs,
  });
  for (let round = 0; round < run.rounds; round++) {
    const alone = await sample(run.load, proxy, bodies(0));
    cpuMs.push(alone.cpuNs / alone.result.requests / 1e6);
    const [bystanders, awkward] = await Promise.all([
      run.load.run({
        kind: 'rate',
        target: targetOf(proxy, 'json/1024', '1k', 1024),
        requestsPerSecond: BYSTANDERS_PER_SECOND,
        warmupMs: run.warmupMs,
        durationMs: run.windowMs,
      }),
      run.background.run(bodies(PAUSE_BETWEEN_BODIES_MS)),
    ]);
    for (const { errors, firstErrors } of [alone.result, awkward]) {
      if (errors > 0) console.log(`  ! ${proxy.name}, ${body}: ${errors} errors, first: ${firstErrors.join('; ')}`);
    }
    worstMs.push(bystanders.latencyUs.max / 1000);
  }
  return { worstMs: median(worstMs), cpuMs: median(cpuMs) };
}
