// The time axis of the routing report. The report names only the buckets that have requests; this adds the empty hours
// or days between them.

const HOUR_MS = 3_600_000;

interface Report {
  readonly granularity: 'hour' | 'day';
  readonly start_date: string;
  readonly end_date: string;
  readonly time_zone: string;
  readonly series: readonly { readonly bucket: string }[];
}

/** The starts of all buckets in order. An empty day is written as its date alone, an empty hour as the server would. */
export function bucketsOf(report: Report): string[] {
  const { granularity, start_date: start, end_date: end, time_zone: timeZone, series } = report;
  const known = [...new Set(series.map(({ bucket }) => bucket))].sort(
    (one, other) => Date.parse(one) - Date.parse(other),
  );
  if (granularity === 'hour') return withMissingHours(known, timeZone);
  const byDay = new Map(known.map((bucket) => [bucket.slice(0, 10), bucket]));
  const days: string[] = [];
  for (
    let at = Date.parse(start.slice(0, 10));
    at <= Date.parse(end.slice(0, 10)) && days.length < 400;
    at += 24 * HOUR_MS
  ) {
    const day = new Date(at).toISOString().slice(0, 10);
    days.push(byDay.get(day) ?? day);
  }
  return days;
}

function withMissingHours(known: readonly string[], timeZone: string): string[] {
  const offsets = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' });
  const all: string[] = [];
  for (const bucket of known) {
    const before = all.at(-1);
    for (
      let at = before === undefined ? Number.NaN : Date.parse(before) + HOUR_MS;
      at < Date.parse(bucket) && all.length < 3000;
      at += HOUR_MS
    )
      all.push(inOffset(at, offsetAt(at, offsets)));
    all.push(bucket);
  }
  return all;
}

/** The offset of a time zone at a moment: `+02:00`, or `Z`. On a day on which the clocks change there are two. */
function offsetAt(atMs: number, offsets: Intl.DateTimeFormat): string {
  const name = offsets.formatToParts(atMs).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  return /[+-](?!00:00)\d\d:\d\d/.exec(name)?.[0] ?? 'Z';
}

function inOffset(atMs: number, offset: string): string {
  const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)$/.exec(offset) ?? [];
  const shiftMs = sign === undefined ? 0 : (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  return new Date(atMs + shiftMs).toISOString().slice(0, 19) + offset;
}

interface Policy {
  readonly policy: string;
  readonly version: number;
  readonly first_used_at: string;
}

/** Marks the bucket in which each policy version was first used. A first use in the first bucket or before has none. */
export function marksOf(policies: readonly Policy[], buckets: readonly string[]): { index: number; name: string }[] {
  return policies.flatMap(({ policy, version, first_used_at: at }) => {
    const later = buckets.findIndex((bucket) => Date.parse(bucket) > Date.parse(at));
    const index = (later === -1 ? buckets.length : later) - 1;
    return index <= 0 ? [] : [{ index, name: `${policy}, version ${version}` }];
  });
}
