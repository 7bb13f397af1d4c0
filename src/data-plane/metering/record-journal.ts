// Writes execution records in groups: all that one turn of the event loop brings goes to the spool in one write (PERFORMANCE 8: 1.4 µs for
// a write each, 0.3 µs at 50 for one), and each caller goes on when its record is written, never before.

import { atTurnEnd } from '../../platform/turn-end.ts';

/** The spool. When `appendTexts` returns, its records survive the death of this process; it throws when they may not. */
export interface RecordSink {
  /** Each the JSON text of an ExecutionRecord. What is thrown may say how many are written all the same: `recordsWritten`, the first ones. */
  appendTexts(records: readonly string[]): void;
}

/** How often what is owed to the spool is offered again. */
const OFFER_AGAIN_MS = 250;

interface Waiting {
  readonly written: () => void;
  readonly failed: (fault: unknown) => void;
}

export class RecordJournal {
  private readonly sink: RecordSink;
  private readonly onFault: (fault: unknown) => void;
  private records: string[] = [];
  private waiting: Waiting[] = [];
  private owed: string[] = [];
  private offering: NodeJS.Timeout | null = null;
  private readonly atEndOfTurn: (run: () => void) => void;

  /** `onFault` is the alarm: it is told of every group that could not be written. `atEndOfTurn`: of simulated processes, which each have their own turns. */
  constructor(sink: RecordSink, onFault: (fault: unknown) => void, atEndOfTurn = atTurnEnd) {
    this.sink = sink;
    this.onFault = onFault;
    this.atEndOfTurn = atEndOfTurn;
  }

  /**
   * `record`: the JSON text of an ExecutionRecord. Later `written` is called when the spool has it; or `failed` when the spool did not take it, or
   * when `written` threw.
   */
  append(record: string, written: () => void, failed: (fault: unknown) => void): void {
    if (this.records.length === 0) this.atEndOfTurn(this.writeGroup);
    this.records.push(record);
    this.waiting.push({ written, failed });
  }

  /** For a record that nobody waits for: it is written as soon as the spool takes it, however long that is, unless the process ends before. */
  appendWhenPossible(record: string): void {
    this.owed.push(record);
    this.offering ??= setInterval(this.writeOwed, OFFER_AGAIN_MS).unref();
  }

  private readonly writeGroup = (): void => {
    const { records, waiting } = this;
    this.records = [];
    this.waiting = [];
    const { count, fault } = this.write(records);
    for (let index = 0; index < waiting.length; index++) {
      const one = waiting[index] as Waiting;
      if (index < count) goOn(one);
      else one.failed(fault);
    }
    // The alarm comes last: what is written is written, whoever hears it.
    if (count < records.length) this.onFault(fault);
  };

  private readonly writeOwed = (): void => {
    const owed = this.owed;
    this.owed = owed.slice(this.write([...owed]).count);
    if (this.owed.length > 0 || this.offering === null) return;
    clearInterval(this.offering);
    this.offering = null;
  };

  /** How many of them are written, the first ones, and why not all. */
  private write(records: readonly string[]): { count: number; fault: unknown } {
    try {
      this.sink.appendTexts(records);
      return { count: records.length, fault: null };
    } catch (fault) {
      return { count: (fault as { recordsWritten?: number }).recordsWritten ?? 0, fault };
    }
  }
}

function goOn({ written, failed }: Waiting): void {
  try {
    written();
  } catch (fault) {
    failed(fault);
  }
}
