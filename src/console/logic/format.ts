// Formats figures, moments and names for display. Amounts of money stay decimal texts and never become floats here.

const UNKNOWN = 'not known';
const NONE = '–';

const WHOLE = new Intl.NumberFormat('en-US');
const RATE = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

/** A count beyond 2^53 is a bigint (`parseWithCounts`). */
export type Count = number | bigint;

export function whole(value: Count | null | undefined): string {
  return value === null || value === undefined ? NONE : WHOLE.format(value);
}

/** A value as it is, or a dash. */
export function orNone<Value>(value: Value | null | undefined): Value | string {
  return value ?? NONE;
}

/** A number per second, with one digit after the point. */
export function rate(value: number): string {
  return RATE.format(value);
}

/** 12,345 as 12.3K. For places where the exact figure is beside it or in the table. */
export function compact(value: Count | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  return value < 10_000 ? WHOLE.format(value) : COMPACT.format(value);
}

export function sumOfCounts(one: Count, other: Count): Count {
  const sum = BigInt(one) + BigInt(other);
  return Number.isSafeInteger(Number(sum)) ? Number(sum) : sum;
}

/** A count on an axis. A tick between two whole numbers has no label. */
export function countTick(value: number): string {
  return Number.isInteger(value) ? compact(value) : '';
}

/** Dollars on an axis. */
export function dollarTick(value: number): string {
  return `$${value < 1 ? value.toPrecision(1) : compact(value)}`;
}

/** A duration on an axis. Parts of a millisecond have no label; minutes are written as seconds, which are shorter. */
export function durationTick(ms: number): string {
  if (ms > 0 && ms < 1) return '';
  return ms < 59_950 ? duration(ms) : `${WHOLE.format(Math.round(ms / 1000))} s`;
}

/** A probability between 0 and 1. */
export function probability(value: number | null): string {
  return value === null ? NONE : value.toFixed(2);
}

/** A share between 0 and 1 as a percentage. */
export function percent(share: number | null | undefined, digits = 1): string {
  return share === null || share === undefined ? UNKNOWN : `${(share * 100).toFixed(digits)} %`;
}

/** Milliseconds, in the unit that reads best. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return NONE;
  // The limits allow for rounding, so that 1000 ms, 60.0 s and 1 min 60 s are never shown.
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms < 9_995 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

const AMOUNT = /^(-?)(\d+)(?:\.(\d+))?$/;

/**
 * Formats dollars from a decimal text, rounded half up to two digits after the point, or to more where the amount is
 * small. With `exact` every digit stays.
 */
export function dollars(amount: string | null | undefined, { exact = false } = {}): string {
  if (amount === null || amount === undefined) return NONE;
  const match = AMOUNT.exec(amount);
  if (match === null) return amount;
  const [, sign = '', units = '0', fraction = ''] = match;
  if (exact) return `${sign}$${grouped(units)}${fraction === '' ? '.00' : `.${fraction.padEnd(2, '0')}`}`;
  const digits = digitsShown(units, fraction);
  const scaled = BigInt(units + fraction.padEnd(digits + 1, '0').slice(0, digits + 1));
  const rounded = ((scaled + 5n) / 10n).toString().padStart(digits + 1, '0');
  return `${sign}$${grouped(rounded.slice(0, -digits))}.${rounded.slice(-digits)}`;
}

function digitsShown(units: string, fraction: string): number {
  if (BigInt(units) >= 1n || /^0*$/.test(fraction)) return 2;
  const leading = /^0*/.exec(fraction)?.[0].length ?? 0;
  return leading === 0 ? 2 : Math.min(leading + 2, 12);
}

function grouped(units: string): string {
  return units.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

/** An amount as a float. Use it for the length of a bar or the order of rows, never for a figure that is shown. */
export function asFloat(amount: string | number | null | undefined): number {
  return Number(amount ?? 0);
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

export function bytes(count: number): string {
  let [value, unit] = [count, 0];
  while (value >= 999.95 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}

/** A moment in a zone: `25 Nov 2026, 19:37:28`. */
export function moment(iso: string | null | undefined, timeZone: string, seconds = true): string {
  if (iso === null || iso === undefined) return NONE;
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  return momentFormat(timeZone, seconds).format(at);
}

/** Formats are kept by time zone, because making one costs more than the rest of a table's row. */
const momentFormats = new Map<string, Intl.DateTimeFormat>();

function momentFormat(timeZone: string, seconds: boolean): Intl.DateTimeFormat {
  const key = `${timeZone} ${seconds}`;
  const known = momentFormats.get(key);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    ...(seconds ? { second: '2-digit' } : {}),
  });
  momentFormats.set(key, made);
  return made;
}

/** How long ago a moment was, or in how long it will be: `5 min ago`, `in 2 days`. */
export function relativeTime(iso: string | null | undefined, nowMs: number): string {
  if (iso === null || iso === undefined) return 'never';
  const seconds = Math.round((nowMs - new Date(iso).getTime()) / 1000);
  const size = Math.abs(seconds);
  const [count, unit] =
    size < 60
      ? [size, 's']
      : size < 3600
        ? [Math.round(size / 60), 'min']
        : size < 172_800
          ? [Math.round(size / 3600), 'h']
          : [Math.round(size / 86_400), 'days'];
  return seconds < 0 ? `in ${count} ${unit}` : `${count} ${unit} ago`;
}

export type Granularity = 'day' | 'hour' | 'second';

/** The start of a bucket as a short label. The server writes bucket starts in the time zone of the report. */
export function bucketLabel(bucket: string, granularity: Granularity): string {
  if (granularity === 'second') return bucket.slice(11, 19);
  const [, month = '', day = '', hour = ''] = /^\d{4}-(\d\d)-(\d\d)(?:T(\d\d))?/.exec(bucket) ?? [];
  const date = `${Number(day)} ${MONTHS[Number(month) - 1] ?? ''}`;
  return granularity === 'day' ? date : `${date} ${hour}:00`;
}

/** The labels of an axis. Hours that would have the same label, where the clocks go back, name their UTC offset. */
export function bucketLabels(buckets: readonly string[], granularity: Granularity): string[] {
  const labels = buckets.map((bucket) => bucketLabel(bucket, granularity));
  const seen = new Map<string, number>();
  for (const label of labels) seen.set(label, (seen.get(label) ?? 0) + 1);
  return labels.map((label, index) =>
    (seen.get(label) ?? 0) > 1 && granularity === 'hour' ? `${label} ${buckets[index]?.slice(19) ?? ''}`.trim() : label,
  );
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Quotes a user's name for something within a sentence. Isolates keep a right-to-left name from reordering it. */
export function quoted(name: string): string {
  return `“\u2068${name}\u2069”`;
}

/** `requests_per_minute` as `requests per minute`. */
export function spaced(name: string): string {
  return name.replaceAll('_', ' ');
}

/** `requests_per_minute` as `Requests per minute`. */
export function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + spaced(name).slice(1);
}
