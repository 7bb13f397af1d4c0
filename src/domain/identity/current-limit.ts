// How much of a usage limit of a principal is used at the moment.

import type { PrincipalLimit } from './principal.ts';

export interface CurrentLimit extends PrincipalLimit {
  /**
   * For a budget: what posted executions have spent in this period; open executions, and those of the last moments, are
   * not included yet. For a rate: what processes have leased for the last minute and from now on, so never less than
   * was used. null for open requests: only the processes know how many of their leased places are in use.
   */
  readonly used: bigint | null;
  /** The limit minus `used`, at least zero; null when `used` is. */
  readonly remaining: bigint | null;
  /** When a budget is reset to zero; null for the other kinds, which have no such moment. */
  readonly resetsAtMs: number | null;
}
