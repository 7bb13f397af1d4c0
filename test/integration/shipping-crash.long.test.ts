// Processes that spool and the process that ships, killed again and again at any point: what was seen complete is
// posted exactly once, the books are right, and facts equal the ledger.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createJobGauges } from '../../jobs/scheduling/job-gauges.ts';
import { compareFacts } from '../../jobs/tasks/compare-facts.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { createClickHouse, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { listEpochs, listQuarantine } from '../../src/storage/spool/spool-directory.ts';
import { howMany } from '../support/at-length.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import * as shipping from '../support/shipping.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { pause, waitFor } from '../support/waiting.ts';

const GATEWAY_KILLS = howMany({ short: 3, long: 16 });
const JOBS_KILLS = howMany({ short: 3, long: 12 });
const SUPPORT = join(import.meta.dirname, '../support');

let server: TestPostgres;
before(async () => {
  server = await startTestPostgres();
});
after(() => server.stop());

interface Run {
  readonly dataDirectory: string;
  readonly databaseUrl: string;
  readonly payer: shipping.Payer;
  readonly seenComplete: Set<string>;
  readonly random: (below: number) => number;
}

/** mulberry32: small, and the same on every machine. */
function seededRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function start(script: string, args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [join(SUPPORT, script), ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

/** One gateway after another. What a killed one had printed in part is no id: nobody was told. */
async function killGateways(run: Run): Promise<void> {
  for (let count = 0; count < GATEWAY_KILLS / 2; count++) {
    const child = start('fake-gateway.ts', [
      run.dataDirectory,
      run.databaseUrl,
      run.payer.organizationId,
      run.payer.walletId,
    ]);
    const chunks: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
    await waitFor(
      'the gateway to spool',
      () => chunks.length,
      (length) => length > 0,
    );
    await pause(run.random(400));
    const closed = once(child, 'close');
    await kill(child, 'SIGKILL');
    await closed;
    const printed = Buffer.concat(chunks).toString();
    for (const id of printed.slice(0, printed.lastIndexOf('\n')).split('\n')) run.seenComplete.add(id);
  }
}

async function killJobs(run: Run): Promise<void> {
  for (let count = 0; count < JOBS_KILLS; count++) {
    const child = start('fake-jobs.ts', [run.dataDirectory, run.databaseUrl]);
    // From before it has opened anything to some rounds of shipping.
    await pause(300 + run.random(1_500));
    await kill(child, 'SIGKILL');
  }
}

async function shipTheRest(run: Run): Promise<void> {
  const child = start('fake-jobs.ts', [run.dataDirectory, run.databaseUrl]);
  try {
    await waitFor(
      'all spools to be shipped',
      () => listEpochs(join(run.dataDirectory, 'spool')).length,
      (count) => count === 0,
      60_000,
    );
  } finally {
    await kill(child, 'SIGTERM');
  }
}

async function assertPostedOnce(run: Run, postgres: Postgres): Promise<number> {
  const rows = await shipping.readGenerations(postgres);
  const settled = rows.filter((row) => row.billing_status === 'final');
  const posted = new Set(settled.map((row) => row.id));
  assert.deepEqual(
    [...run.seenComplete].filter((id) => !posted.has(id)),
    [],
  );
  // The others were open when their process died, or ended unseen.
  assert.deepEqual([...new Set(rows.map((row) => row.billing_status))].sort(), ['cancelled', 'final']);
  const { rows: transfers } = await postgres.query<{ executions: string; transfers: string }>(
    `SELECT count(DISTINCT execution_id) AS executions, count(*) AS transfers FROM ledger_transfers
      WHERE kind = 'charge'`,
  );
  assert.deepEqual(transfers, [{ executions: String(settled.length), transfers: String(settled.length) }]);
  const balance = shipping.DEPOSIT - shipping.CHARGE * BigInt(settled.length);
  assert.deepEqual(await shipping.readWallet(postgres, run.payer.walletId), { balance, leased: 0n });
  assert.deepEqual(await findBrokenInvariants(postgres), []);
  return rows.length;
}

async function assertFactsEqual(run: Run, postgres: Postgres): Promise<void> {
  const client = await createClickHouse({ directory: join(run.dataDirectory, 'clickhouse') }, systemClock);
  try {
    const job = {
      postgres,
      clickhouse: () => client,
      facts: { insert: () => assert.fail('a fact is missing') },
      sealedDays: () => null,
      log: silentLog,
      clock: systemClock,
      gauges: createJobGauges(new MetricsRegistry()),
      factsRetentionDays: null,
      media: null,
      box: secretsOf(Buffer.alloc(32, 1)).box,
    };
    const result = await compareFacts(job, { hours: 2, settlingMs: 0 });
    assert.deepEqual(result, { differing: [], repaired: 0, stillDiffering: [], drift: 0 });
    const [facts] = await selectRows<{ count: string; cost: string }>(
      client,
      'SELECT toString(count()) AS count, toString(sum(total_cost)) AS cost FROM request_facts FINAL',
    );
    const { rows } = await postgres.query<{ count: string; charged: string }>(
      'SELECT count(*)::text AS count, sum(charge)::text AS charged FROM generations',
    );
    assert.equal(facts?.count, rows[0]?.count);
    const [whole = '', fraction = ''] = (facts?.cost ?? '').split('.');
    assert.equal(BigInt(whole + fraction.padEnd(12, '0')), BigInt(rows[0]?.charged ?? -1));
  } finally {
    await client.close();
  }
}

describe('shipping under kill -9', () => {
  test('gateways and jobs are killed at random points', { timeout: 180_000 }, async (context) => {
    const seed = randomInt(2 ** 31);
    context.diagnostic(`seed ${seed}`);
    const dataDirectory = temporaryDirectory(context);
    const databaseUrl = await server.createDatabase();
    const postgres = createPostgres({ url: databaseUrl, log: silentLog, max: 2 });
    const payer = await shipping.createPayer(postgres);
    const run: Run = { dataDirectory, databaseUrl, payer, seenComplete: new Set(), random: seededRandom(seed) };
    await Promise.all([killGateways(run), killGateways(run), killJobs(run)]);
    await shipTheRest(run);
    const executions = await assertPostedOnce(run, postgres);
    context.diagnostic(`${executions} executions, ${run.seenComplete.size} seen complete`);
    assert.deepEqual(listQuarantine(join(dataDirectory, 'spool')), []);
    await assertFactsEqual(run, postgres);
    await postgres.close();
  });
});
