// R1 and R2: what auto routing itself adds to a request, without the time of the classifier, and whether preparing
// large conversations delays others. R1 sends the same bytes three ways: naming the model, routed in a known turn, and
// routed in a new conversation each time. R2 sends small requests beside conversations of a megabyte.

import { median } from '../harness/median.ts';
import { AUTO_MODEL, type Product, ROUTED_REPLY } from '../harness/product.ts';
import type { FixedRateJob, Target } from '../load/job.ts';
import { type Measure, type Row, type Run, sample, targetOf } from './measure.ts';

/** Rates so low that nothing queues: only the path of one request is measured. */
const RATES: Readonly<Record<string, number>> = { '1k': 200, '256k': 50 };
const BYSTANDERS_PER_SECOND = 500;
const PAUSE_BETWEEN_BODIES_MS = 20;
const SESSION = 'x-session-id';

/**
 * A request that names its model, a routed request in a known turn, and a routed request in its own new conversation.
 */
const WAYS = ['named', 'known turn', 'new turn'] as const;
type Way = (typeof WAYS)[number];

export const autoRouting: Measure = {
  ids: ['R1', 'R2'],
  async run(run) {
    const { product } = run;
    if (product === null) return [];
    const rows: Row[] = [];
    for (const body of Object.keys(RATES)) rows.push(...(await addedBy(run, product, body)));
    rows.push(...(await waitsBeside(run, product)));
    return rows;
  },
};

function targetFor(product: Product, way: Way, body: string): Target {
  const target = targetOf(product, ROUTED_REPLY, body, 1024);
  if (way === 'named') return target;
  const routed = { ...target, model: AUTO_MODEL };
  return way === 'new turn'
    ? { ...routed, freshHeader: SESSION }
    : { ...routed, headers: { ...target.headers, [SESSION]: 'bench' } };
}

interface Taken {
  readonly p50: number;
  readonly p99: number;
  readonly cpuUs: number;
  /** Mean time of the classifier's calls; 0 if there was none. */
  readonly classifierUs: number;
}

async function addedBy(run: Run, product: Product, body: string): Promise<Row[]> {
  const taken: Record<Way, Taken[]> = { named: [], 'known turn': [], 'new turn': [] };
  for (let round = 0; round < run.rounds; round++) {
    for (const way of round % 2 === 0 ? WAYS : WAYS.toReversed())
      taken[way].push(await take(run, product, targetFor(product, way, body), RATES[body] ?? 1));
  }
  return (['known turn', 'new turn'] as const).map((way) => {
    const pairs = taken[way].map((one, round) => [one, taken.named[round] as Taken] as const);
    const over = (figure: (one: Taken) => number) => median(pairs.map(([one, named]) => figure(one) - figure(named)));
    const classifierUs = median(taken[way].map((one) => one.classifierUs));
    const added = over(({ p50, classifierUs: asked }) => p50 - asked);
    const rest =
      `p99 ${over(({ p99, classifierUs: asked }) => p99 - asked).toFixed(0)}, ` +
      `CPU ${over(({ cpuUs }) => cpuUs).toFixed(0)}`;
    return {
      id: 'R1',
      what: `added p50 of ${way === 'new turn' ? 'a new turn' : 'a known turn'}, ${body}`,
      unit: 'µs',
      values: { tollgate: added },
      figure: added,
      goal: null,
      goalIs: 'at most',
      note: way === 'new turn' ? `${rest}; without the classifier's ${classifierUs.toFixed(0)}` : rest,
    };
  });
}

async function take(run: Run, product: Product, target: Target, requestsPerSecond: number): Promise<Taken> {
  const job: FixedRateJob = {
    kind: 'rate',
    target,
    requestsPerSecond,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs * 2,
  };
  const before = await classifierOf(product);
  const { result, cpuNs } = await sample(run.load, product, job);
  const after = await classifierOf(product);
  if (result.errors > 0)
    throw new Error(
      `${target.model}, ${target.body}: ${result.errors} errors, first: ${result.firstErrors.join('; ')}`,
    );
  const calls = after.calls - before.calls;
  return {
    p50: result.latencyUs.p50,
    p99: result.latencyUs.p99,
    cpuUs: cpuNs / result.requests / 1000,
    classifierUs: calls === 0 ? 0 : (1e6 * (after.seconds - before.seconds)) / calls,
  };
}

async function classifierOf(product: Product): Promise<{ calls: number; seconds: number }> {
  const metrics = await product.metrics();
  return {
    calls: valueOf(metrics, 'tollgate_classifier_seconds_count'),
    seconds: valueOf(metrics, 'tollgate_classifier_seconds_sum'),
  };
}

function valueOf(metrics: string, name: string): number {
  const line = metrics.split('\n').find((text) => text.startsWith(`${name} `) || text.startsWith(`${name}{`));
  return line === undefined ? 0 : Number(line.slice(line.lastIndexOf(' ') + 1));
}

/**
 * Small requests beside conversations of a megabyte, which come one after the other: first conversations that are
 * prepared for routing, then the same bytes to a named model.
 */
async function waitsBeside(run: Run, product: Product): Promise<Row[]> {
  const rows: Row[] = [];
  for (const body of ['1m', 'unbroken-run-1m']) {
    const worst: Record<string, number[]> = { named: [], 'new turn': [] };
    const delays: Record<string, number[]> = { named: [], 'new turn': [] };
    let prepared = 0;
    for (let round = 0; round < run.rounds; round++) {
      for (const way of round % 2 === 0 ? (['named', 'new turn'] as const) : (['new turn', 'named'] as const)) {
        const target = targetFor(product, way, body);
        // The gauge holds the longest delay since its last reading.
        await product.metrics();
        const [bystanders, large] = await Promise.all([
          run.load.run({
            kind: 'rate',
            target: targetFor(product, 'named', '1k'),
            requestsPerSecond: BYSTANDERS_PER_SECOND,
            warmupMs: run.warmupMs,
            durationMs: run.windowMs,
          }),
          run.background.run({
            kind: 'closed',
            target,
            connections: 1,
            thinkMs: PAUSE_BETWEEN_BODIES_MS,
            warmupMs: run.warmupMs,
            durationMs: run.windowMs,
          }),
        ]);
        if (large.errors > 0)
          throw new Error(`${body}, ${way}: ${large.errors} errors, first: ${large.firstErrors.join('; ')}`);
        if (way === 'new turn') prepared += large.requests;
        worst[way]?.push(bystanders.latencyUs.p99 / 1000);
        delays[way]?.push(1000 * valueOf(await product.metrics(), 'tollgate_event_loop_delay_max_seconds'));
      }
    }
    const figure = median((worst['new turn'] ?? []).map((ms, round) => ms - (worst['named']?.[round] ?? 0)));
    const delay = (way: string) => median(delays[way] ?? []).toFixed(1);
    rows.push({
      id: 'R2',
      what: `p99 of small requests beside conversations of ${body}, over the same bytes unrouted`,
      unit: 'ms',
      values: { tollgate: figure },
      figure,
      goal: null,
      goalIs: 'at most',
      note: `longest delay of the event loop ${delay('new turn')}, unrouted ${delay('named')}; ${prepared} prepared`,
    });
  }
  return rows;
}
