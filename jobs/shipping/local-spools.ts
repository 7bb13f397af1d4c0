// The spools of this machine as the shipper knows them: lists them from time to time, opens new ones with their cursors
// and removes shipped ones.

import type { Log } from '../../src/platform/log.ts';
import { deleteSpoolCursors, readSpoolCursors } from '../../src/storage/postgres/ledger/spool-cursors.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { isBeating } from '../../src/storage/postgres/processes/beats.ts';
import {
  type EpochSpool,
  listEpochs,
  listQuarantine,
  listQuarantinedPlaces,
  readEpochSpool,
  removeEpochSpool,
  removePartialSpools,
  removeSegment,
} from '../../src/storage/spool/spool-directory.ts';
import { isSpoolHeld } from '../../src/storage/spool/spool-hold.ts';
import { SpoolReader } from '../../src/storage/spool/spool-reader.ts';
import { ShippedEpoch } from './shipped-epoch.ts';
import type { ShippingMetrics } from './shipping-metrics.ts';

export class LocalSpools {
  readonly spoolDirectory: string;
  private readonly postgres: Postgres;
  private readonly log: Log;
  private readonly metrics: ShippingMetrics;
  private readonly byNumber = new Map<number, ShippedEpoch>();
  private readonly unreadable = new Set<number>();
  /** One buffer serves all spools, because records are taken out before the next read. */
  readonly reader = new SpoolReader();

  constructor(options: { spoolDirectory: string; postgres: Postgres; log: Log; metrics: ShippingMetrics }) {
    this.spoolDirectory = options.spoolDirectory;
    this.postgres = options.postgres;
    this.log = options.log;
    this.metrics = options.metrics;
    removePartialSpools(options.spoolDirectory);
  }

  /** Oldest first. */
  epochs(): ShippedEpoch[] {
    return [...this.byNumber.values()];
  }

  async survey(): Promise<void> {
    const listed = listEpochs(this.spoolDirectory);
    this.dropRemoved(listed);
    for (const epoch of listed) {
      const known = this.byNumber.get(epoch);
      if (known?.ended === true) continue;
      const spool = this.readSpool(epoch);
      if (spool === null || (spool.mayLiveElsewhere && (await this.livesElsewhere(epoch)))) continue;
      this.unreadable.delete(epoch);
      if (known === undefined) this.byNumber.set(epoch, await this.openEpoch(spool));
      else known.refresh(spool);
      if (spool.ended) this.log.info({ epoch }, 'shipping: the owner of a spool has ended');
    }
    if (!isSpoolHeld(this.spoolDirectory)) await this.removeShipped();
    this.measure();
  }

  private async openEpoch(spool: EpochSpool): Promise<ShippedEpoch> {
    const cursors = await readSpoolCursors(this.postgres, spool.epoch);
    return new ShippedEpoch(spool, cursors, this.reader, listQuarantinedPlaces(this.spoolDirectory, spool.epoch));
  }

  /** null: the spool has no readable owner or a newer form, so it cannot be shipped. It waits; other spools go on. */
  private readSpool(epoch: number): EpochSpool | null {
    try {
      return readEpochSpool(this.spoolDirectory, epoch);
    } catch (error) {
      this.markUnreadable(epoch, error);
      return null;
    }
  }

  /**
   * Whether the owner of the spool is alive on another machine, so that this spool is a copy. The owner still writes to
   * the original and spends the leases of its epoch. A copy must therefore neither be posted nor end the epoch.
   */
  private async livesElsewhere(epoch: number): Promise<boolean> {
    if (!(await isBeating(this.postgres, epoch))) return false;
    this.markUnreadable(epoch, new Error('its owner runs on another machine, or did a moment ago: it may be a copy'));
    return true;
  }

  private markUnreadable(epoch: number, error: unknown): void {
    if (!this.unreadable.has(epoch)) this.log.error({ err: error, epoch }, 'shipping: a spool cannot be read');
    this.unreadable.add(epoch);
  }

  /** Makes the next survey read the epoch's cursors again: after a lost answer it is unknown what was committed. */
  forget(epoch: ShippedEpoch): void {
    this.byNumber.delete(epoch.epoch);
  }

  /** Drops epochs whose spool another jobs process has shipped and removed. */
  private dropRemoved(listed: readonly number[]): void {
    for (const epoch of this.byNumber.keys()) if (!listed.includes(epoch)) this.byNumber.delete(epoch);
    for (const epoch of this.unreadable) if (!listed.includes(epoch)) this.unreadable.delete(epoch);
  }

  private async removeShipped(): Promise<void> {
    for (const epoch of this.byNumber.values()) {
      for (const segment of epoch.takeRemovableSegments()) removeSegment(epoch.directory, segment);
    }
    for (const epoch of this.epochs()) if (epoch.resolvedFactsShipped) await this.remove(epoch);
  }

  /**
   * The directory is removed first: cursors without a spool mean nothing, but a spool without cursors would be shipped
   * again (without effect).
   */
  private async remove(epoch: ShippedEpoch): Promise<void> {
    removeEpochSpool(this.spoolDirectory, epoch.epoch);
    this.byNumber.delete(epoch.epoch);
    await deleteSpoolCursors(this.postgres, epoch.epoch);
    this.log.info({ epoch: epoch.epoch }, 'shipping: an ended spool is shipped and removed');
  }

  private measure(): void {
    let unposted = 0;
    let withoutFacts = 0;
    for (const epoch of this.byNumber.values()) {
      try {
        const lag = epoch.lagBytes();
        unposted += lag.unposted;
        withoutFacts += lag.withoutFacts;
      } catch (error) {
        // Its files have changed, so the epoch is read anew.
        this.log.warn({ err: error, epoch: epoch.epoch }, 'shipping: the size of a spool cannot be read');
        this.forget(epoch);
      }
    }
    this.metrics.unpostedBytes.set(unposted);
    this.metrics.bytesWithoutFacts.set(withoutFacts);
    this.metrics.epochs.set(this.byNumber.size);
    this.metrics.unreadableSpools.set(this.unreadable.size);
    this.metrics.quarantinedFiles.set(listQuarantine(this.spoolDirectory).length);
  }
}
