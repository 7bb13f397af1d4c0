// The cells that are kept of a sealed day: everything that a routing report without filters needs.

import { createHash } from 'node:crypto';
import { type Cells, checkedSealing } from './cells.ts';
import { CORRECTION_CELLS, TURN_CELLS } from './routing-conversations.ts';
import { FACET_CELLS } from './routing-facets.ts';
import { groupCells } from './routing-groups.ts';
import { REJECTION_CELLS } from './routing-rejections.ts';
import { SERIES_CELLS } from './routing-series.ts';

export const SEALED_CELLS: readonly Cells[] = [
  SERIES_CELLS,
  groupCells('every value'),
  FACET_CELLS,
  TURN_CELLS,
  REJECTION_CELLS,
  CORRECTION_CELLS,
];

/** Cells that other statements made, of another version of this program, are not read. */
export const CELLS_DEFINITION = createHash('sha256')
  .update(SEALED_CELLS.map((cells) => checkedSealing(cells)).join('\n'))
  .digest('hex');
