// Cells: what a report needs of all facts that have the same keys, as one row. They are made of the facts when a report
// is read, or were made when their day was sealed (sealed-days.ts): by the same SQL, so that either gives the same
// report.

import { IS_ERROR } from './metrics.ts';
import { ALL_ORGANIZATIONS, checkedCellConditions, checkedConditions, type ReportParams } from './report-params.ts';
import { checkedColumns, checkedNames, type SqlColumn } from './sql-column.ts';

export interface Cells {
  /** Where those of sealed days are (deploy/clickhouse/0008-sealed-days.sql, 0009, 0010). */
  readonly table: string;
  /** Which facts are in cells at all: those of refused requests only where their values tell them apart. */
  readonly counted: string;
  readonly keys: readonly SqlColumn[];
  readonly values: readonly SqlColumn[];
  /** Aggregates of facts, and the same of their cells, by which it is seen that some are missing or wrong. */
  readonly sums: readonly CellSum[];
  /** What is read of each fact instead, where making cells of the facts would not pay: with the same names. */
  readonly ofFact?: readonly SqlColumn[];
}

/** What cells of sealed days are by besides their keys, so that a report with a filter by status reads cells, too. */
const STATUS_KEYS: readonly SqlColumn[] = [
  ['of_error', `toUInt8(${IS_ERROR})`],
  ['of_status', 'ifNull(status, 0)'],
];
export const STATUS_OF_FACT = STATUS_KEYS.map(([, sql]) => sql).join(', ');

export type CellSum = readonly [ofFacts: string, ofCells: string];

/** A statement that selects the cells of a report's facts. Of one key there may be several, for the reader to merge. */
export function checkedCells(cells: Cells, params: ReportParams): string {
  const { keys, values, ofFact } = cells;
  const read =
    ofFact === undefined
      ? `SELECT ${checkedColumns([...keys, ...values])}
         FROM request_facts FINAL
         WHERE ${checkedWhere(cells, params)}
         GROUP BY ${checkedNames(keys)}`
      : `SELECT ${checkedColumns(ofFact)}
         FROM request_facts FINAL
         WHERE ${checkedWhere(cells, params)}`;
  return checkedUnion(params, read, `SELECT ${checkedNames([...keys, ...values])} FROM ${checkedTable(cells)}`);
}

function checkedWhere({ counted }: Cells, params: ReportParams): string {
  return `(${counted}) AND ${checkedConditions({ ...params, showsRefused: true })}`;
}

function checkedTable({ table }: Cells): string {
  return table;
}

/** What is read of the facts that no seal covers, and of the cells of the sealed days. */
export function checkedUnion(params: ReportParams, ofFacts: string, ofCells: string): string {
  const { sealed } = params;
  if (sealed === undefined) return ofFacts;
  const kept = `${ofCells} WHERE organization_id = {cells_of:UUID} AND day >= {first_sealed:Date}
    AND day <= {last_sealed:Date} AND seal IN {seals:Array(UUID)} AND ${checkedCellConditions(params)}`;
  return sealed.open.length === 0 ? kept : `${ofFacts} UNION ALL ${kept}`;
}

/** What a seal covers: a day in UTC from its start, as far as it is sealed. */
export const SEALED_STRETCH = `admitted_at >= toDateTime64({day:Date}, 3, 'UTC')
  AND admitted_at < fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')`;

/**
 * The statement that makes the cells of a seal: those of all organizations together, and those of each of
 * `{organizations:Array(UUID)}`.
 */
export function checkedSealing(cells: Cells): string {
  const { values, counted } = cells;
  const keys = [...cells.keys, ...STATUS_KEYS];
  return `
    INSERT INTO ${checkedTable(cells)} (organization_id, day, seal, ${checkedNames([...keys, ...values])})
    SELECT cells_of, {day:Date}, {seal:UUID}, * EXCEPT (cells_of)
    FROM (
      SELECT arrayJoin(if(has({organizations:Array(UUID)}, organization_id),
          [toUUID('${ALL_ORGANIZATIONS}'), organization_id], [toUUID('${ALL_ORGANIZATIONS}')])) AS cells_of,
        ${checkedColumns([...keys, ...values])}
      FROM request_facts FINAL
      WHERE ${SEALED_STRETCH} AND ${checkedCondition(counted)}
      GROUP BY cells_of, ${checkedNames(keys)}
    )`;
}

function checkedCondition(sql: string): string {
  return `(${sql})`;
}
