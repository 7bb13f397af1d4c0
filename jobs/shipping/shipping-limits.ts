// The bounds and pauses of shipping, and their defaults.

export interface ShippingLimits {
  /** The bounds of one Postgres transaction. */
  readonly recordsMax: number;
  readonly bytesMax: number;
  /**
   * The pause after everything was posted. On a core that has slept, a transaction costs as much as a hundred records,
   * so records are collected during the pause. A look-up that waits for its record ends the pause.
   */
  readonly pollMs: number;
  /**
   * A batch that has only admissions waits this long for the first terminal record. Most executions are then posted
   * once instead of twice.
   */
  readonly admittedWaitMs: number;
  /**
   * Facts are collected for this long, because an insert costs ClickHouse about as much as a thousand facts. They are
   * collected three times as long when more than `factsFew` wait, and inserted at once when `factsWanted` wait.
   */
  readonly factsIntervalMs: number;
  readonly factsFew: number;
  readonly factsWanted: number;
  readonly factsMax: number;
  /** The most bytes, in the spool, of the records of one insert. Facts take ten times as much in memory. */
  readonly factsBytesMax: number;
}

export const DEFAULT_LIMITS: ShippingLimits = {
  recordsMax: 2_000,
  bytesMax: 1 << 20,
  pollMs: 400,
  admittedWaitMs: 1_000,
  factsIntervalMs: 2_000,
  factsFew: 1_000,
  factsWanted: 8_000,
  factsMax: 10_000,
  factsBytesMax: 1 << 24,
};
