// Turns the series and groups of a report into the series and names of a chart.

import type { Series } from './chart-scale.ts';

interface Point {
  readonly bucket: string;
}

/** One value for each bucket. A bucket without a point has no requests, and its value is null. */
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

/** The name of the groups that are summed up in one, because a report names only the largest. */
export function nameOfOthers(groups: number): string {
  return groups === 1 ? '1 other' : `${groups} others`;
}

/** The name of a group; without a name its id, or `no team` and the like; `all` where nothing is grouped. */
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
