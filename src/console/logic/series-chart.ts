// A report's series as what a chart draws: one value for each of the buckets that the server has formed.

import type { Series } from './chart-scale.ts';

interface Point {
  readonly bucket: string;
}

/** A bucket without a point has no requests. */
export function seriesOf<P extends Point>(
  name: string,
  buckets: readonly string[],
  points: readonly P[],
  valueOf: (point: P) => number | null,
): Series {
  const byBucket = new Map(points.map((point) => [point.bucket, point]));
  return { name, values: buckets.map((bucket) => pointValue(byBucket.get(bucket), valueOf)) };
}

function pointValue<P>(point: P | undefined, valueOf: (point: P) => number | null): number | null {
  return point === undefined ? null : valueOf(point);
}

/** What a bucket holds of a group that is shown, as its own key. */
export function nameOfGroup(group: object): string {
  const members = group as Readonly<Record<string, string | number | null | undefined>>;
  for (const name of ['model', 'provider', 'organization', 'team', 'user', 'api_key', 'tag', 'status']) {
    if (!(name in group)) continue;
    const value = members[name];
    if (value === null || value === undefined || value === '') {
      const id = members[`${name}_id`];
      return typeof id === 'string' ? id : `no ${name.replace('api_key', 'key')}`;
    }
    return typeof value === 'string' ? value : String(value);
  }
  return 'all';
}
