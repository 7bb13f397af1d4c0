// The first half of shipping: posts one batch of a spool after another to Postgres, and closes epochs whose owner has
// died. An epoch that cannot be posted is retried later and delays no other.

import type { Clock } from '../../src/platform/clock.ts';
import type { Log } from '../../src/platform/log.ts';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import { closeDeadEpoch, resolveAllPending } from '../../src/storage/postgres/ledger/epochs.ts';
import { postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { quarantine } from '../../src/storage/spool/spool-directory.ts';
import type { EndObserver } from '../observing/end-observer.ts';
import { Backoff } from '../scheduling/backoff.ts';
import type { LocalSpools } from './local-spools.ts';
import type { PostingBatch, ShippedEpoch } from './shipped-epoch.ts';
import type { ShippingLimits } from './shipping-limits.ts';
import type { ShippingMetrics } from './shipping-metrics.ts';

/**
 * SQLSTATE classes that are caused by the values (data exception, integrity constraint violation). Such a batch fails
 * every time.
 */
const DATA_FAULT = /^(22|23)[0-9A-Z]{3}$/;
/**
 * A single bad record is set aside. Several in a row point to a fault of ours, so posting stops instead of setting all
 * of them aside.
 */
const REFUSED_IN_A_ROW_MAX = 3;

/** The recent failures of an epoch. */
interface Attempts {
  readonly backoff: Backoff;
  notBeforeMs: number;
  /** The bound of the next batch. It is 1 after a refused batch, so that frames are posted one by one. */
  recordsMax: number;
  refusedInARow: number;
  waiting: { segment: number; offset: number; sinceMs: number } | null;
}

export interface PostingOptions {
  readonly postgres: Postgres;
  readonly log: Log;
  readonly clock: Clock;
  readonly limits: ShippingLimits;
  readonly metrics: ShippingMetrics;
  readonly spools: LocalSpools;
  readonly observers?: readonly EndObserver[];
}

/** `caught_up`: records were posted, and nothing readable is left. */
export type Posted = 'nothing' | 'caught_up' | 'behind';

export class PostingShipping {
  private readonly options: PostingOptions;
  private readonly attempts = new Map<number, Attempts>();

  constructor(options: PostingOptions) {
    this.options = options;
  }

  /**
   * Posts at most one batch of each epoch. `all`: ignores pauses after failures, and throws faults. `isWanted`: a
   * look-up waits for a record, so admissions are posted without waiting for their terminal records. `all` implies it.
   */
  async step(mode: { all: boolean; isWanted?: boolean } = { all: false }): Promise<Posted> {
    const { clock, spools, metrics } = this.options;
    let posted: Posted = 'nothing';
    for (const epoch of spools.epochs()) {
      const attempts = this.attemptsOf(epoch.epoch);
      if (!mode.all && clock.monotonicMs() < attempts.notBeforeMs) continue;
      try {
        const ofEpoch = await this.postNext(epoch, attempts, mode.all || mode.isWanted === true);
        if (posted === 'nothing' || ofEpoch === 'behind') posted = ofEpoch;
        attempts.backoff.succeeded();
      } catch (error) {
        metrics.postingFaults.increment();
        // The answer may have been lost after the commit, so the cursors are read again.
        spools.forget(epoch);
        if (mode.all) throw error;
        attempts.notBeforeMs = clock.monotonicMs() + attempts.backoff.failed(error);
      }
    }
    return posted;
  }

  private async postNext(epoch: ShippedEpoch, attempts: Attempts, isWanted: boolean): Promise<Posted> {
    const { limits } = this.options;
    const batch = epoch.nextPosting({ recordsMax: attempts.recordsMax, bytesMax: limits.bytesMax });
    if (batch === null) return (await this.endEpoch(epoch)) ? 'behind' : 'nothing';
    if (!isWanted && this.isWaiting(batch, attempts)) return 'nothing';
    if (batch.damage !== null)
      this.setAside(epoch, batch, { bytes: batch.damage, message: 'damaged bytes in a spool were set aside' });
    try {
      await this.post(epoch, batch);
    } catch (error) {
      if (!isDataFault(error) || batch.records.length === 0) throw error;
      // The next batches are single frames, until the refused frame is reached.
      if (attempts.recordsMax > 1) attempts.recordsMax = 1;
      else await this.postOneByOne(epoch, attempts, batch);
      return 'behind';
    }
    attempts.refusedInARow = 0;
    attempts.recordsMax = Math.min(limits.recordsMax, attempts.recordsMax * 2);
    return batch.isNewest ? 'caught_up' : 'behind';
  }

  /** `accepted`: the records that become facts, where these were posted before and `batch` only moves the cursor. */
  private async post(epoch: ShippedEpoch, batch: PostingBatch, accepted = batch.records): Promise<void> {
    const { postgres, spools, metrics } = this.options;
    const result = await postExecutions(postgres, batch);
    if (result.status === 'already_posted') {
      spools.forget(epoch);
      return;
    }
    epoch.posted({ ...batch, records: accepted });
    metrics.recordsPosted.increment(accepted.length);
    this.notifyObservers(accepted);
  }

  /** The records are posted already, so a fault of an observer must not count as a fault of the posting. */
  private notifyObservers(accepted: readonly ExecutionRecord[]): void {
    const { observers = [], log } = this.options;
    if (observers.length === 0) return;
    const ended = accepted.filter((record) => record.type === 'terminal');
    for (const observer of observers) {
      try {
        observer.ended(ended);
      } catch (error) {
        log.error({ err: error, executions: ended.length }, 'shipping: an observer of ended executions failed');
      }
    }
  }

  /**
   * Posts the records of a refused frame one by one, and sets aside the bytes of those that are refused again. Posting
   * a record twice changes nothing.
   */
  private async postOneByOne(epoch: ShippedEpoch, attempts: Attempts, batch: PostingBatch): Promise<void> {
    const { postgres, spools } = this.options;
    const accepted: ExecutionRecord[] = [];
    const refused: string[] = [];
    let firstError: unknown = null;
    for (const record of batch.records) {
      try {
        await postExecutions(postgres, { ...batch, toOffset: batch.fromOffset, records: [record] });
        accepted.push(record);
        attempts.refusedInARow = 0;
      } catch (error) {
        if (!isDataFault(error)) throw error;
        attempts.refusedInARow++;
        if (attempts.refusedInARow > REFUSED_IN_A_ROW_MAX) throw error;
        firstError ??= error;
        refused.push(record.id);
      }
    }
    if (refused.length > 0) {
      const bytes = spools.reader.readBytes(epoch.directory, batch.segment, batch.fromOffset, batch.toOffset);
      const message =
        `of ${batch.records.length} records in a frame, which is set aside, the database refused those of ` +
        `${refused.join(', ')}; the others are posted`;
      this.setAside(epoch, batch, { bytes, message, error: firstError });
    }
    await this.post(epoch, { ...batch, records: [] }, accepted);
  }

  private setAside(
    epoch: ShippedEpoch,
    batch: PostingBatch,
    { bytes, message, error }: { bytes: Buffer; message: string; error?: unknown },
  ): void {
    const place = { epoch: batch.epoch, segment: batch.segment, offset: batch.fromOffset };
    const path = quarantine(this.options.spools.spoolDirectory, place, bytes);
    epoch.quarantined(place);
    this.options.log.error({ err: error, ...place, bytes: bytes.length, path }, `shipping: ${message}`);
  }

  /**
   * Whether a batch of recent admissions alone should wait: if their terminal records are in the next batch, each
   * execution is posted once instead of twice.
   */
  private isWaiting(batch: PostingBatch, attempts: Attempts): boolean {
    const { clock, limits } = this.options;
    const nowMs = clock.monotonicMs();
    if (
      batch.records.length === 0 ||
      batch.records.length >= attempts.recordsMax ||
      batch.records.some((record) => record.type === 'terminal')
    ) {
      attempts.waiting = null;
      return false;
    }
    const { waiting } = attempts;
    if (waiting === null || waiting.segment !== batch.segment || waiting.offset !== batch.fromOffset) {
      attempts.waiting = { segment: batch.segment, offset: batch.fromOffset, sinceMs: nowMs };
      return true;
    }
    return nowMs - waiting.sinceMs < limits.admittedWaitMs;
  }

  /** Returns the leases of a dead owner once all its records are posted. The facts may follow later. */
  private async endEpoch(epoch: ShippedEpoch): Promise<boolean> {
    if (!epoch.fullyPosted || epoch.settled) return false;
    const { postgres, clock, log } = this.options;
    const { returned } = await postgres.transaction((client) => closeDeadEpoch(client, epoch.epoch));
    for await (const resolved of resolveAllPending(postgres, clock.nowMs()))
      log.info(
        { epoch: epoch.epoch, resolved: resolved.length },
        'shipping: executions that their process left open were resolved',
      );
    epoch.settled = true;
    log.info({ epoch: epoch.epoch, returnedPico: returned.toString() }, 'shipping: an ended epoch is closed');
    return true;
  }

  private attemptsOf(epoch: number): Attempts {
    let attempts = this.attempts.get(epoch);
    if (attempts === undefined) {
      const backoff = new Backoff({ name: `posting of epoch ${epoch}`, log: this.options.log });
      attempts = {
        backoff,
        notBeforeMs: 0,
        recordsMax: this.options.limits.recordsMax,
        refusedInARow: 0,
        waiting: null,
      };
      this.attempts.set(epoch, attempts);
    }
    return attempts;
  }
}

function isDataFault(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && DATA_FAULT.test(code);
}
