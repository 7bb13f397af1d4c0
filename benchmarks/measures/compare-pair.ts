// P18: CPU per request that does not use a part of the product, on an installation where others use that part ÷ on one
// without it.

import type { Product } from '../harness/product.ts';
import type { ClosedLoopJob } from '../load/job.ts';
import { medians, type Row, type Run, ratio, reportErrors, type Sample, sample, targetOf } from './measure.ts';

const REPLY = 'json/1024';
const REPLY_BYTES = 1024;
const GOAL = 1.02;
/** One round is this many short windows, so that both halves of a pair run on the machine in the same state. */
const ROUNDS_IN_ONE = 6;
const PASSED_BEFORE_MS = 3_000;

const cpuUs = ({ cpuNs, result }: Sample): number => cpuNs / result.requests / 1_000;

interface Comparison {
  /** The request's body: a name of load/request-bodies.ts. */
  readonly size: string;
  readonly what: string;
  /** What the other organizations do before each pair of windows. */
  readonly use: () => Promise<void>;
}

/** Compares two installations: the first is without the part, the second has it. */
export async function comparePair(
  run: Run,
  products: readonly [Product, Product],
  { size, what, use }: Comparison,
): Promise<Row> {
  const job = (product: Product, durationMs: number): ClosedLoopJob => ({
    kind: 'closed',
    target: targetOf(product, REPLY, size, REPLY_BYTES),
    connections: 64,
    thinkMs: 0,
    warmupMs: 100,
    durationMs,
  });
  const samples = new Map<string, Sample[]>(products.map(({ name }) => [name, []]));
  for (const product of products) await run.load.run(job(product, PASSED_BEFORE_MS));
  for (let round = 0; round < run.rounds * ROUNDS_IN_ONE; round++) {
    await use();
    for (const product of round % 2 === 0 ? products : products.toReversed()) {
      const taken = await sample(run.load, product, job(product, run.windowMs / ROUNDS_IN_ONE));
      reportErrors(product, taken.result);
      samples.get(product.name)?.push(taken);
    }
  }
  const [without, beside] = products;
  return {
    id: 'P18',
    what,
    unit: 'µs',
    values: medians(samples, cpuUs),
    figure: ratio(samples, beside.name, without.name, cpuUs),
    goal: GOAL,
    goalIs: 'at most',
  };
}
