// The records that a gateway appends to its spool: `admitted` before a byte goes upstream, one `terminal` before the
// client can see the end. They are plain values, whose fields are those of fields.ts; jobs posts them.

import type { ValuesOf } from './fields.ts';

/** What is known of an execution when it is admitted; the record of its end repeats it. */
export interface ExecutionStart extends ValuesOf<'caller' | 'deployment' | 'start'> {}

/** What is known when it ends. */
export interface ExecutionEnd extends ValuesOf<'ending' | 'end'> {}

export interface AdmittedRecord extends ExecutionStart {
  readonly type: 'admitted';
}

export interface TerminalRecord extends ExecutionStart, ExecutionEnd {
  readonly type: 'terminal';
}

export type ExecutionRecord = AdmittedRecord | TerminalRecord;
