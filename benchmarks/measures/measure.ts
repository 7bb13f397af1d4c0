// What a measure is: it runs interleaved rounds over the proxies of the run and reports rows of the table of goals.

import { cpuNsOf, memoryOf, schedulerWaitNs } from '../harness/cpu-time.ts';
import type { LoadClient } from '../harness/load-client.ts';
import { median } from '../harness/median.ts';
import type { Product } from '../harness/product.ts';
import type { Proxy, StubReply } from '../harness/proxies.ts';
import type { ClosedLoopJob, FixedRateJob, JobResult, Target } from '../load/job.ts';

export interface Run {
  readonly load: LoadClient;
  /** A second load generator, for what goes on in the background. */
  readonly background: LoadClient;
  readonly direct: Proxy;
  /** The proxies of this run by name: nginx, bare, front, tollgate, portkey. */
  readonly proxies: ReadonlyMap<string, Proxy>;
  readonly product: Product | null;
  /** Resident memory of each proxy just after its start, before any request. */
  readonly idleBytes: ReadonlyMap<string, number>;
  readonly rounds: number;
  readonly windowMs: number;
  readonly warmupMs: number;
}

/** One line of the table. */
export interface Row {
  readonly id: string;
  readonly what: string;
  readonly unit: string;
  readonly values: Readonly<Record<string, number>>;
  /** The figure that the goal is about: a ratio, or a plain amount. */
  readonly figure: number | null;
  readonly goal: number | null;
  readonly goalIs: 'at most' | 'at least';
  readonly note?: string;
}

export interface Measure {
  readonly ids: readonly string[];
  run(run: Run): Promise<readonly Row[]>;
}

export function residentBytes(proxy: Proxy): number {
  return proxy.pids.reduce((total, pid) => total + memoryOf(pid).residentBytes, 0);
}

export interface Sample {
  readonly result: JobResult;
  /** CPU of the proxy's processes while measuring. */
  readonly cpuNs: number;
  /**
   * The share of the window in which the proxy ran or waited for its core. It is near 1 when the proxy is the
   * bottleneck, whatever else the machine does.
   */
  readonly saturation: number;
}

type MeasuredJob = ClosedLoopJob | FixedRateJob;

/**
 * Runs one job against one proxy and reads the proxy's CPU at both ends of the measuring window. `onMeasuring` is
 * called at the window's beginning.
 */
export async function sample(
  load: LoadClient,
  proxy: Proxy,
  job: MeasuredJob,
  onMeasuring: () => void = () => {},
): Promise<Sample> {
  let cpuStart = 0;
  let waitStart = 0;
  let startedAtMs = 0;
  const result = await load.run(job, () => {
    cpuStart = cpuNsOf(proxy.pids);
    waitStart = schedulerWaitNs(proxy.pids);
    startedAtMs = performance.now();
    onMeasuring();
  });
  const cpuNs = cpuNsOf(proxy.pids) - cpuStart;
  const waitNs = schedulerWaitNs(proxy.pids) - waitStart;
  return { result, cpuNs, saturation: (cpuNs + waitNs) / ((performance.now() - startedAtMs) * 1e6) };
}

/**
 * How long each load runs before the first window that counts. V8 compiles code again that meets new cases, and it
 * grows the young generation by what survives, anew after each pause. The product's first window of P1 had 0.7 s of
 * compiling and 47 small collections; later windows have 20.
 */
const PASSED_BEFORE_MS = 3_000;

/** Samples by proxy name: each round visits every proxy, and every other round in the opposite order. */
export async function interleave(
  run: Run,
  proxies: readonly Proxy[],
  makeJob: (proxy: Proxy) => MeasuredJob,
): Promise<ReadonlyMap<string, readonly Sample[]>> {
  const samples = new Map<string, Sample[]>(proxies.map((proxy) => [proxy.name, []]));
  for (const proxy of proxies) await run.load.run({ ...makeJob(proxy), warmupMs: 0, durationMs: PASSED_BEFORE_MS });
  for (let round = 0; round < run.rounds; round++) {
    for (const proxy of round % 2 === 0 ? proxies : proxies.toReversed()) {
      const taken = await sample(run.load, proxy, makeJob(proxy));
      reportErrors(proxy, taken.result);
      samples.get(proxy.name)?.push(taken);
    }
  }
  return samples;
}

/** Throws if too many requests failed: their figure would mean nothing. */
export function reportErrors(proxy: Proxy, result: JobResult): void {
  if (result.requests === 0) throw new Error(`${proxy.name} answers no request`);
  if (result.errors === 0) return;
  console.log(`  ! ${proxy.name}: ${result.errors} errors, first: ${result.firstErrors.join('; ')}`);
  if (result.errors > result.requests / 100) throw new Error(`${proxy.name} fails too many requests to be measured`);
}

export function targetOf(proxy: Proxy, reply: StubReply, body: string, replyBytes: number | null): Target {
  const { path, headers, model } = proxy.address(reply);
  return { port: proxy.port, path, headers, body, model, replyBytes: proxy.exactBytes ? replyBytes : null };
}

/** The median of one figure over each proxy's samples. */
export function medians(
  samples: ReadonlyMap<string, readonly Sample[]>,
  figure: (sample: Sample) => number,
): Record<string, number> {
  return Object.fromEntries([...samples].map(([name, taken]) => [name, median(taken.map(figure))]));
}

/**
 * The median of one proxy's figure ÷ another's, in each round: whatever slows the machine for a while slows both halves
 * of a pair. null if one of the two is not part of this run.
 */
export function ratio(
  samples: ReadonlyMap<string, readonly Sample[]>,
  name: string,
  base: string,
  figure: (sample: Sample) => number,
): number | null {
  const [taken, baseTaken] = [samples.get(name), samples.get(base)];
  if (taken === undefined || baseTaken === undefined) return null;
  return median(taken.map((sample, round) => figure(sample) / figure(baseTaken[round] as Sample)));
}

/** The proxy that the goals are about: the product; if there is none, the bare relay. */
export function subjectOf(run: Run): string {
  return run.product === null ? 'bare' : run.product.name;
}
