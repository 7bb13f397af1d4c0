// Makes token counts of a broken or hostile provider, under the names of any API's usage object.

import type { UsageFault } from './directives.ts';

/** `names` has the counts of a usage object, and its total if it has one. */
export function wrongCounts(
  fault: UsageFault,
  names: { readonly counts: readonly string[]; readonly total?: string },
): Record<string, unknown> {
  const { counts, total } = WRONG[fault];
  const wrong: Record<string, unknown> = {};
  if (fault === 'none') return wrong;
  for (const [index, name] of names.counts.entries()) wrong[name] = counts[Math.min(index, counts.length - 1)];
  if (names.total !== undefined) wrong[names.total] = total;
  return wrong;
}

const WRONG: Readonly<Record<UsageFault, { readonly counts: readonly unknown[]; readonly total: unknown }>> = {
  none: { counts: [], total: null },
  negative: { counts: [-1000], total: -2000 },
  huge: { counts: [Number.MAX_SAFE_INTEGER], total: Number.MAX_SAFE_INTEGER },
  string: { counts: ['10', 'many'], total: '20' },
  float: { counts: [1.5, 2.5], total: 4 },
  null_counts: { counts: [null], total: null },
};
