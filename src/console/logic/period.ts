// Turns the window in the address, a name such as `7d` or two dates, into the first and last day of a report. Days are
// days of the chosen time zone. The server decides which requests belong to a day.

export interface Period {
  readonly start: string;
  readonly end: string;
  readonly granularity: 'hour' | 'day';
}

export const PERIODS = [
  { id: '1d', name: 'Today', days: 1 },
  { id: '3d', name: '3 days', days: 3 },
  { id: '7d', name: '7 days', days: 7 },
  { id: '30d', name: '30 days', days: 30 },
  { id: '92d', name: '92 days', days: 92 },
] as const;
export const DEFAULT_PERIOD = '30d';

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DAY_MS = 86_400_000;
/** Windows up to this length are reported by hour, as by the server's own default. */
const HOURLY_DAYS_MAX = 3;

export function periodOf(params: { range?: string; from?: string; to?: string }, now: Date, timeZone: string): Period {
  const { from, to } = params;
  if (from !== undefined && to !== undefined && isDate(from) && isDate(to) && from <= to)
    return { start: from, end: to, granularity: granularityOf(daysBetween(from, to)) };
  const days = PERIODS.find(({ id }) => id === params.range)?.days ?? 30;
  const end = dateIn(now, timeZone);
  return { start: addDays(end, 1 - days), end, granularity: granularityOf(days) };
}

/** The window of the same length that ends the day before this one begins. */
export function periodBefore({ start, end, granularity }: Period): Period {
  const days = daysBetween(start, end);
  return { start: addDays(start, -days), end: addDays(start, -1), granularity };
}

function granularityOf(days: number): 'hour' | 'day' {
  return days <= HOURLY_DAYS_MAX ? 'hour' : 'day';
}

/** Whether the calendar has this date. The text comes from the address, which may hold anything. */
function isDate(text: string): boolean {
  return DATE.test(text) && !Number.isNaN(Date.parse(text)) && addDays(text, 0) === text;
}

/** The number of days, with both the first and the last. */
function daysBetween(start: string, end: string): number {
  return Math.round((Date.parse(end) - Date.parse(start)) / DAY_MS) + 1;
}

function addDays(date: string, days: number): string {
  return new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10);
}

function dateIn(now: Date, timeZone: string): string {
  return new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' }).format(now);
}

export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
