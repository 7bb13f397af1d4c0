// The interface of observers, which shipping notifies of ended executions once these are in the ledger. An observer
// must not delay or fail a posting.

import type { TerminalRecord } from '../../src/records/execution-record.ts';

export interface EndObserver {
  /**
   * Must neither throw nor wait. Each execution is passed at most once: an execution whose observer had not been
   * notified when the process died is never passed.
   */
  ended(records: readonly TerminalRecord[]): void;
  /** Writes or sends what the observer still keeps, for at most `limitMs`. */
  stop(limitMs: number): Promise<void>;
}
