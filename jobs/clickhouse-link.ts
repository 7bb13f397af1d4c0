// The connection of jobs to ClickHouse. The link opens and migrates ClickHouse in the background and retries until that
// succeeds, so that posting never waits for ClickHouse.

import { hostname } from 'node:os';
import type { Clock } from '../src/platform/clock.ts';
import type { Log } from '../src/platform/log.ts';
import {
  type ClickHouseClient,
  type ClickHouseLocation,
  type ClickHouseReader,
  createClickHouse,
  selectRows,
} from '../src/storage/clickhouse/clickhouse.ts';
import type { RequestFact } from '../src/storage/clickhouse/facts.ts';
import { identifyClickHouse } from '../src/storage/clickhouse/identify-clickhouse.ts';
import { insertAcceptedFacts, type RefusedFact } from '../src/storage/clickhouse/insert-accepted-facts.ts';
import { migrateClickHouse } from '../src/storage/clickhouse/migrate.ts';
import { daysOf, SealedDays } from '../src/storage/clickhouse/sealed-days.ts';
import { holdingAdvisoryLock } from '../src/storage/postgres/advisory-lock.ts';
import { requestJobRun } from '../src/storage/postgres/job-runs.ts';
import {
  claimFactsHome,
  type EmbeddedLock,
  FactsElsewhere,
  lockEmbedded,
} from '../src/storage/postgres/ledger/facts-home.ts';
import type { Postgres } from '../src/storage/postgres/pool.ts';
import { SchemaMismatch } from '../src/storage/schema-fit.ts';
import { Backoff } from './scheduling/backoff.ts';
import { StoppableSleep } from './scheduling/stoppable-sleep.ts';
import type { FactSink } from './shipping/fact-shipping.ts';

/** Any number that no other advisory lock uses. */
const MIGRATION_LOCK = 7_060_155_442;

/**
 * A connection to the embedded engine runs one statement at a time. Reports therefore have two connections of their
 * own, so that inserts of facts do not wait for them. The client of a server has many connections.
 */
interface Opened {
  readonly client: ClickHouseClient;
  readonly reports: ClickHouseReader;
  /** null: ClickHouse is a server, where days are not sealed. */
  readonly sealedDays: SealedDays | null;
  readonly connections: readonly ClickHouseClient[];
}

export interface ClickHouseLinkOptions {
  readonly location: ClickHouseLocation;
  readonly migrationsDirectory: string;
  readonly postgres: Postgres;
  /** The address of `postgres`. */
  readonly databaseUrl: string;
  /** `postgres` is the embedded one of the same data directory. */
  readonly sharesDataDirectory: boolean;
  readonly log: Log;
  readonly clock: Clock;
}

export class ClickHouseLink implements FactSink {
  private readonly options: ClickHouseLinkOptions;
  private readonly sleep = new StoppableSleep();
  /** null while ClickHouse is not open. */
  private opened: Opened | null = null;
  private embeddedLock: EmbeddedLock | null = null;
  private closed = false;
  private readonly opening: Promise<void>;
  /** Settles with the first attempt, successful or not. Rejects if this ClickHouse must not be used at all. */
  readonly tried: Promise<void>;

  constructor(options: ClickHouseLinkOptions) {
    this.options = options;
    const first = Promise.withResolvers<void>();
    this.tried = first.promise;
    this.opening = this.openUntilItWorks(first);
  }

  client(): ClickHouseClient {
    if (this.opened === null) throw new Error('ClickHouse is not open yet');
    return this.opened.client;
  }

  /** The connections for reports; null while ClickHouse is not open. */
  reader(): ClickHouseReader | null {
    return this.opened?.reports ?? null;
  }

  /** null: ClickHouse is a server, or is not open. */
  sealedDays(): SealedDays | null {
    return this.opened?.sealedDays ?? null;
  }

