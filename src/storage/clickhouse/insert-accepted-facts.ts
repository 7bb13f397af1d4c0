// Inserts facts of which ClickHouse refuses some: one whose values it cannot read must not keep from it all others that
// come beside it, in this insert and in each one that is tried again.

import type { ClickHouseClient } from './clickhouse.ts';
import { insertFacts, type RequestFact } from './facts.ts';

export interface RefusedFact {
  readonly id: string;
  /** ClickHouse's. */
  readonly code: string;
}

/**
 * What ClickHouse answers of values that it cannot read or that no column holds. The code alone is looked at: what an
 * error is called and says is found in a text that quotes the values.
 */
const OF_VALUES: ReadonlySet<string> = new Set([
  '6', // CANNOT_PARSE_TEXT
  '25', // CANNOT_PARSE_ESCAPE_SEQUENCE
  '26', // CANNOT_PARSE_QUOTED_STRING
  '27', // CANNOT_PARSE_INPUT_ASSERTION_FAILED
  '38', // CANNOT_PARSE_DATE
  '41', // CANNOT_PARSE_DATETIME
  '69', // ARGUMENT_OUT_OF_BOUND
  '72', // CANNOT_PARSE_NUMBER
  '117', // INCORRECT_DATA
  '130', // CANNOT_READ_ARRAY_FROM_TEXT
  '376', // CANNOT_PARSE_UUID
  '467', // CANNOT_PARSE_BOOL
]);
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
      const code = codeOf(error);
      if (code === null) throw error;
      if (to - from > 1) {
        const middle = (from + to) >> 1;
        await insert(from, middle);
        await insert(middle, to);
        return;
      }
      refused.push({ id: (facts[from] as RequestFact).id, code });
      if (refused.length > REFUSED_MAX) throw error;
    }
  };

  await insert(0, facts.length);
  return refused;
}

/** null: it is not for their values. The embedded engine's errors have a server's codes, in a class of their own. */
function codeOf(error: unknown): string | null {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && OF_VALUES.has(code) ? code : null;
}
