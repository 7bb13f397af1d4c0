// Renders the reports of usage as CSV: the summary, the days and the series, with the column names of the JSON reports.

import { type Dimension, isDimension, type Named, type SeriesDimension } from '../../src/domain/reports/owners.ts';
import { type CsvValue, csvLine } from '../../src/storage/clickhouse/reports/csv.ts';
import type { UsageDay, UsageGroup } from '../../src/storage/clickhouse/reports/usage.ts';
import type { UsageSeries } from '../../src/storage/clickhouse/reports/usage-series.ts';

/** The summary: one row for each group, or for each model if `groupBy` is empty. */
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

/** The series: one row for each bucket of each group and of the remainder, or of all requests without `groupBy`. */
export function seriesCsv(groupBy: SeriesDimension | null, found: UsageSeries): string {
  const keys = groupBy === null ? [] : [...seriesKeyColumns(groupBy), 'is_remainder'];
  const columns = ['bucket', ...keys, 'requests', 'errors', 'tokens_prompt', 'tokens_completion', 'cost', ...QUANTILES];
  const { totals, groups, remainder } = found;
  const shown = groupBy === null ? [totals] : [...groups, ...(remainder === null ? [] : [remainder])];
  const rows = shown.flatMap(({ series, ...group }) =>
    series.map((point) => valuesOf(columns, { ...group, is_remainder: 'groups' in group, ...point })),
  );
  return [columns, ...rows].map(csvLine).join('');
}

const QUANTILES = ['p50_latency_ms', 'p95_latency_ms', 'p50_ttft_ms', 'p95_ttft_ms'] as const;

function seriesKeyColumns(groupBy: SeriesDimension): string[] {
  return isDimension(groupBy) ? keyColumns([groupBy]) : [groupBy];
}

const COUNTS = ['requests', 'tokens_prompt', 'tokens_completion', 'cost'] as const;

function keyColumns(groupBy: readonly Dimension[]): string[] {
  return groupBy.flatMap((dimension) => (dimension === 'model' ? ['model'] : [`${dimension}_id`, dimension]));
}

function valuesOf(columns: readonly string[], row: object): CsvValue[] {
  const values = row as Readonly<Record<string, CsvValue | undefined>>;
  return columns.map((column) => values[column] ?? null);
}
