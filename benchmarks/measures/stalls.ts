// P12: how long one large body (a megabyte), however awkward, delays everybody else. Small requests arrive every
// millisecond; the figure is their longest wait, median over the rounds. A round visits every kind of body before the
// next begins.

import { median } from '../harness/median.ts';
import type { Proxy } from '../harness/proxies.ts';
import type { ClosedLoopJob } from '../load/job.ts';
import { MEGABYTE_BODIES } from '../load/request-bodies.ts';
import { type Measure, type Row, type Run, sample, subjectOf, targetOf } from './measure.ts';

/** The rate of the small requests, so high that one is always about to be delayed. */
const BYSTANDERS_PER_SECOND = 1000;
const PAUSE_BETWEEN_BODIES_MS = 100;
/**
 * `direct` is included: the waits that the machine, the stub and the load generator cause are in every other figure as
 * well.
 */
const NAMES = ['direct', 'nginx', 'bare', 'tollgate'];

interface Stall {
  /** The longest wait of a small request in a window. */
  readonly worstMs: number;
  /** CPU of the proxy per large body: a stall that the proxy causes cannot be longer. */
  readonly cpuMs: number;
}

export const stalls: Measure = {
  ids: ['P12'],
  async run(run) {
    const proxies = [run.direct, ...run.proxies.values()].filter((proxy) => NAMES.includes(proxy.name));
    const taken = new Map(
      MEGABYTE_BODIES.map((body) => [body, new Map<string, Stall[]>(proxies.map(({ name }) => [name, []]))]),
    );
    // A round visits every body before the next begins. A busy half minute then spoils one round of each kind, and the
    // median ignores it.
    for (let round = 0; round < run.rounds; round++) {
      for (const [body, byProxy] of taken) {
        for (const proxy of round % 2 === 0 ? proxies : proxies.toReversed())
          byProxy.get(proxy.name)?.push(await stallOf(run, proxy, body));
      }
    }
    return [...taken].map(([body, byProxy]) => rowOf(body, byProxy, subjectOf(run)));
  },
};

function rowOf(body: string, byProxy: ReadonlyMap<string, readonly Stall[]>, subject: string): Row {
  const values = Object.fromEntries(
    [...byProxy].map(([name, stalls]) => [name, median(stalls.map(({ worstMs }) => worstMs))]),
  );
  const cpu = [...byProxy]
    .filter(([name]) => name !== 'direct')
    .map(([name, stalls]) => `${name} ${median(stalls.map(({ cpuMs }) => cpuMs)).toFixed(2)}`);
  return {
    id: 'P12',
    what: `longest wait of a bystander, ${body}`,
    unit: 'ms',
    values,
    figure: values[subject] ?? null,
    goal: 10,
    goalIs: 'at most',
    note: `CPU per body: ${cpu.join(', ')} ms`,
  };
}

/** One window with the body alone, for its CPU, and one with the body every 100 ms among bystanders. */
async function stallOf(run: Run, proxy: Proxy, body: string): Promise<Stall> {
  const bodies = (thinkMs: number): ClosedLoopJob => ({
    kind: 'closed',
    target: targetOf(proxy, 'json/1024', body, 1024),
    connections: 1,
    thinkMs,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs,
  });
  const alone = await sample(run.load, proxy, bodies(0));
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
  return { worstMs: bystanders.latencyUs.max / 1000, cpuMs: alone.cpuNs / alone.result.requests / 1e6 };
}
