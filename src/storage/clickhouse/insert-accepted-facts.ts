// Inserts facts of which ClickHouse refuses some: one whose values it cannot read must not keep from it all others that
// come beside it, in this insert and in each one that is tried again.

import type { ClickHouseClient } from './clickhouse.ts';
import { insertFacts, type RequestFact } from './facts.ts';

export interface RefusedFact {
  readonly id: string;
  readonly error: unknown;
}

/** What ClickHouse says of values that it cannot read. All else may go well another time. */
const OF_VALUES =
  /^(?:CANNOT_PARSE_|CANNOT_READ_ARRAY|CANNOT_INSERT_NULL|INCORRECT_DATA|DECIMAL_OVERFLOW|TYPE_MISMATCH)/;
const OUT_OF_RANGE = /^(?:ARGUMENT|VALUE_IS)_OUT_OF/;
/** Each takes some twenty inserts of ever fewer facts. Where more are refused, it is not for their values. */
const REFUSED_MAX = 100;

/**
 * Inserts all but those that ClickHouse refuses by themselves, which are returned. Throws what `insertFacts` throws
 * where that is not about values, or too many are refused; then the same facts are to be inserted again.
 */
export async function insertAcceptedFacts(
  client: ClickHouseClient,
  facts: readonly RequestFact[],
  batch: string,
): Promise<readonly RefusedFact[]> {
  const refused: RefusedFact[] = [];
  const insert = async (from: number, to: number): Promise<void> => {
    const isWhole = to - from === facts.length;
    try {
      await insertFacts(client, facts.slice(from, to), isWhole ? batch : `${batch}:${from}-${to}`);
    } catch (error) {
      if (!isOfValues(error)) throw error;
      if (to - from > 1) {
        const middle = (from + to) >> 1;
        await insert(from, middle);
        await insert(middle, to);
        return;
      }
      refused.push({ id: (facts[from] as RequestFact).id, error });
      if (refused.length > REFUSED_MAX) throw error;
    }
  };

  await insert(0, facts.length);
  return refused;
}

/** The embedded engine's errors have the same names as a server's, in a class of their own. */
function isOfValues(error: unknown): boolean {
  const { type } = error as { readonly type?: unknown };
  return typeof type === 'string' && (OF_VALUES.test(type) || OUT_OF_RANGE.test(type));
}
