// The summary and the days of usage as CSV: the rows of their groups, in the listings' own names.

import type { Dimension, Named } from '../../src/domain/reports/owners.ts';
import { type CsvValue, csvLine } from '../../src/storage/clickhouse/reports/csv.ts';
import type { UsageDay, UsageGroup } from '../../src/storage/clickhouse/reports/usage.ts';

/** By model where nothing else is asked for. */
export function groupsCsv(
  groupBy: readonly Dimension[],
  groups: readonly Named<UsageGroup>[],
  currency: string,
): string {
  const keys = keyColumns(groupBy.length === 0 ? ['model'] : groupBy);
  const lines = groups.map((group) => [...valuesOf([...keys, ...COUNTS], group), currency]);
  return [[...keys, ...COUNTS, 'currency'], ...lines].map(csvLine).join('');
}

export function daysCsv(groupBy: readonly Dimension[], days: readonly Named<UsageDay>[]): string {
  const [requests, ...others] = COUNTS;
  const columns = ['date', ...keyColumns(groupBy), requests, 'errors', ...others];
  return [columns, ...days.map((day) => valuesOf(columns, day))].map(csvLine).join('');
}

const COUNTS = ['requests', 'tokens_prompt', 'tokens_completion', 'cost'] as const;

function keyColumns(groupBy: readonly Dimension[]): string[] {
  return groupBy.flatMap((dimension) => (dimension === 'model' ? ['model'] : [`${dimension}_id`, dimension]));
}

function valuesOf(columns: readonly string[], row: object): CsvValue[] {
  const values = row as Readonly<Record<string, CsvValue | undefined>>;
  return columns.map((column) => values[column] ?? null);
}