  /**
   * All facts must be inserted through this method, which opens their sealed days first. Inserts during the first
   * attempt to open ClickHouse wait for that attempt, since a start is not a fault. Facts that ClickHouse refuses for
   * their values are left out and logged. Throws while ClickHouse is away.
   */
  async insert(facts: readonly RequestFact[], batch: string): Promise<void> {
    await this.tried;
    const client = this.client();
    const insert = (): Promise<readonly RefusedFact[]> => insertAcceptedFacts(client, facts, batch);
    const refused = await (this.sealedDays()?.whileOpen(daysOf(facts), insert) ?? insert());
    if (refused.length === 0) return;
    const executions = refused.map(({ id }) => id);
    // Only the codes are logged, because ClickHouse's messages quote text of clients and tenants.
    const codes = [...new Set(refused.map(({ code }) => code))];
    this.options.log.error(
      { codes, executions },
      'ClickHouse refused facts for their values: reports lack these executions, which the ledger has',
    );
  }

  async probe(): Promise<void> {
    await this.tried;
    await selectRows(this.client(), 'SELECT 1');
  }

  async close(): Promise<void> {
    this.closed = true;
    this.sleep.stop();
    await this.opening;
    if (this.opened !== null) await closeAll(this.opened.connections);
    this.opened = null;
    await this.embeddedLock?.release();
  }

  private async openUntilItWorks(tried: PromiseWithResolvers<void>): Promise<void> {
    const backoff = new Backoff({ name: 'opening ClickHouse', log: this.options.log });
    while (!this.closed) {
      try {
        this.opened = await this.open();
        backoff.succeeded();
        break;
      } catch (error) {
        const waitMs = backoff.failed(error);
        if (error instanceof SchemaMismatch || error instanceof FactsElsewhere) tried.reject(error);
        else tried.resolve();
        await this.sleep.forMs(waitMs);
      }
    }
    tried.resolve();
  }

  private async open(): Promise<Opened> {
    const { location, clock, log, migrationsDirectory, postgres, databaseUrl, sharesDataDirectory } = this.options;
    const client = await createClickHouse(location, clock);
    const kind = 'directory' in location ? 'embedded' : 'server';
    const connections = [client];
    const connect = async (): Promise<ClickHouseClient> => {
      const further = await createClickHouse(location, clock);
      connections.push(further);
      return further;
    };
    try {
      await holdingAdvisoryLock(postgres, MIGRATION_LOCK, async () => {
        const applied = await migrateClickHouse(client, migrationsDirectory);
        if (applied.length > 0) log.info({ applied }, 'ClickHouse migrations applied');
        const home = { id: await identifyClickHouse(client), kind, machine: hostname() } as const;
        const claim = await claimFactsHome(postgres, home, sharesDataDirectory);
        if (kind === 'embedded') this.embeddedLock ??= await lockEmbedded({ url: databaseUrl, log });
        // A ClickHouse that is new here gets all earlier executions from the ledger. A new installation has none.
        if (claim !== 'known') await requestJobRun(postgres, 'rebuild-facts');
        if (claim === 'moved')
          log.warn(
            'facts are kept in the ClickHouse of CLICKHOUSE_URL from now on, and made there anew from the ledger',
          );
        if (claim === 'lost')
          log.warn('the embedded ClickHouse was lost; a new one takes its place, with facts made anew from the ledger');
      });
      if (kind === 'server') return { client, reports: client, sealedDays: null, connections };
      const [reports, secondConnection] = [await connect(), await connect()];
      return {
        client,
        reports: { query: (statement) => reports.query(statement), secondConnection },
        sealedDays: await SealedDays.load({ facts: client, reports }),
        connections,
      };
    } catch (error) {
      await closeAll(connections);
      await this.embeddedLock?.release();
      this.embeddedLock = null;
      throw error;
    }
  }
}

async function closeAll(connections: readonly ClickHouseClient[]): Promise<void> {
  for (const connection of connections.toReversed()) await connection.close();
}
