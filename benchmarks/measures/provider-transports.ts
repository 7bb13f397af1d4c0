// P17: CPU per request of P15's load by transport to the provider: our own HTTP/1.1 client, undici, and undici over
// HTTP/2, each beside an nginx. `--only P17 --no-product` starts nothing else.

import { fileURLToPath } from 'node:url';
import { startNodeServer } from '../harness/child-server.ts';
import { LOAD_CORE } from '../harness/cores.ts';
import { startProduct, type Transport } from '../harness/product.ts';
import { type Proxy, startNginx } from '../harness/proxies.ts';
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
import { passUnrecorded } from './tls-provider.ts';

const STUB = fileURLToPath(new URL('../stub/tls-provider-stub.ts', import.meta.url));
const HTTP2_STUB = fileURLToPath(new URL('../stub/http2-provider-stub.ts', import.meta.url));
const CERTIFICATE = fileURLToPath(new URL('../../test/support/tls/localhost-certificate.pem', import.meta.url));
const KEY = fileURLToPath(new URL('../../test/support/tls/localhost-key.pem', import.meta.url));
const REPLY = 'json/1024/5';
const REPLY_BYTES = 1024;

const TRANSPORTS: readonly Transport[] = [
  { name: 'tollgate', client: 'own', http: 1 },
  { name: 'undici', client: 'undici', http: 1 },
  { name: 'undici, HTTP/2', client: 'undici', http: 2 },
];
const SIZES = [
  { body: '1k', goal: 2 },
  { body: '16k', goal: 1.5 },
] as const;

const cpuUs = ({ cpuNs, result }: Sample): number => cpuNs / result.requests / 1_000;

export const providerTransports: Measure = {
  ids: ['P17'],
  async run(run) {
    const first = await startNodeServer(LOAD_CORE, STUB, [CERTIFICATE, KEY]);
    const second = await startNodeServer(LOAD_CORE, HTTP2_STUB, [CERTIFICATE, KEY]);
    const proxies: Proxy[] = [];
    try {
      const nginx = run.proxies.has('nginx') ? await startNginx(first.port, CERTIFICATE) : null;
      if (nginx === null) console.log('P17 without nginx: it has no ratios');
      else proxies.push(nginx);
      for (const transport of TRANSPORTS) {
        const { port } = transport.http === 2 ? second : first;
        const product = await startProduct(port, undefined, CERTIFICATE, transport);
        if (product === null) continue;
        proxies.push(product);
        await product.suspendJobs();
      }
      const rows: Row[] = [];
      for (const size of SIZES) rows.push(await measureSize(run, proxies, size));
      return rows;
    } finally {
      for (const proxy of proxies.toReversed()) await proxy.stop();
      await first.stop();
      await second.stop();
    }
  },
};

async function measureSize(run: Run, proxies: readonly Proxy[], { body, goal }: (typeof SIZES)[number]): Promise<Row> {
  const samples = new Map<string, Sample[]>(proxies.map(({ name }) => [name, []]));
  const jobOf = (proxy: Proxy): ClosedLoopJob => ({
    kind: 'closed',
    target: targetOf(proxy, REPLY, body, REPLY_BYTES),
    connections: 64,
    thinkMs: 25,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs,
  });
  await passUnrecorded(run, proxies, jobOf);
  for (let round = 0; round < run.rounds; round++) {
    for (const proxy of round % 2 === 0 ? proxies : proxies.toReversed()) {
      const taken = await sample(run.load, proxy, jobOf(proxy), () => undefined);
      reportErrors(proxy, taken.result);
      samples.get(proxy.name)?.push(taken);
    }
  }
  const rates = Object.entries(medians(samples, ({ result }) => result.requestsPerSecond));
  return {
    id: 'P17',
    what: `CPU per request over TLS by transport, 5 ms of latency, ${body} request`,
    unit: 'µs',
    values: medians(samples, cpuUs),
    figure: ratio(samples, 'tollgate', 'nginx', cpuUs),
    goal,
    goalIs: 'at most',
    note: rates.map(([name, rate]) => `${name} ${rate.toFixed(0)}/s`).join(', '),
  };
}
