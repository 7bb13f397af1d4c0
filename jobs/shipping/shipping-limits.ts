// The bounds and pauses of shipping, and what they are unless somebody sets others.

export interface ShippingLimits {
  /** The bounds of one Postgres transaction. */
  readonly recordsMax: number;
  readonly bytesMax: number;
  /**
   * The pause after everything was posted. A transaction costs as much as a hundred records where the core has slept,
   * so records are collected meanwhile. A look-up that waits for its record ends the pause.
   */
  readonly pollMs: number;
  /**
   * A batch of admissions alone waits this long for the first terminal record, since most executions need not be posted
   * twice then.
   */
  readonly admittedWaitMs: number;
  /**
   * An insert costs ClickHouse about as much as a thousand facts, so facts are collected for this time, three times as
   * long where more than `factsFew` have come meanwhile, or up to `factsWanted`.
   */
  readonly factsIntervalMs: number;
  readonly factsFew: number;
  readonly factsWanted: number;
  readonly factsMax: number;
  /** Of the records of one insert, in the spool: in memory facts take ten times as much. */
  readonly factsBytesMax: number;
}

export const DEFAULT_LIMITS: ShippingLimits = {
  recordsMax: 2_000,
  bytesMax: 1 << 20,
  pollMs: 200,
  admittedWaitMs: 1_000,
  factsIntervalMs: 2_000,
  factsFew: 1_000,
  factsWanted: 8_000,
  factsMax: 10_000,
  factsBytesMax: 1 << 24,
};
