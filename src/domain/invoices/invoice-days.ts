// Finds the days by which an invoice is compared: the days of the export, which are UTC days unless another zone was
// requested, and the days between them that the export leaves out.

import { DAY_MS } from '../../platform/durations.ts';
import type { Bucket, Invoice } from './invoice.ts';

/** A day on which clocks are set back has 25 hours. */
const DAY_MS_MAX = 25 * 3_600_000;
/**
 * A shorter bucket is an hour or a minute and belongs to its day; a day on which clocks are set forward has 23 hours.
 */
const DAY_MS_MIN = 23 * 3_600_000;
const DAYS_MAX = 400;

export interface InvoiceDay {
  readonly fromMs: number;
  readonly untilMs: number;
  /** `2026-11-01`, or a moment where days do not begin at midnight of UTC. */
  readonly label: string;
  /** The export has a bucket for the day. */
  readonly isCovered: boolean;
}

export interface DaysParams {
  readonly invoice: Pick<Invoice, 'buckets'>;
  /** First and last day that are wanted, in milliseconds; null: as the export has them. */
  readonly fromMs: number | null;
  readonly untilMs: number | null;
}

export type DaysFound =
  | { readonly ok: true; readonly days: readonly InvoiceDay[] }
  | { readonly ok: false; readonly problem: string };

export function findDays({ invoice, fromMs, untilMs }: DaysParams): DaysFound {
  const covered = new Map<number, number>();
  for (const bucket of invoice.buckets) {
    const width = bucket.untilMs - bucket.fromMs;
    if (width <= 0) return { ok: false, problem: `a bucket ends before it begins: ${labelOf(bucket.fromMs)}` };
    if (width > DAY_MS_MAX)
      return { ok: false, problem: `the bucket of ${labelOf(bucket.fromMs)} is longer than a day: export it by days` };
    const day = dayOf(bucket);
    covered.set(day.fromMs, Math.max(day.untilMs, covered.get(day.fromMs) ?? 0));
  }
  const found = [...covered].map(([from, until]) => ({ fromMs: from, untilMs: until })).sort(byTime);
  const overlap = found.find(({ fromMs: from }, index) => from < (found[index - 1]?.untilMs ?? from));
  if (overlap !== undefined)
    return {
      ok: false,
      problem: `days overlap at ${labelOf(overlap.fromMs)}: the exports are of different time zones`,
    };
  const wanted = found.filter(
    (day) => (fromMs === null || day.fromMs >= fromMs) && (untilMs === null || day.untilMs <= untilMs),
  );
  const days = fill(wanted, fromMs ?? wanted[0]?.fromMs, untilMs ?? wanted.at(-1)?.untilMs);
  if (days.length === 0) return { ok: false, problem: 'the export has no day that is to be compared' };
  if (days.length > DAYS_MAX) return { ok: false, problem: `the export spans more than ${DAYS_MAX} days` };
  return { ok: true, days };
}

/** The bucket itself if it is a day, else the UTC day that contains it. */
function dayOf(bucket: Bucket): Bucket {
  if (bucket.untilMs - bucket.fromMs >= DAY_MS_MIN) return bucket;
  const fromMs = Math.floor(bucket.fromMs / DAY_MS) * DAY_MS;
  return { fromMs, untilMs: fromMs + DAY_MS };
}

function byTime(one: Bucket, other: Bucket): number {
  return one.fromMs - other.fromMs;
}

function fill(covered: readonly Bucket[], fromMs = 0, untilMs = 0): readonly InvoiceDay[] {
  const days: InvoiceDay[] = [];
  let at = fromMs;
  const missUntil = (end: number): void => {
    while (at < end && days.length <= DAYS_MAX) {
      const next = Math.min(at + DAY_MS, end);
      days.push({ fromMs: at, untilMs: next, label: labelOf(at), isCovered: false });
      at = next;
    }
  };
  for (const day of covered) {
    missUntil(day.fromMs);
    days.push({ ...day, label: labelOf(day.fromMs), isCovered: true });
    at = day.untilMs;
  }
  missUntil(untilMs);
  return days;
}

function labelOf(ms: number): string {
  const text = new Date(ms).toISOString();
  return ms % DAY_MS === 0 ? text.slice(0, 10) : `${text.slice(0, 16)}Z`;
}

/** Which of the days an instant lies in; -1: none. */
export function dayAt(days: readonly InvoiceDay[], ms: number): number {
  return days.findIndex(({ fromMs, untilMs }) => ms >= fromMs && ms < untilMs);
}
