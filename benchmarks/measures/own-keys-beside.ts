// P18: CPU per request of an organization without own provider keys, on an installation where many others have some and
// send requests with them, over the same on one where nobody has any.

import { request } from 'node:http';
import { type Product, startProduct } from '../harness/product.ts';
import { modelOf } from '../harness/proxies.ts';
import type { ClosedLoopJob } from '../load/job.ts';
import {
  type Measure,
  medians,
  type Row,
  type Run,
  ratio,
  reportErrors,
  type Sample,
  sample,
  targetOf,
} from './measure.ts';

const REPLY = 'json/1024';
const REPLY_BYTES = 1024;
const KIND = REPLY.replaceAll('/', '-');
const ORGANIZATIONS = 200;
const SIZES = ['1k', '16k'] as const;
const GOAL = 1.02;
/** Short windows, many of them: the halves of a pair meet the same machine. */
const ROUNDS_IN_ONE = 6;
const PASSED_BEFORE_MS = 3_000;

const cpuUs = ({ cpuNs, result }: Sample): number => cpuNs / result.requests / 1_000;
const keyOf = (index: number): string => `tg-bench-own-${index}-${'k'.repeat(24)}`;

export const ownKeysBeside: Measure = {
  ids: ['P18'],
  async run(run) {
    if (run.product === null) return [];
    const plain = await startProduct(run.direct.port, undefined, null, { name: 'without', client: 'own', http: 1 });
    const beside = await startProduct(run.direct.port, undefined, null, {
      name: 'beside',
      client: 'own',
      http: 1,
      otherOrganizations: organizations(),
    });
    if (plain === null || beside === null) return [];
    try {
      await Promise.all([plain.suspendJobs(), beside.suspendJobs()]);
      const rows: Row[] = [];
      for (const size of SIZES) rows.push(await measure(run, [plain, beside], size));
      return rows;
    } finally {
      await Promise.all([plain.stop(), beside.stop()]);
    }
  },
};

function organizations(): string {
  return Array.from(
    { length: ORGANIZATIONS },
    (_, index) => `  - slug: own-${index}
    billing: none
    users: [{ email: own-${index}@bench.test, role: owner }]
    keys: [{ name: bench, user: own-${index}@bench.test, secret: ${keyOf(index)} }]
    byok: { enabled: true }
    provider_credentials: [{ kind: ${KIND}, name: ours, secret: sk-own-${index}-0123456789 }]
`,
  ).join('');
}

async function measure(run: Run, products: readonly [Product, Product], size: string): Promise<Row> {
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
    // The gateway holds keys, connections and what it remembers of every one of these organizations.
    await sendOwn(products[1]);
    for (const product of round % 2 === 0 ? products : products.toReversed()) {
      const taken = await sample(run.load, product, job(product, run.windowMs / ROUNDS_IN_ONE));
      reportErrors(product, taken.result);
      samples.get(product.name)?.push(taken);
    }
  }
  return {
    id: 'P18',
    what: `CPU of a ${size} request without own keys, beside ${ORGANIZATIONS} organizations with some, over alone`,
    unit: 'µs',
    values: medians(samples, cpuUs),
    figure: ratio(samples, 'beside', 'without', cpuUs),
    goal: GOAL,
    goalIs: 'at most',
  };
}

/** One request of each organization with a key of its own. */
async function sendOwn({ port }: Product): Promise<void> {
  for (let index = 0; index < ORGANIZATIONS; index++) {
    const status = await post(port, keyOf(index));
    if (status !== 200) throw new Error(`a request on an own key is answered with ${status}`);
  }
}

function post(port: number, key: string): Promise<number> {
  const body = JSON.stringify({ model: modelOf(REPLY), max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: '/v1/chat/completions', method: 'POST', headers });
    sent.on('error', reject);
    sent.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.end(body);
  });
}
