// The jobs process's ClickHouse: opened and migrated when it can be, tried again while it cannot, so that postings never wait for it.

import type { Clock } from '../src/platform/clock.ts';
import type { Log } from '../src/platform/log.ts';
import { type ClickHouseClient, type ClickHouseLocation, createClickHouse } from '../src/storage/clickhouse/clickhouse.ts';
import { insertFacts, type RequestFact } from '../src/storage/clickhouse/facts.ts';
import { migrateClickHouse } from '../src/storage/clickhouse/migrate.ts';
import { holdingAdvisoryLock } from '../src/storage/postgres/advisory-lock.ts';
import type { Postgres } from '../src/storage/postgres/pool.ts';
import type { FactSink } from './ship-spool.ts';
import { Backoff } from './shipping/backoff.ts';
import { StoppableSleep } from './shipping/stoppable-sleep.ts';

/** Any number that no one else's lock uses. */
const MIGRATION_LOCK = 7_060_155_442;

export interface ClickHouseLinkOptions {
  readonly location: ClickHouseLocation;
  readonly migrationsDirectory: string;
  readonly postgres: Postgres;
  readonly log: Log;
  readonly clock: Clock;
}

export class ClickHouseLink implements FactSink {
  readonly #options: ClickHouseLinkOptions;
  readonly #sleep = new StoppableSleep();
  #client: ClickHouseClient | null = null;
  #closed = false;
  readonly #opening: Promise<void>;
  /** Settles with the first attempt, whichever way it went. */
  readonly tried: Promise<void>;

  constructor(options: ClickHouseLinkOptions) {
    this.#options = options;
    const first = Promise.withResolvers<void>();
    this.tried = first.promise;
    this.#opening = this.#openUntilItWorks(first.resolve);
  }

  client(): ClickHouseClient {
    if (this.#client === null) throw new Error('ClickHouse is not open yet');
    return this.#client;
  }

  /** null while it is not open. */
  get opened(): ClickHouseClient | null {
    return this.#client;
  }

  async insert(facts: readonly RequestFact[], batch: string): Promise<void> {
    await insertFacts(this.client(), facts, batch);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#sleep.stop();
    await this.#opening;
    await this.#client?.close();
    this.#client = null;
  }

  async #openUntilItWorks(tried: () => void): Promise<void> {
    const backoff = new Backoff({ name: 'opening ClickHouse', log: this.#options.log });
    while (!this.#closed) {
      try {
        this.#client = await this.#open();
        backoff.succeeded();
        break;
      } catch (error) {
        const waitMs = backoff.failed(error);
        tried();
        await this.#sleep.forMs(waitMs);
      }
    }
    tried();
  }

  async #open(): Promise<ClickHouseClient> {
    const { location, clock, log, migrationsDirectory, postgres } = this.#options;
    const client = await createClickHouse(location, clock);
    try {
      const applied = await holdingAdvisoryLock(postgres, MIGRATION_LOCK, () => migrateClickHouse(client, migrationsDirectory));
      if (applied.length > 0) log.info({ applied }, 'ClickHouse migrations applied');
      return client;
    } catch (error) {
      await client.close();
      throw error;
    }
  }
}
