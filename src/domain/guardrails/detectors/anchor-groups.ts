// Groups the pairs of bytes at which built-in detectors look closer by the set of detectors that do. Made once per
// process.

import { DETECTORS } from './detectors.ts';

export const PAIRS = 256 * 256;

export interface AnchorGroups {
  /** For each pair: its group; 0: no detector looks closer there. */
  readonly groupOf: Uint8Array;
  /** For each group: the indexes of its detectors in `DETECTORS`. Group 0 has none. */
  readonly detectors: readonly (readonly number[])[];
}

let made: AnchorGroups | null = null;

export function anchorGroups(): AnchorGroups {
  made ??= makeGroups();
  return made;
}

function makeGroups(): AnchorGroups {
  const atPair = new Map<number, number[]>();
  for (const [place, { anchors }] of DETECTORS.entries())
    for (const pair of new Set(anchors)) {
      const known = atPair.get(pair);
      if (known === undefined) atPair.set(pair, [place]);
      else known.push(place);
    }
  const groupOf = new Uint8Array(PAIRS);
  const detectors: (readonly number[])[] = [[]];
  const groups = new Map<string, number>();
  for (const [pair, found] of atPair) {
    const name = found.join(' ');
    const group = groups.get(name) ?? detectors.push(found) - 1;
    groups.set(name, group);
    groupOf[pair] = group;
  }
  return { groupOf, detectors };
}
