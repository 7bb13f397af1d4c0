// R3: how much longer a request waits while the jobs process answers one report of the platform after another, over
// three million facts. It is measured where the system places both processes freely, and where both share one core.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { endWithThis } from '../harness/child-server.ts';
import { PROXY_CORE, pinToCore, unpin } from '../harness/cores.ts';
import { median } from '../harness/median.ts';
import { ADMIN_TOKEN, type Product, startProduct } from '../harness/product.ts';
import type { FixedRateJob } from '../load/job.ts';
import { type Measure, type Row, type Run, sample, targetOf } from './measure.ts';

const FACTS = 3_000_000;
const REQUESTS_PER_SECOND = 500;
/** How many windows long: several reports fit. */
const WINDOWS = 4;
const REPORT = '/v1/admin/analytics/routing?start_date=2026-08-01&end_date=2026-10-31&time_zone=Europe/Berlin';
const FILL_INSTALLATION = fileURLToPath(new URL('../harness/fill-installation.ts', import.meta.url));

export const reportsBeside: Measure = {
  ids: ['R3'],
  async run(run) {
    if (run.product === null) return [];
    // The measure has its own installation: facts of three months would disturb every other measure.
    const product = await startProduct(run.direct.port, fillInstallation);
    if (product === null) return [];
    try {
      const rows: Row[] = [];
      for (const placement of PLACEMENTS) {
        for (const pid of [product.gatewayPid, product.jobsPid]) {
          if (placement === 'one core') pinToCore(pid, PROXY_CORE);
          else unpin(pid);
        }
        rows.push(...(await measureBeside(run, product, placement)));
      }
      return rows;
    } finally {
      await product.stop();
    }
  },
};

async function fillInstallation(dataDirectory: string): Promise<void> {
  const child = spawn(process.execPath, [FILL_INSTALLATION, dataDirectory, String(FACTS)], { stdio: 'inherit' });
  endWithThis(child);
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`the facts could not be made: ${FILL_INSTALLATION} ended with ${code}`);
}

interface Taken {
  readonly p50: number;
  readonly p99: number;
  readonly reportMs: readonly number[];
  /** Bytes of the spool that are not yet in Postgres, and not yet in ClickHouse, at the end. */
  readonly lagBytes: readonly number[];
}

const PLACEMENTS = ['any core', 'one core'] as const;
type Placement = (typeof PLACEMENTS)[number];

/**
 * The ways that are compared. Requests without the gateway are measured, too, since reports may take the load
 * generator's core.
 */
const WAYS = ['direct', 'alone', 'directBeside', 'beside'] as const;
type Way = (typeof WAYS)[number];

async function measureBeside(run: Run, product: Product, placement: Placement): Promise<Row[]> {
  const taken: Record<Way, Taken[]> = { direct: [], alone: [], directBeside: [], beside: [] };
  await take(run, product, 'beside');
  for (let round = 0; round < run.rounds; round++) {
    for (const way of round % 2 === 0 ? WAYS : WAYS.toReversed()) taken[way].push(await take(run, product, way));
  }
  const reportMs = taken.beside.flatMap((one) => one.reportMs);
  const lag = [0, 1].map(
    (store) => `${(median(taken.beside.map(({ lagBytes }) => lagBytes[store] ?? 0)) / 1e6).toFixed(2)} MB`,
  );
  const note =
    `${reportMs.length} reports over ${FACTS} facts, each ${median(reportMs).toFixed(0)} ms; meanwhile ` +
    `unposted ${lag.join(', not yet facts ')}`;
  return (['p50', 'p99'] as const).map((quantile) => {
    const added = (through: Way, without: Way): number[] =>
      taken[through].map((one, round) => one[quantile] - (taken[without][round] as Taken)[quantile]);
    const [alone, beside] = [added('alone', 'direct'), added('beside', 'directBeside')];
    return {
      id: 'R3',
      what:
        `added ${quantile} at ${REQUESTS_PER_SECOND}/s beside reports, over without; gateway and jobs ` +
        `on ${placement}`,
      unit: 'µs',
      values: { tollgate: median(beside), direct: median(taken.directBeside.map((one) => one[quantile])) },
      figure: median(beside.map((us, round) => us / (alone[round] as number))),
      goal: placement === 'any core' ? 1.1 : null,
      goalIs: 'at most',
      note: `${median(alone).toFixed(0)} without${quantile === 'p50' ? `; ${note}` : ''}`,
    };
  });
}

async function take(run: Run, product: Product, way: Way): Promise<Taken> {
  const proxy = way === 'direct' || way === 'directBeside' ? run.direct : product;
  const job: FixedRateJob = {
    kind: 'rate',
    target: targetOf(proxy, 'json/1024', '1k', 1024),
    requestsPerSecond: REQUESTS_PER_SECOND,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs * WINDOWS,
  };
  const reports = way === 'beside' || way === 'directBeside' ? askReports(product) : null;
  try {
    const { result } = await sample(run.load, proxy, job);
    if (result.errors > 0) throw new Error(`${way}: ${result.errors} errors, first: ${result.firstErrors.join('; ')}`);
    const lagBytes = await lagOf(product);
    return { p50: result.latencyUs.p50, p99: result.latencyUs.p99, reportMs: (await reports?.stop()) ?? [], lagBytes };
  } finally {
    await reports?.stop();
  }
}

/** Requests reports one after the other, until it is stopped and the last report is answered. */
function askReports(product: Product): { stop(): Promise<readonly number[]> } {
  let stopping = false;
  const asking = (async () => {
    const tookMs: number[] = [];
    while (!stopping) {
      const startMs = performance.now();
      await askReport(product.port);
      tookMs.push(performance.now() - startMs);
    }
    return tookMs;
  })();
  // stop() reports a failure, however long ago it was.
  asking.catch(() => {});
  return {
    stop: () => {
      stopping = true;
      return asking;
    },
  };
}

async function askReport(port: number): Promise<void> {
  const call = request({
    host: '127.0.0.1',
    port,
    path: REPORT,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    agent: false,
  });
  call.end();
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  const body = await buffer(response);
  if (response.statusCode !== 200)
    throw new Error(`the report: ${response.statusCode} ${body.toString().slice(0, 200)}`);
}

/** Whether postings and facts keep up. */
async function lagOf(product: Product): Promise<number[]> {
  const metrics = await product.metrics();
  return ['postgres', 'clickhouse'].map((store) =>
    Number(new RegExp(`^tollgate_spool_lag_bytes\\{destination="${store}"\\} (\\S+)`, 'm').exec(metrics)?.[1]),
  );
}
