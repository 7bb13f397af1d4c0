// Computes hours and days in a time zone. ClickHouse gets the beginning of each, so the boundaries, daylight saving
// included, do not depend on the server that has the facts.

import { DAY_MS, HOUR_MS } from '../../platform/durations.ts';

/** Every zone's offset is a multiple of this. */
const QUARTER_MS = 900_000;

interface BucketKind {
  readonly timeZone: string;
  readonly granularity: 'hour' | 'day';
}

/** Both ends in milliseconds since 1970; the last is exclusive. */
interface Window extends BucketKind {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface TimeBucket {
  readonly startMs: number;
  /** RFC 3339 in the window's zone, with its offset: `2026-11-01T01:00:00-05:00`. */
  readonly start: string;
  /** The local date. */
  readonly date: string;
}

/** The buckets that a window touches, first to last. */
export function bucketsOf({ fromMs, untilMs, ...kind }: Window): TimeBucket[] {
  const buckets = new TimeBuckets(kind);
  // A changed clock leaves no bucket shorter than a quarter of an hour, and no day shorter than half a day.
  const stepMs = kind.granularity === 'hour' ? QUARTER_MS : DAY_MS / 2;
  const found = new Map<number, TimeBucket>();
  const add = (atMs: number): void => {
    const bucket = buckets.bucketAt(atMs);
    found.set(bucket.startMs, bucket);
  };
  for (let atMs = fromMs; atMs < untilMs; atMs += stepMs) add(atMs);
  add(untilMs - 1);
  return [...found.values()];
}

/** Finds the bucket of an instant. */
export class TimeBuckets {
  private readonly wall: Intl.DateTimeFormat;
  private readonly unitMs: number;
  private readonly byName = new Map<string, TimeBucket>();
  /** Offsets from UTC at the start of each UTC day. */
  private readonly offsets = new Map<number, number>();

  constructor({ timeZone, granularity }: BucketKind) {
    this.unitMs = granularity === 'hour' ? HOUR_MS : DAY_MS;
    this.wall = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    });
  }

  bucketAt(instantMs: number): TimeBucket {
    // Buckets begin at quarters of an hour, and the runtime's clock parts have no milliseconds.
    const quarterMs = Math.floor(instantMs / QUARTER_MS) * QUARTER_MS;
    const name = this.nameAt(quarterMs);
    let bucket = this.byName.get(name);
    if (bucket === undefined) {
      const startMs = this.startOf(name, quarterMs);
      const wallMs = this.wallMs(startMs);
      const text = new Date(wallMs).toISOString().slice(0, 19);
      bucket = { startMs, start: text + offsetText(wallMs - startMs), date: text.slice(0, 10) };
      this.byName.set(name, bucket);
    }
    return bucket;
  }

  /**
   * The first quarter of an hour in the bucket: the one that the local time implies, unless the clock was changed in
   * between.
   */
  private startOf(name: string, quarterMs: number): number {
    const supposedMs = quarterMs - (this.wallMs(quarterMs) % this.unitMs);
    if (this.nameAt(supposedMs) === name && this.nameAt(supposedMs - QUARTER_MS) !== name) return supposedMs;
    let startMs = quarterMs;
    while (this.nameAt(startMs - QUARTER_MS) === name) startMs -= QUARTER_MS;
    return startMs;
  }

  /** Hours include the offset in their name: an hour that occurs twice is two buckets. */
  private nameAt(instantMs: number): string {
    const wallMs = this.wallMs(instantMs);
    const unit = Math.floor(wallMs / this.unitMs);
    return this.unitMs === DAY_MS ? String(unit) : `${unit} ${wallMs - instantMs}`;
  }

  /**
   * The local time as if it were UTC. Asking the runtime is slow, so a day that begins and ends with the same offset is
   * assumed to have this offset throughout.
   */
  private wallMs(instantMs: number): number {
    const day = Math.floor(instantMs / DAY_MS);
    const offsetMs = this.offsetAtStartOf(day);
    return offsetMs === this.offsetAtStartOf(day + 1) ? instantMs + offsetMs : this.askedWallMs(instantMs);
  }

  private offsetAtStartOf(day: number): number {
    let offsetMs = this.offsets.get(day);
    if (offsetMs === undefined) {
      offsetMs = this.askedWallMs(day * DAY_MS) - day * DAY_MS;
      this.offsets.set(day, offsetMs);
    }
    return offsetMs;
  }

  private askedWallMs(instantMs: number): number {
    const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of this.wall.formatToParts(instantMs)) parts[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  }
}

function offsetText(offsetMs: number): string {
  if (offsetMs === 0) return 'Z';
  const minutes = Math.abs(offsetMs) / 60_000;
  const digits = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  return `${offsetMs < 0 ? '-' : '+'}${digits(minutes / 60)}:${digits(minutes % 60)}`;
}
