// Inserts facts, and leaves out those that ClickHouse refuses. A fact with a value that ClickHouse cannot read would
// otherwise make every insert of its batch fail, again and again.

import type { ClickHouseClient } from './clickhouse.ts';
import { insertFacts, type RequestFact } from './facts.ts';

export interface RefusedFact {
  readonly id: string;
  /** ClickHouse's error code. */
  readonly code: string;
}

/**
 * ClickHouse's error codes for values that it cannot read or that do not fit their column. Only the code of an error is
 * examined, since its message quotes the values.
 */
const VALUE_ERROR_CODES: ReadonlySet<string> = new Set([
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
/** Finding one refused fact takes some twenty ever smaller inserts. More refusals than this have another cause. */
const REFUSED_MAX = 100;

/**
 * Inserts all facts but those that ClickHouse refuses even alone, and returns these. Throws the error of `insertFacts`
 * if it is not about values, or if too many facts are refused. The caller then inserts the same facts again later.
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

/** null: the error is not about values. Errors of the embedded engine have the server's codes but another class. */
function codeOf(error: unknown): string | null {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && VALUE_ERROR_CODES.has(code) ? code : null;
}
