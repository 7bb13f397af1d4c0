// Reads the plain values of a configuration file together with their places. Values of the wrong shape are skipped, so
// that one run reports every kind of mistake.

import type { Place, Problem } from './problem.ts';

export interface Entry {
  readonly place: Place;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Named {
  readonly name: string;
  readonly place: Place;
}

/** Treats anything but a mapping as an empty mapping. */
export function entryOf(value: unknown): Entry {
  return { place: [], fields: isRecord(value) ? value : {} };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The mapping under a key as a list of one, or an empty list. */
export function entry(parent: Entry, key: string): Entry[] {
  const value = parent.fields[key];
  return isRecord(value) ? [{ place: [...parent.place, key], fields: value }] : [];
}

export function entries(parent: Entry, key: string): Entry[] {
  const value = parent.fields[key];
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown, index) =>
    isRecord(item) ? [{ place: [...parent.place, key, index], fields: item }] : [],
  );
}

/** The text under a key of each entry that has one. */
export function texts(list: readonly Entry[], key: string): Named[] {
  return list.flatMap(({ place, fields }) => {
    const value = fields[key];
    return typeof value === 'string' ? [{ name: value, place: [...place, key] }] : [];
  });
}

/** The texts of the list under a key. */
export function items(parent: Entry, key: string): Named[] {
  const value = parent.fields[key];
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown, index) =>
    typeof item === 'string' ? [{ name: item, place: [...parent.place, key, index] }] : [],
  );
}

export function findDuplicates(names: readonly Named[], what: string): Problem[] {
  const seen = new Set<string>();
  return names.flatMap(({ name, place }) => {
    if (seen.has(name)) return [{ place, message: `the ${what} "${name}" stands twice` }];
    seen.add(name);
    return [];
  });
}

/** `where` names what was searched, such as "this file". */
export function findUnknown(used: readonly Named[], known: readonly Named[], what: string, where: string): Problem[] {
  const names = new Set(known.map(({ name }) => name));
  return used
    .filter(({ name }) => !names.has(name))
    .map(({ name, place }) => ({ place, message: `there is no ${what} "${name}" in ${where}`, isDangling: true }));
}
