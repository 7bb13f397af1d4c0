// How a ceiling that holds for a principal stands now.

import type { PrincipalLimit } from './principal.ts';

export interface CurrentLimit extends PrincipalLimit {
  /**
   * A budget: what posted executions have spent in this period; open ones, and those of the last moments, are not in it
   * yet. A rate: what was granted to processes for the last minute and from now on, used or about to be: never less
   * than what was used. Open requests: null, since only the processes know how many of the places that they have taken
   * are in use.
   */
  readonly used: bigint | null;
  /** The limit less `used`, not below zero; null with it. */
  readonly remaining: bigint | null;
  /** When a budget starts again at zero; null for the others, which have no such moment. */
  readonly resetsAtMs: number | null;
}
