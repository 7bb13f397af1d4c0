// Runs the statements of reports: with a time limit, with numbers as JSON numbers, and with one error for a ClickHouse
// that is away or too slow.

import { type ClickHouseReader, selectRows } from '../clickhouse.ts';
import { InvalidStatement } from '../literals.ts';

/** ClickHouse is away, too busy or too slow; the report can be asked for again. */
export class ReportStoreUnavailable extends Error {
  constructor(cause: unknown) {
    super('the store of request facts does not answer', { cause });
    this.name = 'ReportStoreUnavailable';
  }
}

/**
 * Server error codes that concern the server's state and not the statement: timeouts, too many queries, no memory, no
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
 * The settings of every report statement. All versions of an id have the same admitted_at and partition, so FINAL
 * need not merge across partitions. Compiled expressions gained nothing over 400,000 rows and cost half a second of
 * CPU.
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
    if (error instanceof InvalidStatement || (code !== null && !AWAY_CODES.has(code))) throw error;
    throw new ReportStoreUnavailable(error);
  }
}

/**
 * The error's code, by its shape: the embedded engine and the client each have their own copy of the class. null: no
 * server answered.
 */
function serverCode(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return typeof code === 'string' && /^[0-9]+$/.test(code) ? code : null;
}
