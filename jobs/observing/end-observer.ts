// Who is told of executions that have ended, once they are in the ledger. Nobody here may hold up or fail a posting.

import type { TerminalRecord } from '../../src/records/execution-record.ts';

export interface EndObserver {
  /** Neither throws nor waits. An execution comes once; what was not told when this process died, never. */
  ended(records: readonly TerminalRecord[]): void;
  /** Tells what it still has, for at most `limitMs`. */
  stop(limitMs: number): Promise<void>;
}
