// The input of the worker task try-policies. Its output is what the policies would find.

import type { BegunFlag } from '../../platform/begun-flag.ts';
import type { TextToTry } from './find-in-text.ts';
import type { Policy } from './policy.ts';

export interface TryPoliciesInput {
  readonly policies: readonly Policy[];
  readonly tried: TextToTry;
  /** Set once the task runs: its deadline counts from then on. */
  readonly begun: BegunFlag;
}
