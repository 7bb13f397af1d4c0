// `npm run bench`: starts the stub, the peers and the product, runs the measures, prints the table of goals and writes
// the figures to results/.

import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startNodeServer } from './harness/child-server.ts';
import { canPin, LOAD_CORE } from './harness/cores.ts';
import { LoadClient } from './harness/load-client.ts';
import { startPortkey, startPortkeyOnOurNode } from './harness/portkey.ts';
import { startProduct } from './harness/product.ts';
import { direct, type Proxy, startBareRelay, startFrontOnly, startNginx } from './harness/proxies.ts';
import { renderTable } from './harness/table.ts';
import { addedLatency } from './measures/added-latency.ts';
import { autoRouting } from './measures/auto-routing.ts';
import { bystander } from './measures/bystander.ts';
import { cpuPerRequest } from './measures/cpu-per-request.ts';
import { guardrailsBeside } from './measures/guardrails-beside.ts';
import { jobsCpu } from './measures/jobs-cpu.ts';
import { type Measure, type Row, type Run, residentBytes, targetOf } from './measures/measure.ts';
import { mediaBeside, mediaUnused } from './measures/media-beside.ts';
import { openStreams } from './measures/open-streams.ts';
import { ownKeysBeside } from './measures/own-keys-beside.ts';
import { providerTransports } from './measures/provider-transports.ts';
import { reportsBeside } from './measures/reports-beside.ts';
import { stalls } from './measures/stalls.ts';
import { streamEvents } from './measures/stream-events.ts';
import { tlsProvider } from './measures/tls-provider.ts';

/** The jobs process is measured first, because it is stopped afterwards. */
const MEASURES: readonly Measure[] = [
  jobsCpu,
  cpuPerRequest,
  streamEvents,
  addedLatency,
  openStreams,
  stalls,
  autoRouting,
  reportsBeside,
  tlsProvider,
  providerTransports,
  bystander,
  ownKeysBeside,
  guardrailsBeside,
  mediaUnused,
  mediaBeside,
];
const PEERS = ['nginx', 'bare', 'front', 'portkey', 'portkey22'];
const STUB = fileURLToPath(new URL('./stub/provider-stub.ts', import.meta.url));
const RESULTS = fileURLToPath(new URL('./results/', import.meta.url));

/** All loads that are measured, so that no window meets a new one. The first load to be measured comes last. */
const WARM_UP = [
  ['events/400/16/16', 'stream'],
  ['events/200/1/5', 'stream'],
  ['json/1024', '256k'],
  ['json/1024', '16k'],
  ['json/1024', '1k'],
] as const;
const WARM_UP_MS = 3_000;
/**
 * The order within a round. The product stands between the two proxies that it is compared with, since a busy machine
 * changes within seconds.
 */
const VISITED = ['bare', 'nginx', 'tollgate', 'front', 'portkey', 'portkey22'];

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    peers: { type: 'string', default: PEERS.join(',') },
    rounds: { type: 'string' },
    'no-product': { type: 'boolean', default: false },
    'no-write': { type: 'boolean', default: false },
  },
});

const only = flags.only === undefined ? null : new Set(flags.only.toUpperCase().split(','));
const chosen = MEASURES.filter((measure) => only === null || measure.ids.some((id) => only.has(id)));
const stopped: (() => Promise<void>)[] = [];

try {
  const rows = await runAll();
  console.log(`\n${renderTable(rows)}`);
  if (!flags['no-write']) writeResults(rows);
} finally {
  for (const stop of stopped.toReversed()) await stop();
}

async function runAll(): Promise<Row[]> {
  if (!canPin)
    console.log('taskset or a second core is missing: proxies and load share cores, and figures are noisier');
  const stub = await startNodeServer(LOAD_CORE, STUB, []);
  stopped.push(() => stub.stop());
  const [load, background] = [await LoadClient.start(), await LoadClient.start()];
  stopped.push(
    () => load.stop(),
    () => background.stop(),
  );
  const proxies = await startProxies(stub.port);
  const product = flags['no-product'] ? null : await startProduct(stub.port);
  if (product === null) console.log('the product is not part of this run: the bare relay stands in its place');
  else stopped.push(() => product.stop());
  const all = [...proxies, ...(product === null ? [] : [product])].toSorted(
    (a, b) => VISITED.indexOf(a.name) - VISITED.indexOf(b.name),
  );
  const run: Run = {
    load,
    background,
    direct: direct(stub.port),
    proxies: new Map(all.map((proxy) => [proxy.name, proxy])),
    product,
    idleBytes: new Map(all.map((proxy) => [proxy.name, residentBytes(proxy)])),
    rounds: Number(flags.rounds ?? (flags.quick ? 3 : 7)),
    windowMs: flags.quick ? 700 : 1500,
    warmupMs: flags.quick ? 300 : 500,
  };
  await warmUp(run);
  const rows: Row[] = [];
  for (const measure of chosen) {
    console.log(`measuring ${measure.ids.join(', ')} ...`);
    if (measure !== jobsCpu) await product?.suspendJobs();
    const measured = await measure.run(run);
    rows.push(...measured);
    console.log(renderTable(measured));
  }
  return rows.filter((row) => only === null || only.has(row.id));
}

/** Runs each load unrecorded: V8 compiles a relay in JavaScript while it runs, and figures start when that is done. */
async function warmUp({ load, proxies }: Run): Promise<void> {
  const connections = 32;
  for (const proxy of proxies.values()) {
    for (const [reply, body] of WARM_UP) {
      const target = targetOf(proxy, reply, body, null);
      await load.run({ kind: 'closed', target, connections, thinkMs: 0, warmupMs: 0, durationMs: WARM_UP_MS });
    }
  }
}

async function startProxies(stubPort: number): Promise<Proxy[]> {
  const starters: Readonly<Record<string, () => Promise<Proxy | null>>> = {
    nginx: () => startNginx(stubPort),
    bare: () => startBareRelay(stubPort),
    front: () => startFrontOnly(stubPort),
    portkey: () => startPortkey(stubPort),
    portkey22: () => startPortkeyOnOurNode(stubPort),
  };
  const proxies: Proxy[] = [];
  for (const name of flags.peers.split(',')) {
    const start = starters[name];
    if (start === undefined) throw new Error(`--peers knows ${PEERS.join(', ')}; not "${name}"`);
    const proxy = await start();
    if (proxy === null) {
      console.log(`${name} is not installed here: its column stays empty`);
      continue;
    }
    stopped.push(() => proxy.stop());
    proxies.push(proxy);
  }
  return proxies;
}

function writeResults(rows: readonly Row[]): void {
  mkdirSync(RESULTS, { recursive: true });
  const at = new Date().toISOString();
  const machine = { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, node: process.version, pinned: canPin };
  const path = `${RESULTS}${at.slice(0, 16).replace(':', '')}.json`;
  writeFileSync(path, `${JSON.stringify({ at, machine, flags, rows }, null, 2)}\n`);
  console.log(`written to benchmarks/results/${path.slice(RESULTS.length)}`);
}
