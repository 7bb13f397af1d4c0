// Limits the rate of events by key. A key may have a whole minute's events at once, and then gets them back at an even
// pace.

import { BoundedMap } from './bounded-map.ts';
import { MINUTE_MS } from './durations.ts';

/** Beyond this many keys the one counted longest ago is forgotten, and starts with a whole minute's events again. */
const KEYS_MAX = 10_000;
/** Rounding errors of added fractions stay below this; without it a key's last event would be refused now and then. */
const ROUNDING_MS = 1;

export class RateMeter {
  private readonly intervalMs: number;
  /** By key: when a whole minute's events will be available again (the theoretical arrival time of a GCRA). */
  private readonly fullAtMs = new BoundedMap<string, number>(KEYS_MAX);

  constructor(perMinute: number) {
    this.intervalMs = MINUTE_MS / perMinute;
  }

  /** How long the key's next event must wait; 0: not at all. */
  waitMs(key: string, nowMs: number): number {
    const waitMs = this.fullAtAfter(key, nowMs) - nowMs - MINUTE_MS;
    return waitMs < ROUNDING_MS ? 0 : waitMs;
  }

  count(key: string, nowMs: number): void {
    this.fullAtMs.set(key, this.fullAtAfter(key, nowMs));
  }

  private fullAtAfter(key: string, nowMs: number): number {
    return Math.max(this.fullAtMs.get(key) ?? 0, nowMs) + this.intervalMs;
  }
}
