// Writes the comparison of an invoice as a table for people, as JSON or as CSV.

import { CAUSES } from '../../domain/invoices/causes.ts';
import type { ComparedRow, Comparison, Side } from '../../domain/invoices/compare-invoice.ts';
import type { Vendor } from '../../domain/invoices/invoice.ts';
import type { InvoiceDay } from '../../domain/invoices/invoice-days.ts';
import { METERS } from '../../domain/invoices/meters.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import { csvLine } from '../../storage/clickhouse/reports/csv.ts';

export interface RenderParams {
  readonly form: 'text' | 'json' | 'csv';
  readonly vendor: Vendor;
  readonly days: readonly InvoiceDay[];
  readonly providers: readonly string[];
  /** Also shows rows that do not differ; files always contain them. */
  readonly showsAll: boolean;
}

export function renderComparison(comparison: Comparison, params: RenderParams): string {
  if (params.form === 'json') return renderJson(comparison, params);
  return params.form === 'csv' ? renderCsv(comparison).trimEnd() : renderText(comparison, params);
}

function renderText({ rows, notes, ours, theirs, isWithin }: Comparison, params: RenderParams): string {
  const shown = params.showsAll ? rows : rows.filter(({ causes }) => causes.length > 0);
  const head = ['day', 'model', 'key', 'ours USD', 'theirs USD', 'difference', 'likely cause'];
  const table = shown.map((row) => [
    row.day,
    row.model,
    row.key,
    usd(row.ours.cost),
    usd(row.theirs.cost),
    row.causes.length === 0 ? '' : signedUsd(row.difference),
    causesOf(row),
  ]);
  const { days, providers } = params;
  const from = days[0]?.label ?? '';
  const until = days.at(-1)?.label ?? '';
  const length = days.length === 1 ? '1 day' : `${days.length} days`;
  return [
    `${params.vendor}, ${from} to ${until} (${length}), recorded for ${providers.join(', ')}`,
    `ours ${usd(ours)} USD, theirs ${theirs === null ? 'not in the export' : `${usd(theirs)} USD`}`,
    ...notes.map((note) => `note: ${note}`),
    ...(shown.length === 0 ? [] : ['', ...align([head, ...table], shown)]),
    '',
    summaryOf(rows, isWithin),
  ].join('\n');
}

function summaryOf(rows: readonly ComparedRow[], isWithin: boolean): string {
  const different = rows.filter(({ causes }) => causes.length > 0).length;
  const same = rows.length - different;
  const counts = `${same} of ${rows.length} rows are the same`;
  if (different === 0) return counts;
  return `${counts}, ${different} differ${isWithin ? ' within the tolerance' : ''}`;
}

function causesOf({ causes }: ComparedRow): string {
  return causes.map(({ kind }) => kind).join(', ');
}

/** Aligns columns, those of money to the right, and adds below each row the evidence for its causes. */
function align(lines: readonly (readonly string[])[], rows: readonly ComparedRow[]): readonly string[] {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const isMoney = (column: number): boolean => column >= 3 && column <= 5;
  const texts = lines.map((line) =>
    line
      .map((cell, column) => (isMoney(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
  return texts.flatMap((text, index) => {
    const { causes = [] } = index === 0 ? {} : (rows[index - 1] ?? {});
    return [
      text,
      ...causes.map(
        ({ kind, evidence, cost }) =>
          `    ${kind}${cost === null ? '' : ` (${signedUsd(cost)})`}: ${CAUSES[kind]}: ${evidence}`,
      ),
    ];
  });
}

function usd(amount: bigint | null): string {
  return amount === null ? '' : formatUsdString(amount);
}

function signedUsd(amount: bigint): string {
  return amount > 0n ? `+${formatUsdString(amount)}` : formatUsdString(amount);
}

function renderJson(comparison: Comparison, { vendor, days, providers }: RenderParams): string {
  const { rows, notes, ours, theirs, isWithin } = comparison;
  const side = ({ meters, requests, cost }: Side) => ({
    requests,
    ...(meters === null ? Object.fromEntries(METERS.map((meter) => [meter, null])) : meters),
    cost_usd: cost === null ? null : formatUsdString(cost),
  });
  return JSON.stringify(
    {
      vendor,
      providers,
      days: days.map(({ label, isCovered }) => ({ day: label, exported: isCovered })),
      within_tolerance: isWithin,
      ours_usd: formatUsdString(ours),
      theirs_usd: theirs === null ? null : formatUsdString(theirs),
      notes,
      rows: rows.map((row) => ({
        day: row.day,
        model: row.model,
        key: row.key,
        ours: side(row.ours),
        theirs: side(row.theirs),
        difference_usd: formatUsdString(row.difference),
        within_tolerance: row.isWithin,
        causes: row.causes.map(({ kind, evidence, cost }) => ({
          kind,
          evidence,
          cost_usd: cost === null ? null : formatUsdString(cost),
        })),
      })),
    },
    null,
    2,
  );
}

function renderCsv({ rows }: Comparison): string {
  const sides = ['ours', 'theirs'] as const;
  const head = [
    'day',
    'model',
    'key',
    ...sides.flatMap((side) => [`${side}_requests`, ...METERS.map((meter) => `${side}_${meter}`), `${side}_usd`]),
    'difference_usd',
    'within_tolerance',
    'causes',
    'evidence',
  ];
  const lines = rows.map((row) => [
    row.day,
    row.model,
    row.key,
    ...sides.flatMap((side) => {
      const { requests, meters, cost } = row[side];
      const counts = METERS.map((meter) => (meters === null ? null : meters[meter]));
      return [requests, ...counts, cost === null ? null : formatUsdString(cost)];
    }),
    formatUsdString(row.difference),
    row.isWithin,
    causesOf(row),
    row.causes.map(({ evidence }) => evidence).join('; '),
  ]);
  return [head, ...lines].map(csvLine).join('');
}
