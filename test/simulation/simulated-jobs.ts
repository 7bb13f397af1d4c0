// A jobs process with the real shipper and the scheduled resolving of open executions. Its ClickHouse is a map of facts
// by execution.

import { createShipper } from '../../jobs/shipping/ship-spool.ts';
import { resolvePendingExecutions } from '../../jobs/tasks/resolve-pending.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { ClickHouseClient } from '../../src/storage/clickhouse/clickhouse.ts';
import { insertFacts } from '../../src/storage/clickhouse/facts.ts';
import { makeDirectoryDurably } from '../../src/storage/spool/durable-file.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { SPOOL_DIRECTORY } from './simulated-gateway.ts';
import { logOf } from './simulated-log.ts';
import type { SimulatedNetwork } from './simulated-network.ts';
import { PostgresOfProcess, type SimulatedPostgres } from './simulated-postgres.ts';
import { SimulatedProcess, type World } from './virtual-world.ts';

const RESOLVE_EVERY_MS = 60_000;
/** Nothing is sealed with it. Deriving it for each process would cost as much as everything else the process does. */
const BOX = secretsOf(Buffer.alloc(32, 1)).box;

export interface Fact {
  readonly billingStatus: string;
  readonly charge: bigint | null;
  readonly suspense: bigint;
  readonly version: number;
}

/** The facts. Inserts are idempotent by execution id: the highest version stays. */
export class SimulatedFacts {
  readonly byId = new Map<string, Fact>();
  away = false;

  /** Inserts facts, which come by columns (storage/clickhouse/facts.ts). */
  insert(statement: string): void {
    const names = (/\((.*)\)/.exec(statement)?.[1] ?? '').split(', ');
    const columns = JSON.parse(statement.slice(statement.indexOf('\n[') + 1)) as (string | number | null)[][];
    const column = (name: string): (string | number | null)[] => columns[names.indexOf(name)] ?? [];
    const [ids, statuses, costs, suspenses, versions] = [
      column('id'),
      column('billing_status'),
      column('total_cost'),
      column('suspense'),
      column('version'),
    ];
    for (const [row, id] of ids.entries()) {
      const cost = costs[row] ?? null;
      const fact = {
        billingStatus: String(statuses[row]),
        charge: cost === null ? null : picoOf(String(cost)),
        suspense: picoOf(String(suspenses[row])),
        version: Number(versions[row]),
      };
      if ((this.byId.get(String(id))?.version ?? -1) <= fact.version) this.byId.set(String(id), fact);
    }
  }
}

function picoOf(dollars: string): bigint {
  const [whole = '0', fraction = ''] = dollars.split('.');
  return BigInt(whole + fraction.padEnd(12, '0'));
}

export interface ShippingSettings {
  readonly recordsMax: number;
  readonly bytesMax: number;
  readonly pollMs: number;
  readonly admittedWaitMs: number;
  readonly factsIntervalMs: number;
  /** How often a look-up waits for something that is not posted; null: never. */
  readonly wantedEveryMs: number | null;
}

interface JobsParts {
  readonly world: World;
  readonly name: string;
  readonly server: SimulatedPostgres;
  readonly network: SimulatedNetwork;
  readonly facts: SimulatedFacts;
  readonly limits: ShippingSettings;
  readonly onDeath: () => void;
}

export function startJobs(parts: JobsParts): SimulatedProcess {
  const { world, name, server, network, facts, limits } = parts;
  const process: SimulatedProcess = new SimulatedProcess(world, name, () => {
    postgres.abandon();
    parts.onDeath();
  });
  const postgres = new PostgresOfProcess(process, server, network);
  const clickhouse = clientOf(process, network, facts);
  process.in(0, `${name} starts`, () => {
    try {
      makeDirectoryDurably(SPOOL_DIRECTORY);
      const log = logOf(process);
      const { clock } = process;
      const sink = {
        insert: (rows: Parameters<typeof insertFacts>[1], batch: string) => insertFacts(clickhouse, rows, batch),
        probe: async () => void (await clickhouse.command({ query: PROBE })),
      };
      const shipper = createShipper({
        spoolDirectory: SPOOL_DIRECTORY,
        postgres,
        facts: sink,
        log,
        clock,
        metrics: new MetricsRegistry(),
        limits,
      });
      shipper.start();
      if (limits.wantedEveryMs !== null) setInterval(() => shipper.postNow(), limits.wantedEveryMs);
      const context = {
        postgres,
        clickhouse: () => clickhouse,
        facts: sink,
        sealedDays: () => null,
        log,
        clock,
        gauges: undefined as never,
        factsRetentionDays: null,
        media: null,
        box: BOX,
      };
      setInterval(
        () =>
          void resolvePendingExecutions(context).catch((fault: unknown) =>
            log.warn({ err: fault }, 'resolving failed'),
          ),
        RESOLVE_EVERY_MS,
      );
    } catch (fault) {
      process.die(`while it starts: ${String(fault)}`);
    }
  });
  return process;
}

const PROBE = 'SELECT 1';

function clientOf(process: SimulatedProcess, network: SimulatedNetwork, facts: SimulatedFacts): ClickHouseClient {
  const command = ({ query }: { query: string }): Promise<void> =>
    new Promise((resolve, reject) => {
      process.step('sending facts');
      network.call<boolean>({
        process,
        label: 'facts',
        act: (told) => {
          if (!facts.away && query !== PROBE) facts.insert(query);
          told(!facts.away);
        },
        answered: (inserted) => (inserted ? resolve() : reject(new Error('ClickHouse is away'))),
        broken: reject,
      });
    });
  return { command } as unknown as ClickHouseClient;
}
