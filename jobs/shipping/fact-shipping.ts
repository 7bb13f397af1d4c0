// The second half of shipping: inserts the facts of posted executions into ClickHouse, many spools at once, and then
// moves their cursors.

import type { Clock } from '../../src/platform/clock.ts';
import { factOf, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import { readKilledExecutions } from '../../src/storage/postgres/ledger/generation-facts.ts';
import { advanceFactsOffsets } from '../../src/storage/postgres/ledger/spool-cursors.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import type { LocalSpools } from './local-spools.ts';
import type { FactRange, ShippedEpoch } from './shipped-epoch.ts';
import type { ShippingLimits } from './shipping-limits.ts';
import type { ShippingMetrics } from './shipping-metrics.ts';

/** The destination of facts. Throws while ClickHouse is away. */
export interface FactSink {
  insert(facts: readonly RequestFact[], batch: string): Promise<void>;
  /** Throws while ClickHouse is away. An insert costs more, since it makes the text of its facts before it can fail. */
  probe(): Promise<void>;
}

export interface FactShippingOptions {
  readonly postgres: Postgres;
  readonly facts: FactSink;
  readonly clock: Clock;
  readonly limits: ShippingLimits;
  readonly metrics: ShippingMetrics;
  readonly spools: LocalSpools;
}

/** When many facts wait, they are collected for this many times the interval. */
const BUSY_INTERVALS = 3;

interface Collected {
  readonly epoch: ShippedEpoch;
  readonly ranges: FactRange[];
}

export class FactShipping {
  private readonly options: FactShippingOptions;
  private insertedMs = Number.NEGATIVE_INFINITY;
  private more = false;
  /** Facts of a failed insert, which are sent again unchanged; null: the last insert succeeded. */
  private refused: readonly Collected[] | null = null;

  constructor(options: FactShippingOptions) {
    this.options = options;
  }

  /**
   * Makes at most one insert of facts of spools. Resolves to false if no insert was due or there was nothing to do.
   * `all`: an insert is always due. Throws while ClickHouse is away.
   */
  async step(mode: { all: boolean } = { all: false }): Promise<boolean> {
    if (!mode.all && !this.more && !this.isDue()) return false;
    try {
      return await this.insertNext();
    } catch (error) {
      this.options.metrics.factFaults.increment();
      throw error;
    }
  }

  private isDue(): boolean {
    const { factsIntervalMs, factsFew, factsWanted } = this.options.limits;
    const kept = this.keptCount();
    const intervalMs = kept > factsFew ? factsIntervalMs * BUSY_INTERVALS : factsIntervalMs;
    return kept >= factsWanted || this.options.clock.monotonicMs() - this.insertedMs >= intervalMs;
  }

  private async insertNext(): Promise<boolean> {
    const { facts: sink, postgres, clock, limits, metrics } = this.options;
    if (this.refused !== null) await sink.probe();
    const collected = this.refused ?? this.collect();
    this.refused = collected;
    const ranges = collected.flatMap(({ ranges: ofEpoch }) => mergeBySegment(ofEpoch));
    const facts = ranges.flatMap((range) => range.facts);
    this.insertedMs = clock.monotonicMs();
    this.more = facts.length >= limits.factsMax || bytesOf(ranges) >= limits.factsBytesMax;
    if (facts.length > 0) await sink.insert(facts, nameBatch(ranges));
    if (ranges.length > 0) await advanceFactsOffsets(postgres, ranges);
    this.refused = null;
    for (const { epoch, ranges: ofEpoch } of collected) for (const range of ofEpoch) epoch.factsInserted(range);
    metrics.factsInserted.increment(facts.length);
    const ended = await this.endEpochs();
    return ranges.length > 0 || ended;
  }

  /**
   * Executions that were resolved when their epoch ended are in no spool. They are read from the ledger, so that a
   * crash in between loses none.
   */
  private async endEpochs(): Promise<boolean> {
    const { facts: sink, postgres, spools, metrics } = this.options;
    const ending = spools
      .epochs()
      .filter((epoch) => epoch.settled && epoch.factsShipped && !epoch.resolvedFactsShipped);
    for (const epoch of ending) {
      const killed = await readKilledExecutions(postgres, epoch.epoch, epoch.openedAtMs);
      if (killed.length > 0) await sink.insert(killed.map(factOf), `${epoch.epoch}:killed:${killed.length}`);
      metrics.factsInserted.increment(killed.length);
      epoch.resolvedFactsShipped = true;
    }
    return ending.length > 0;
  }

  private collect(): Collected[] {
    const { spools, limits } = this.options;
    const collected: Collected[] = [];
    let left = limits.factsMax;
    let bytesLeft = limits.factsBytesMax;
    for (const epoch of spools.epochs()) {
      if (left <= 0 || bytesLeft <= 0) break;
      const ranges = epoch.nextFacts({ recordsMax: left, bytesMax: limits.bytesMax, allBytesMax: bytesLeft });
      if (ranges.length === 0) continue;
      collected.push({ epoch, ranges });
      left -= ranges.reduce((count, range) => count + range.facts.length, 0);
      bytesLeft -= bytesOf(ranges);
    }
    return collected;
  }

  private keptCount(): number {
    return this.options.spools.epochs().reduce((count, epoch) => count + epoch.keptFactsCount, 0);
  }
}

function bytesOf(ranges: readonly FactRange[]): number {
  return ranges.reduce((bytes, { fromOffset, toOffset }) => bytes + toOffset - fromOffset, 0);
}

/** Joins the ranges of each segment. Ranges of an epoch have no gaps between them. */
function mergeBySegment(ranges: readonly FactRange[]): FactRange[] {
  const bySegment = new Map<number, FactRange[]>();
  for (const range of ranges) {
    const ofSegment = bySegment.get(range.segment);
    if (ofSegment === undefined) bySegment.set(range.segment, [range]);
    else ofSegment.push(range);
  }
  return [...bySegment.values()].map((ofSegment) => ({
    ...(ofSegment[0] as FactRange),
    toOffset: (ofSegment.at(-1) as FactRange).toOffset,
    facts: ofSegment.flatMap((range) => range.facts),
  }));
}

/** The name of a batch. Facts that are sent again from the same cursors get the same name. */
function nameBatch(ranges: readonly FactRange[]): string {
  return ranges
    .map(({ epoch, segment, fromOffset, toOffset }) => `${epoch}:${segment}:${fromOffset}-${toOffset}`)
    .join(',');
}
