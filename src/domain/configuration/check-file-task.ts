// The input of the worker task check-file.

import type { BegunFlag } from '../../platform/begun-flag.ts';
import type { StoredNames } from './check-references.ts';

export interface FileCheck {
  readonly text: string;
  /** Values of the variables that the file names. */
  readonly variables: Readonly<Record<string, string>>;
}

export interface CheckFileInput extends FileCheck {
  readonly stored: StoredNames;
  /** Set once the task runs: its deadline counts from then on. */
  readonly begun: BegunFlag;
}
