// `node benchmarks/compare.ts <directory of another checkout>`: runs the product of this checkout and of the other one
// in many short interleaved windows. It prints what a change to the warm path is worth: the median of the pairs' ratios
// (this checkout ÷ the other) and the range of their middle half.

import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { startNodeServer } from './harness/child-server.ts';
import { LOAD_CORE } from './harness/cores.ts';
import { LoadClient } from './harness/load-client.ts';
import { median } from './harness/median.ts';
import { type Product, startProduct } from './harness/product.ts';
import type { StubReply } from './harness/proxies.ts';
import { type Sample, sample, targetOf } from './measures/measure.ts';

interface Load {
  readonly reply: StubReply;
  readonly body: string;
  readonly connections: number;
  /** How long a client rests between an answer and its next request. */
  readonly thinkMs?: number;
  /** The provider speaks TLS; its latency is 5 ms. */
  readonly isTls?: true;
  /** How many units of work a sample has: CPU is divided by this. */
  readonly unitsOf: (sample: Sample) => number;
}

/** The TLS provider, as in P15 (measures/tls-provider.ts). */
const TLS = {
  reply: 'json/1024/5',
  connections: 64,
  thinkMs: 25,
  isTls: true,
  unitsOf: ({ result }: Sample) => result.requests,
} as const;

const LOADS: Readonly<Record<string, Load>> = {
  '1k': { reply: 'json/1024', body: '1k', connections: 64, unitsOf: ({ result }) => result.requests },
  '16k': { reply: 'json/1024', body: '16k', connections: 64, unitsOf: ({ result }) => result.requests },
  '256k': { reply: 'json/1024', body: '256k', connections: 32, unitsOf: ({ result }) => result.requests },
  burst: { reply: 'events/400/16/16', body: 'stream', connections: 50, unitsOf: ({ result }) => result.events },
  'tls-1k': { ...TLS, body: '1k' },
  'tls-16k': { ...TLS, body: '16k' },
  paced: { reply: 'events/200/1/5', body: 'stream', connections: 100, unitsOf: ({ result }) => result.events },
};

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    load: { type: 'string', default: '1k' },
    pairs: { type: 'string', default: '40' },
    window: { type: 'string', default: '350' },
    after: { type: 'string', default: '1k' },
  },
});
const [other] = positionals;
const load = LOADS[flags.load];
/**
 * The load that both checkouts run first: how much V8 allocates before it collects the whole heap depends on what ran
 * before.
 */
const before = LOADS[flags.after];
if (other === undefined || load === undefined || before === undefined) {
  console.error(
    `usage: node benchmarks/compare.ts <directory of another checkout> ` +
      `[--load ${Object.keys(LOADS).join('|')}] [--pairs 40] [--window 350] [--after 1k]`,
  );
  process.exit(2);
}

const fileOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const CERTIFICATE = fileOf('../test/support/tls/localhost-certificate.pem');
const KEY = fileOf('../test/support/tls/localhost-key.pem');
const WARM_UP_MS = 3_000;
const WINDOW_WARM_UP_MS = 100;
const stopped: (() => Promise<void>)[] = [];
try {
  await compare(load, before, other);
} finally {
  for (const stop of stopped.toReversed()) await stop();
}

async function compare(measured: Load, first: Load, directory: string): Promise<void> {
  const stub = measured.isTls
    ? await startNodeServer(LOAD_CORE, fileOf('./stub/tls-provider-stub.ts'), [CERTIFICATE, KEY])
    : await startNodeServer(LOAD_CORE, fileOf('./stub/provider-stub.ts'), []);
  stopped.push(() => stub.stop());
  const client = await LoadClient.start();
  stopped.push(() => client.stop());
  const theirs = (await import(pathToFileURL(`${directory}/benchmarks/harness/product.ts`).href)) as {
    startProduct: typeof startProduct;
  };
  const products: Product[] = [];
  for (const start of [startProduct, theirs.startProduct]) {
    const product = await start(stub.port, undefined, measured.isTls ? CERTIFICATE : null);
    if (product === null) throw new Error('a checkout has no command to start');
    stopped.push(() => product.stop());
    products.push(product);
  }
  const [ours, others] = products as [Product, Product];
  const drive = (
    product: Product,
    { reply, body, connections, thinkMs = 0 }: Load,
    durationMs: number,
  ): Promise<Sample> =>
    sample(client, product, {
      kind: 'closed',
      target: targetOf(product, reply, body, null),
      connections,
      thinkMs,
      warmupMs: WINDOW_WARM_UP_MS,
      durationMs,
    });
  const take = (product: Product, durationMs: number): Promise<Sample> => drive(product, measured, durationMs);
  for (const product of products) await drive(product, first, WARM_UP_MS);
  await Promise.all(products.map((product) => product.suspendJobs()));
  for (const product of products) await take(product, WARM_UP_MS);
  const cost = (taken: Sample): number => taken.cpuNs / measured.unitsOf(taken) / 1000;
  const pairs: (readonly [number, number])[] = [];
  for (let pair = 0; pair < Number(flags.pairs); pair++) {
    const first = await take(pair % 2 === 0 ? ours : others, Number(flags.window));
    const second = await take(pair % 2 === 0 ? others : ours, Number(flags.window));
    pairs.push(pair % 2 === 0 ? [cost(first), cost(second)] : [cost(second), cost(first)]);
  }
  const ratios = pairs.map(([mine, its]) => mine / its).toSorted((a, b) => a - b);
  const at = (share: number): string => (ratios[Math.floor(share * (ratios.length - 1))] ?? Number.NaN).toFixed(3);
  console.log(
    `${flags.load}: this ${median(pairs.map(([mine]) => mine)).toFixed(2)} µs, ` +
      `that ${median(pairs.map(([, its]) => its)).toFixed(2)} µs; this ÷ ` +
      `that ${median(ratios).toFixed(3)} (${at(0.25)} to ${at(0.75)}, ${ratios.length} pairs)`,
  );
}
