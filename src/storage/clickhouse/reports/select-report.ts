// Runs the statements of reports: bounded in time, numbers as numbers, and one fault for a ClickHouse that is away or
// too slow.

import { type ClickHouseReader, selectRows } from '../clickhouse.ts';

/** The store of facts is away, too busy or too slow: the report may be asked for again. */
export class ReportStoreAway extends Error {
  constructor(cause: unknown) {
    super('the store of request facts does not answer', { cause });
    this.name = 'ReportStoreAway';
  }
}

/**
 * Codes of the server that are about its state, not about the statement: timeouts, too much at once, no memory, no
 * connection, no replica.
 */
const AWAY_CODES: ReadonlySet<string> = new Set([
  '159',
  '160',
  '202',
  '203',
  '209',
  '210',
  '241',
  '242',
  '243',
  '279',
  '394',
  '425',
  '439',
  '999',
]);

/**
 * At the end of every statement. An id has one admitted_at for ever, so its versions lie in one partition and FINAL
 * need not merge across them. Compiled expressions gained nothing over 400,000 rows, and their compilation cost half a
 * second of CPU.
 */
export const REPORT_SETTINGS = `SETTINGS max_execution_time = 60, do_not_merge_across_partitions_select_final = 1,
  compile_expressions = 0, compile_aggregate_expressions = 0,
  output_format_json_quote_64bit_integers = 0, output_format_json_quote_decimals = 1`;

export async function selectReport<Row>(
  client: ClickHouseReader,
  query: string,
  parameters: Record<string, unknown>,
): Promise<Row[]> {
  try {
    return await selectRows<Row>(client, query, parameters);
  } catch (error) {
    const code = serverCode(error);
    if (code !== null && !AWAY_CODES.has(code)) throw error;
    throw new ReportStoreAway(error);
  }
}

/** By its form: the embedded engine and the client each bring their own copy of the class. null: no server answered. */
function serverCode(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return typeof code === 'string' && /^[0-9]+$/.test(code) ? code : null;
}
