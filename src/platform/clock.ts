// The only place that reads the machine's time; everything else is handed a Clock, so that tests and simulations can
// hold time still.

export interface Clock {
  /**
   * Wall time in epoch milliseconds; may step back when the machine's clock is set. For records, never for durations.
   */
  nowMs(): number;
  /** Milliseconds since an arbitrary start, never going back, with a fraction. For durations and deadlines. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};
