// Dates in a time zone: the date of an instant, and the instant at which a date begins.

import { DAY_MS } from '../../platform/durations.ts';
import { TimeBuckets } from './time-buckets.ts';

export class CalendarDays {
  private readonly buckets: TimeBuckets;

  constructor(timeZone: string) {
    this.buckets = new TimeBuckets({ timeZone, granularity: 'day' });
  }

  dateAt(timeMs: number): string {
    return this.buckets.bucketAt(timeMs).date;
  }

  /**
   * The start of a date. A zone that crossed the date line may lack the date; the result is then the start of the next
   * one.
   */
  startOf(date: string): number {
    const noonMs = Date.parse(`${date}T12:00:00Z`);
    // Local time is up to 14 hours away from UTC, so the day is this one or a neighbour.
    for (const nearMs of [noonMs, noonMs - DAY_MS, noonMs + DAY_MS]) {
      const bucket = this.buckets.bucketAt(nearMs);
      if (bucket.date === date) return bucket.startMs;
    }
    return this.buckets.bucketAt(noonMs + DAY_MS).startMs;
  }
}

export function addDays(date: string, days: number): string {
  return new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10);
}

/** The number of days from one date to another; 0: they are the same. */
export function daysBetween(start: string, end: string): number {
  return (Date.parse(end) - Date.parse(start)) / DAY_MS;
}
