// The time window of a report (spec 4.10, 8): from dates or instants in the given time zone, at most 92 days.

import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { addDays, CalendarDays, daysBetween } from '../../src/domain/reports/calendar-days.ts';
import {
  HOURLY_DAYS_MAX,
  type ReportQuery,
  WINDOW_DAYS_DEFAULT,
  WINDOW_DAYS_MAX,
} from '../../src/domain/reports/report-query.ts';
import { DAY_MS } from '../../src/platform/durations.ts';
import type { ReportWindow } from '../../src/storage/clickhouse/reports/report-params.ts';

const EARLIEST_MS = Date.UTC(2000, 0, 1);
const LATEST_MS = Date.UTC(2200, 0, 1);

export interface AskedWindow {
  readonly window: ReportWindow;
  /** The dates of the request, or their defaults. */
  readonly startDate: string;
  readonly endDate: string;
}

type WindowQuery = Pick<ReportQuery, 'start_date' | 'end_date' | 'time_zone' | 'granularity'>;

export function readWindow(query: WindowQuery, nowMs: number): AskedWindow | Refusal {
  // The canonical name of a zone that has several, so that UTC is recognized.
  const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: query.time_zone ?? 'UTC' }).resolvedOptions();
  const days = new CalendarDays(timeZone);
  const end =
    query.end_date ??
    (query.start_date === undefined || isDate(query.start_date) ? days.dateAt(nowMs) : momentText(nowMs));
  const start =
    query.start_date ??
    (isDate(end) ? addDays(end, 1 - WINDOW_DAYS_DEFAULT) : momentText(Date.parse(end) - WINDOW_DAYS_DEFAULT * DAY_MS));
  const fromMs = isDate(start) ? days.startOf(start) : Date.parse(start);
  const untilMs = isDate(end) ? days.startOf(addDays(end, 1)) : Date.parse(end);
  for (const [field, timeMs] of [
    ['start_date', fromMs],
    ['end_date', untilMs],
  ] as const) {
    if (timeMs < EARLIEST_MS || timeMs > LATEST_MS)
      return { kind: 'invalid_field', field, reason: 'it must be in the years 2000 to 2199' };
  }
  if (fromMs >= untilMs)
    return { kind: 'invalid_field', field: 'end_date', reason: 'it must not be before start_date' };
  // Dates are counted as days, however long a day is when clocks change.
  const length = isDate(start) && isDate(end) ? daysBetween(start, end) + 1 : (untilMs - fromMs) / DAY_MS;
  if (length > WINDOW_DAYS_MAX) {
    return {
      kind: 'invalid_field',
      field: 'start_date',
      reason: `it must be at most ${WINDOW_DAYS_MAX} days before end_date`,
    };
  }
  const granularity = query.granularity ?? (length <= HOURLY_DAYS_MAX ? 'hour' : 'day');
  return { window: { fromMs, untilMs, granularity, timeZone }, startDate: shown(start), endDate: shown(end) };
}

function isDate(text: string): boolean {
  return text.length === 10;
}

function shown(text: string): string {
  return isDate(text) ? text : momentText(Date.parse(text));
}

function momentText(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
