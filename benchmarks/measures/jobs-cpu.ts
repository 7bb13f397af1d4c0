// P14: CPU of the jobs process for each spool record that it ships, until all records of a load are shipped; CPU of
// Postgres does not count. It is measured with ClickHouse embedded and with ClickHouse as a server (as on several
// machines), at a low and at a high rate: a round has a fixed cost, which few or many records share.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startNodeServer } from '../harness/child-server.ts';
import { LOAD_CORE } from '../harness/cores.ts';
import { cpuNs } from '../harness/cpu-time.ts';
import { OWN_CLIENT, type Product, startProduct } from '../harness/product.ts';
import { type Measure, type Row, type Run, targetOf } from './measure.ts';

const CLICKHOUSE = fileURLToPath(new URL('../harness/embedded-clickhouse-server.ts', import.meta.url));

const RATES_PER_SECOND = [1_000, 4_000] as const;
/** `admitted` and one terminal record. */
const RECORDS_PER_REQUEST = 2;
/** The jobs process has caught up when an idle pause costs at most this share of a core. */
const IDLE_SHARE = 0.05;
const PAUSE_MS = 1000;
const PAUSES_MAX = 60;
/** The process has just started, and V8 compiles what it needs; other measures also skip their first seconds. */
const PASSED_BEFORE_MS = 20_000;
/** Facts are merged every few seconds: in a shorter load the figure would depend on whether a merge ran. */
const LOAD_MS = 20_000;

export const jobsCpu: Measure = {
  ids: ['P14'],
  async run(run) {
    if (run.product === null) return [];
    return [...(await shipping(run, run.product, 'embedded ClickHouse')), ...(await shippingToServer(run))];
  },
};

async function shippingToServer(run: Run): Promise<Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-bench-clickhouse-'));
  const server = await startNodeServer(LOAD_CORE, CLICKHOUSE, [directory]);
  try {
    const environment = { CLICKHOUSE_URL: `http://127.0.0.1:${server.port}` };
    const product = await startProduct(run.direct.port, undefined, null, { ...OWN_CLIENT, environment });
    if (product === null) return [];
    try {
      return await shipping(run, product, 'ClickHouse server');
    } finally {
      await product.stop();
    }
  } finally {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function shipping({ load }: Run, product: Product, where: string): Promise<Row[]> {
  const drive = (requestsPerSecond: number, durationMs: number) =>
    load.run({
      kind: 'rate',
      target: targetOf(product, 'json/1024', '1k', 1024),
      requestsPerSecond,
      // There is no warm-up: its requests would be shipped within the measured load.
      warmupMs: 0,
      durationMs,
    });
  await drive(RATES_PER_SECOND[0], PASSED_BEFORE_MS);
  const rows: Row[] = [];
  for (const rate of RATES_PER_SECOND) {
    await untilIdle(product.jobsPid);
    const before = cpuNs(product.jobsPid);
    const result = await drive(rate, LOAD_MS);
    const idleNs = await untilIdle(product.jobsPid);
    const us = (cpuNs(product.jobsPid) - before - idleNs) / (result.requests * RECORDS_PER_REQUEST) / 1000;
    rows.push({
      id: 'P14',
      what: `jobs: CPU per shipped record, ${where}, ${rate} requests per second`,
      unit: 'µs',
      values: { tollgate: us },
      figure: us,
      goal: null,
      goalIs: 'at most',
    });
  }
  return rows;
}

/** Waits until the process has nothing left to do; returns the CPU of the last, idle pause. */
async function untilIdle(pid: number): Promise<number> {
  for (let pause = 0; pause < PAUSES_MAX; pause++) {
    const before = cpuNs(pid);
    await sleep(PAUSE_MS);
    const used = cpuNs(pid) - before;
    if (used < IDLE_SHARE * PAUSE_MS * 1e6) return used;
  }
  throw new Error('the jobs process does not catch up');
}
