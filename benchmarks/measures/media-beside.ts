// P19: how late the events of 100 streams (every 5 ms) reach their clients, and how long 500 requests a second wait,
// beside 200 connections that upload files of a megabyte one after another ÷ without uploads. The uploads belong to two
// organizations and come from the load generator's core. P18: CPU per request on an installation that stores files,
// where others upload and read some before every pair of windows ÷ on one that stores none.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { LOAD_CORE, onCore } from '../harness/cores.ts';
import { median } from '../harness/median.ts';
import { OWN_CLIENT, type Product, startProduct } from '../harness/product.ts';
import type { ClosedLoopJob, FixedRateJob } from '../load/job.ts';
import { comparePair } from './compare-pair.ts';
import { type Measure, type Row, type Run, type Sample, sample, targetOf } from './measure.ts';

const UPLOADS = 200;
const FILE_BYTES = 1_000_000;
const STREAMS = 100;
const REQUESTS_PER_SECOND = 500;
/** How many windows long: uploads begin and end within each. */
const WINDOWS = 2;
/** After this every connection is open and the first uploads are done. */
const BEGUN_MS = 300;
/** All of these are answered before the next window: uploads whose clients leave while they wait would disturb it. */
const SOME_UPLOADS = 8;
const SOME_MS = 1_000;
const UPLOADER = fileURLToPath(new URL('../load/upload-files.ts', import.meta.url));
const KEYS = ['one', 'two'].map((name) => `tg-bench-files-${name}-${'k'.repeat(24)}`);
/** More than a run uploads. */
const ORGANIZATION_BYTES_MAX = 10 ** 12;

const organizations = KEYS.map(
  (key, index) => `  - slug: files-${index}
    billing: none
    users: [{ email: files-${index}@bench.test, role: owner }]
    keys: [{ name: bench, user: files-${index}@bench.test, secret: ${key} }]
`,
).join('');

const WITH_FILES = {
  ...OWN_CLIENT,
  name: 'with files',
  otherOrganizations: organizations,
  environment: { MEDIA: 'disk', MEDIA_ORGANIZATION_BYTES_MAX: String(ORGANIZATION_BYTES_MAX) },
};

export const mediaUnused: Measure = {
  ids: ['P18'],
  async run(run) {
    if (run.product === null) return [];
    const none = { ...WITH_FILES, name: 'without files', environment: { MEDIA: 'off' } };
    const without = await startProduct(run.direct.port, undefined, null, none);
    const beside = await startProduct(run.direct.port, undefined, null, WITH_FILES);
    if (without === null || beside === null) return [];
    try {
      await Promise.all([without.suspendJobs(), beside.suspendJobs()]);
      const rows: Row[] = [];
      for (const size of ['1k', '16k']) {
        const what = `CPU of a ${size} request where files are kept and came before it, over where none are`;
        rows.push(await comparePair(run, [without, beside], { size, what, use: () => uploadSome(beside) }));
      }
      return rows;
    } finally {
      await Promise.all([without.stop(), beside.stop()]);
    }
  },
};

async function uploadSome(product: Product): Promise<void> {
  const uploads = await beginUploads(product, SOME_UPLOADS);
  await sleep(SOME_MS);
  const did = await uploads.stop();
  if (!did.includes('answered 200')) throw new Error(`uploads are answered otherwise: ${did}`);
}

export const mediaBeside: Measure = {
  ids: ['P19'],
  async run(run) {
    if (run.product === null) return [];
    const product = await startProduct(run.direct.port, undefined, null, WITH_FILES);
    if (product === null) return [];
    try {
      await product.suspendJobs();
      return [...(await streamsBeside(run, product)), ...(await requestsBeside(run, product))];
    } finally {
      await product.stop();
    }
  },
};

function streamsBeside(run: Run, product: Product): Promise<Row[]> {
  const job: ClosedLoopJob = {
    kind: 'closed',
    target: targetOf(product, 'events/200/1/5', 'stream', null),
    connections: STREAMS,
    thinkMs: 0,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs * WINDOWS,
  };
  return compare(run, product, job, `from stub to client, ${STREAMS} streams`, ({ result }) => result.eventUs);
}

function requestsBeside(run: Run, product: Product): Promise<Row[]> {
  const job: FixedRateJob = {
    kind: 'rate',
    target: targetOf(product, 'json/1024', '1k', 1024),
    requestsPerSecond: REQUESTS_PER_SECOND,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs * WINDOWS,
  };
  return compare(run, product, job, `of requests at ${REQUESTS_PER_SECOND}/s`, ({ result }) => result.latencyUs);
}

async function compare(
  run: Run,
  product: Product,
  job: ClosedLoopJob | FixedRateJob,
  what: string,
  quantilesOf: (sample: Sample) => { readonly p50: number; readonly p99: number },
): Promise<Row[]> {
  const without: { readonly p50: number; readonly p99: number }[] = [];
  const beside: typeof without = [];
  let did = '';
  await sample(run.load, product, job);
  for (let round = 0; round < run.rounds; round++) {
    without.push(quantilesOf(await sample(run.load, product, job)));
    const uploads = await beginUploads(product, UPLOADS);
    try {
      beside.push(quantilesOf(await sample(run.load, product, job)));
    } finally {
      did = await uploads.stop();
    }
  }
  return (['p50', 'p99'] as const).map((quantile) => ({
    id: 'P19',
    what: `${quantile} ${what}, beside ${UPLOADS} uploads at once, over without`,
    unit: 'µs',
    values: { tollgate: median(beside.map((taken) => taken[quantile])) },
    figure: median(beside.map((taken, round) => taken[quantile] / (without[round]?.[quantile] ?? Number.NaN))),
    goal: quantile === 'p99' ? 3 : null,
    goalIs: 'at most',
    note: `${median(without.map((taken) => taken[quantile])).toFixed(0)} without; ${did}`,
  }));
}

async function beginUploads({ port }: Product, connections: number): Promise<{ stop(): Promise<string> }> {
  const args = [UPLOADER, port, connections, FILE_BYTES, ...KEYS].map(String);
  const child = spawn(...onCore(LOAD_CORE, process.execPath, args), { stdio: ['pipe', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (text: Buffer) => (said += text.toString()));
  await sleep(BEGUN_MS);
  return {
    async stop() {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
      return said.trim();
    },
  };
}
