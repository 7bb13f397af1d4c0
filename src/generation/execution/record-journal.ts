// Writes execution records in groups: all that one tick of the event loop brings goes to the spool in one write
// (PERFORMANCE 8: 1.4 µs for a write each, 0.3 µs at 50 for one), and each caller goes on when its record is written,
// never before.

import { atTickEnd } from '../../platform/tick.ts';
import type { RecordGroup } from '../../records/record-group.ts';

/** The spool. */
export interface RecordSink {
  /** An empty group. */
  takeGroup(): RecordGroup;
  /**
   * Takes a group over. When it returns its records survive the death of this process; it throws when
   * they may not. What is thrown may say how many are written all the same: `recordsWritten`, the first ones.
   */
  appendGroup(group: RecordGroup): void;
}

/** How often what is owed to the spool is offered again. */
const DEPLOYMENT_AGAIN_MS = 250;

/** Whoever goes on when a record is written. */
export interface RecordOwner {
  /** The spool has the record. */
  onWritten(): void;
  /** So have all of its group heard. */
  goOn(): void;
  /** The spool did not take it, or one of the others threw. */
  onUnwritten(fault: unknown): void;
}

export class RecordJournal {
  private readonly sink: RecordSink;
  private readonly onFault: (fault: unknown) => void;
  private group: RecordGroup | null = null;
  private waiting: RecordOwner[] = [];
  private owed: ((group: RecordGroup) => void)[] = [];
  private offering: NodeJS.Timeout | null = null;
  private readonly atEndOfTick: (run: () => void) => void;

  /**
   * `onFault` is the alarm: it is told of every group that could not be written. `atEndOfTick`: of simulated processes,
   * which each have their own ticks.
   */
  constructor(sink: RecordSink, onFault: (fault: unknown) => void, atEndOfTick = atTickEnd) {
    this.sink = sink;
    this.onFault = onFault;
    this.atEndOfTick = atEndOfTick;
  }

  /** A record is to be begun and put into what this returns, at once, and `append` ends it. */
  begin(): RecordGroup {
    if (this.group === null) {
      this.group = this.sink.takeGroup();
      this.atEndOfTick(this.writeGroup);
    }
    return this.group;
  }

  /** Ends the record that was begun. Its owner hears of it at the end of the tick. */
  append(owner: RecordOwner): void {
    this.group?.endRecord();
    this.waiting.push(owner);
  }

  /**
   * For a record that nobody waits for: it is written as soon as the spool takes it, however long that is, unless the
   * process ends before. `put` may be called more than once.
   */
  appendWhenPossible(put: (group: RecordGroup) => void): void {
    this.owed.push(put);
    this.offering ??= setInterval(this.writeOwed, DEPLOYMENT_AGAIN_MS).unref();
  }

  private readonly writeGroup = (): void => {
    const { group, waiting } = this;
    this.group = null;
    this.waiting = [];
    const { count, fault } = this.write(group as RecordGroup);
    // One step for all, then the next: see TickWork.
    const written: RecordOwner[] = [];
    for (let index = 0; index < waiting.length; index++) {
      const owner = waiting[index] as RecordOwner;
      if (index >= count) owner.onUnwritten(fault);
      else if (hears(owner)) written.push(owner);
    }
    for (const owner of written) goOn(owner);
    // The alarm comes last: what is written is written, whoever hears it.
    if (count < waiting.length) this.onFault(fault);
  };

  private readonly writeOwed = (): void => {
    const owed = this.owed;
    const group = this.sink.takeGroup();
    for (const put of owed) {
      put(group);
      group.endRecord();
    }
    this.owed = owed.slice(this.write(group).count);
    if (this.owed.length > 0 || this.offering === null) return;
    clearInterval(this.offering);
    this.offering = null;
  };

  /** How many of them are written, the first ones, and why not all. */
  private write(group: RecordGroup): { count: number; fault: unknown } {
    const count = group.records;
    try {
      this.sink.appendGroup(group);
      return { count, fault: null };
    } catch (fault) {
      return { count: (fault as { recordsWritten?: number }).recordsWritten ?? 0, fault };
    }
  }
}

function hears(owner: RecordOwner): boolean {
  try {
    owner.onWritten();
    return true;
  } catch (fault) {
    owner.onUnwritten(fault);
    return false;
  }
}

function goOn(owner: RecordOwner): void {
  try {
    owner.goOn();
  } catch (fault) {
    owner.onUnwritten(fault);
  }
}
