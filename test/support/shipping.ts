// The surroundings of shipping in a test: a prepaid wallet, a process epoch that holds a lease of it, records that
// charge it, and a fact sink.

import { randomUUID } from 'node:crypto';
import type { EndObserver } from '../../jobs/observing/end-observer.ts';
import type { FactSink } from '../../jobs/shipping/fact-shipping.ts';
import { createShipper, type Shipper } from '../../jobs/shipping/ship-spool.ts';
import type { ShippingLimits } from '../../jobs/shipping/shipping-limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { ExecutionStart, TerminalRecord } from '../../src/records/execution-record.ts';
import { type ClickHouseClient, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import type { RequestFact } from '../../src/storage/clickhouse/facts.ts';
import { registerEpoch, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { SpoolWriter } from '../../src/storage/spool/spool-writer.ts';
import { admittedRecord, executionStart, terminalRecord } from './execution-records.ts';
import { silentLog } from './postgres.ts';
import { appendRecords } from './spool-records.ts';

export const DEPOSIT = 10n ** 15n;
const HOLD = 1_000_000n;
export const CHARGE = 427_500n;

export interface Payer {
  readonly organizationId: string;
  readonly walletId: string;
}

export async function createPayer(postgres: Postgres): Promise<Payer> {
  const payer = { organizationId: randomUUID(), walletId: randomUUID() };
  await addPayer(postgres, payer);
  return payer;
}

export async function addPayer(postgres: Postgres, { organizationId, walletId }: Payer): Promise<void> {
  await postgres.query(
    `INSERT INTO organizations (id, slug, display_name, billing) VALUES ($1, $2, 'Test', 'prepaid')`,
    [organizationId, `test-${organizationId}`],
  );
  await postgres.query('INSERT INTO wallets (id, organization_id) VALUES ($1, $2)', [walletId, organizationId]);
  await postgres.query(`SELECT post_deposit($1, $2, 'test')`, [walletId, DEPOSIT.toString()]);
}

/** Creates a process epoch with a lease that is large enough for `executions` at once and their charges. */
export async function createEpoch(postgres: Postgres, payer: Payer, executions: number): Promise<number> {
  const epoch = await registerEpoch(postgres, { machine: 'test', pid: process.pid, kind: 'gateway' });
  const amount = HOLD * BigInt(executions);
  await takeLease(postgres, { epoch, walletId: payer.walletId, amount, minimum: amount });
  return epoch;
}

export function openSpool(directory: string, epoch: number, segmentBytesMax = 1 << 20): SpoolWriter {
  return SpoolWriter.open({
    directory,
    epoch,
    segmentBytesMax,
    fsyncIntervalMs: 5,
    log: silentLog,
    clock: systemClock,
  });
}

export function billedStart(payer: Payer, overrides: Partial<ExecutionStart> = {}): ExecutionStart {
  return executionStart({ ...payer, authorizedAmount: HOLD.toString(), ...overrides });
}

export function billedTerminal(start: ExecutionStart, overrides: Partial<TerminalRecord> = {}): TerminalRecord {
  return terminalRecord(start, {
    billingStatus: 'final',
    ratedCost: CHARGE.toString(),
    charge: CHARGE.toString(),
    ...overrides,
  });
}

/** Admits and ends an execution; returns its id. */
export function appendExecution(writer: SpoolWriter, payer: Payer): string {
  const start = billedStart(payer);
  appendRecords(writer, admittedRecord(start));
  appendRecords(writer, billedTerminal(start));
  return start.id;
}

/** A fact sink that keeps facts in memory by id, and can be away. */
export class MemorySink implements FactSink {
  readonly facts = new Map<string, RequestFact>();
  readonly batches: string[] = [];
  /** The facts that it refused while it was away. */
  readonly refused: (readonly RequestFact[])[] = [];
  probes = 0;
  away = false;

  async insert(facts: readonly RequestFact[], batch: string): Promise<void> {
    if (this.away) {
      this.refused.push(facts);
      throw new Error('ClickHouse is away');
    }
    this.batches.push(batch);
    for (const fact of facts) this.facts.set(fact.id, fact);
  }

  async probe(): Promise<void> {
    this.probes += 1;
    if (this.away) throw new Error('ClickHouse is away');
  }
}

export function testShipper(parts: {
  spoolDirectory: string;
  postgres: Postgres;
  facts: FactSink;
  metrics?: MetricsRegistry;
  limits?: Partial<ShippingLimits>;
  observers?: readonly EndObserver[];
}): Shipper {
  return createShipper({ log: silentLog, clock: systemClock, metrics: new MetricsRegistry(), ...parts });
}

export interface PostedRow {
  readonly id: string;
  readonly billing_status: string;
  readonly charge: string | null;
}

export async function readGenerations(postgres: Postgres): Promise<PostedRow[]> {
  return (await postgres.query<PostedRow>('SELECT id::text, billing_status, charge::text FROM generations ORDER BY id'))
    .rows;
}

export async function readWallet(postgres: Postgres, walletId: string): Promise<{ balance: bigint; leased: bigint }> {
  const { rows } = await postgres.query<{ balance: string; leased: string }>(
    'SELECT balance::text, leased::text FROM wallets WHERE id = $1',
    [walletId],
  );
  return { balance: BigInt(rows[0]?.balance ?? 0), leased: BigInt(rows[0]?.leased ?? 0) };
}

export async function readFactRows(
  client: ClickHouseClient,
): Promise<{ id: string; billing_status: string; total_cost: string | null }[]> {
  return selectRows(
    client,
    `SELECT toString(id) AS id, billing_status, toString(total_cost) AS total_cost
      FROM request_facts FINAL ORDER BY id`,
  );
}

export function metricValue(metrics: MetricsRegistry, name: string, label?: string): number {
  const family = metrics.snapshot().find((candidate) => candidate.name === name);
  const series = family?.series.find((candidate) => label === undefined || candidate.labelValues[0] === label);
  return series?.values[0] ?? Number.NaN;
}
