// How much of a usage limit of a principal is used at the moment.

import type { PrincipalLimit } from './principal.ts';

export interface CurrentLimit extends PrincipalLimit {
  /**
   * For a budget: what posted executions have spent in this period; open executions, and those of the last moments, are
   * not included yet. For a rate: what processes have leased for the last minute and from now on, so never less than
   * was used. For open requests: those whose start is posted and whose end is not, as of a moment ago.
   */
  readonly used: bigint;
  /**
   * Of a budget: what gateways have leased of it and not spent yet. Of a rate, as a part of `used`: what they may use
   * now and in the next seconds, with what they have used of it. Zero for open requests.
   */
  readonly lent: bigint;
  /** The limit minus `used`, at least zero. */
  readonly remaining: bigint;
  /** When a budget is reset to zero; null for the other kinds, which have no such moment. */
  readonly resetsAtMs: number | null;
}
