// P15: CPU per request over TLS to a provider with 5 ms of latency, and connections opened to it per 1,000 requests,
// also for a provider that answers at once. The measure has its own stub, nginx (`proxy_ssl`) and installation, all
// with keep-alive. Its clients pause between requests: behind a latency no proxy is the bottleneck, and the row says
// the rates. The stub counts the connections that it accepts within each window.

import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { fileURLToPath } from 'node:url';
import { startNodeServer } from '../harness/child-server.ts';
import { LOAD_CORE } from '../harness/cores.ts';
import { median } from '../harness/median.ts';
import { startProduct } from '../harness/product.ts';
import { type Proxy, type StubReply, startNginx } from '../harness/proxies.ts';
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

const STUB = fileURLToPath(new URL('../stub/tls-provider-stub.ts', import.meta.url));
const CERTIFICATE = fileURLToPath(new URL('../../test/support/tls/localhost-certificate.pem', import.meta.url));
const KEY = fileURLToPath(new URL('../../test/support/tls/localhost-key.pem', import.meta.url));
const REPLY_BYTES = 1024;
const CONNECTIONS_PER_1000_MAX = 5;
/**
 * How long the load first runs without pauses: for the handshakes, and until V8 has compiled a relay in JavaScript.
 * Clients that pause would need minutes for that many requests.
 */
const PASSED_BEFORE_MS = 5_000;
/**
 * How long the load then runs with pauses: V8 discards code that it compiled for a full core (28 functions in one
 * second). The first window of 1.5 s took twice the CPU of the next ones.
 */
const PASSED_PAUSING_MS = 4_000;

/**
 * Clients that pause between their requests. Behind a latency no proxy is the bottleneck, so CPU is compared at nearly
 * equal load. At most as many requests are open as there are clients, whatever else the machine does.
 */
const SIZES = [
  { body: '1k', connections: 64, thinkMs: 25, goal: 2 },
  { body: '16k', connections: 64, thinkMs: 25, goal: 1.6 },
  { body: '256k', connections: 32, thinkMs: 100, goal: 1.3 },
] as const;

interface TlsSample extends Sample {
  readonly opened: number;
}

const cpuUs = ({ cpuNs, result }: Sample): number => cpuNs / result.requests / 1_000;

export const tlsProvider: Measure = {
  ids: ['P15'],
  async run(run) {
    const stub = await startNodeServer(LOAD_CORE, STUB, [CERTIFICATE, KEY]);
    const proxies: Proxy[] = [];
    try {
      const nginx = run.proxies.has('nginx') ? await startNginx(stub.port, CERTIFICATE) : null;
      if (nginx === null) console.log('P15 without nginx: it has no ratios');
      else proxies.push(nginx);
      const product = run.product === null ? null : await startProduct(stub.port, undefined, CERTIFICATE);
      if (product !== null) proxies.push(product);
      await product?.suspendJobs();
      const rows: Row[] = [];
      for (const size of SIZES) rows.push(...(await measureSize(run, stub.port, proxies, size)));
      const atOnce = await sampleAll(run, stub.port, proxies, { ...SIZES[0], reply: 'json/1024' });
      return [...rows, connectionsRow('1k, a provider that answers at once', atOnce)];
    } finally {
      for (const proxy of proxies.toReversed()) await proxy.stop();
      await stub.stop();
    }
  },
};

async function measureSize(
  run: Run,
  stubPort: number,
  proxies: readonly Proxy[],
  size: (typeof SIZES)[number],
): Promise<Row[]> {
  const samples = await sampleAll(run, stubPort, proxies, { ...size, reply: 'json/1024/5' });
  const perSecond = Object.entries(medians(samples, ({ result }) => result.requestsPerSecond));
  const row: Row = {
    id: 'P15',
    what: `CPU per request over TLS, 5 ms of latency, ${size.body} request`,
    unit: 'µs',
    values: medians(samples, cpuUs),
    figure: ratio(samples, 'tollgate', 'nginx', cpuUs),
    goal: size.goal,
    goalIs: 'at most',
    note: perSecond.map(([name, rate]) => `${name} ${rate.toFixed(0)}/s`).join(', '),
  };
  return [row, connectionsRow(`${size.body}, 5 ms of latency`, samples)];
}

function connectionsRow(what: string, samples: ReadonlyMap<string, readonly TlsSample[]>): Row {
  const values = Object.fromEntries(
    [...samples].map(([name, taken]) => [
      name,
      median(taken.map(({ opened, result }) => (opened / result.requests) * 1_000)),
    ]),
  );
  return {
    id: 'P15',
    what: `connections opened per 1,000 requests, ${what}`,
    unit: '',
    values,
    figure: values.tollgate ?? null,
    goal: CONNECTIONS_PER_1000_MAX,
    goalIs: 'at most',
  };
}

interface Load {
  readonly reply: StubReply;
  readonly body: string;
  readonly connections: number;
  readonly thinkMs: number;
}

async function sampleAll(
  run: Run,
  stubPort: number,
  proxies: readonly Proxy[],
  load: Load,
): Promise<ReadonlyMap<string, readonly TlsSample[]>> {
  const samples = new Map<string, TlsSample[]>(proxies.map(({ name }) => [name, []]));
  const jobOf = (proxy: Proxy): ClosedLoopJob => ({
    kind: 'closed',
    target: targetOf(proxy, load.reply, load.body, REPLY_BYTES),
    connections: load.connections,
    thinkMs: load.thinkMs,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs,
  });
  await passUnrecorded(run, proxies, jobOf);
  for (let round = 0; round < run.rounds; round++) {
    for (const proxy of round % 2 === 0 ? proxies : proxies.toReversed()) {
      let before = Promise.resolve(0);
      const taken = await sample(run.load, proxy, jobOf(proxy), () => {
        before = acceptedConnections(stubPort);
      });
      reportErrors(proxy, taken.result);
      // Each reading of the count opens a connection of its own.
      const opened = (await acceptedConnections(stubPort)) - (await before) - 1;
      samples.get(proxy.name)?.push({ ...taken, opened });
    }
  }
  return samples;
}

/** Runs a load unrecorded before the first round, also for P17. */
export async function passUnrecorded(
  run: Run,
  proxies: readonly Proxy[],
  jobOf: (proxy: Proxy) => ClosedLoopJob,
): Promise<void> {
  for (const proxy of proxies) {
    await run.load.run({ ...jobOf(proxy), thinkMs: 0, warmupMs: 0, durationMs: PASSED_BEFORE_MS });
    await run.load.run({ ...jobOf(proxy), warmupMs: 0, durationMs: PASSED_PAUSING_MS });
  }
}

function acceptedConnections(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({
      host: '127.0.0.1',
      servername: 'localhost',
      port,
      path: '/connections',
      agent: false,
      ca: readFileSync(CERTIFICATE),
    });
    asked.on('response', (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on('end', () => resolve(Number(text)));
    });
    asked.on('error', reject);
    asked.end();
  });
}
