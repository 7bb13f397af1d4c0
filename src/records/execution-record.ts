// The two records that a gateway appends to its spool for each execution: `admitted` before a byte goes upstream, and
// `terminal` before the client can see the end. Records are plain values with the fields of fields.ts; jobs posts them.

import type { ValuesOf } from './fields.ts';

/** What is known of an execution when it is admitted. The terminal record repeats it. */
export interface ExecutionStart extends ValuesOf<'caller' | 'deployment' | 'start'> {}

/** What is known only when the execution ends. */
export interface ExecutionEnd extends ValuesOf<'ending' | 'end'> {}

export interface AdmittedRecord extends ExecutionStart {
  readonly type: 'admitted';
}

export interface TerminalRecord extends ExecutionStart, ExecutionEnd {
  readonly type: 'terminal';
}

export type ExecutionRecord = AdmittedRecord | TerminalRecord;
