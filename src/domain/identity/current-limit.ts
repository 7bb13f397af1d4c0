// The current use of a principal's usage limit.

import type { PrincipalLimit } from './principal.ts';

export interface CurrentLimit extends PrincipalLimit {
  /**
   * For a budget: what posted executions have spent in this period; open executions, and those of the last moments, are
   * not included yet. For a rate: what processes have leased for the last minute and the coming seconds, so it is never
   * less than the real use. For open requests: those whose start is posted and whose end is not, as of a moment ago.
   */
  readonly used: bigint;
  /**
   * For a budget: what gateways have leased and not spent yet. For a rate, as a part of `used`: what gateways have
   * leased for now and the next seconds, whether it is used already or not. Zero for open requests.
   */
  readonly lent: bigint;
  /** The limit minus `used`, at least zero. */
  readonly remaining: bigint;
  /** When a budget is reset to zero; null for the other kinds, which have no such moment. */
  readonly resetsAtMs: number | null;
}
