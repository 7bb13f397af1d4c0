// The only place that reads the machine's time. Everything else receives a Clock, so that tests and simulations can
// control time.

export interface Clock {
  /**
   * Wall-clock time in epoch milliseconds, which may step back when the clock is set. For records, never for durations.
   */
  nowMs(): number;
  /** Milliseconds, with a fraction, since an arbitrary start; never steps back. For durations and deadlines. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};
