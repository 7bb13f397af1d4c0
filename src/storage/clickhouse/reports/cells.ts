// Writes the SQL of cells. A cell is one row for all facts with the same keys, and has what a report needs of them.
// Cells are made from the facts when a report is read, or were stored when their day was sealed (sealed-days.ts). Both
// use the same SQL, so that they give the same report.

import { IS_ERROR } from './metrics.ts';
import { ALL_ORGANIZATIONS, checkedCellConditions, checkedConditions, type ReportParams } from './report-params.ts';
import { checkedColumns, checkedNames, type SqlColumn } from './sql-column.ts';

export interface Cells {
  /** The table with the cells of sealed days (deploy/clickhouse/0008-sealed-days.sql, 0009, 0010). */
  readonly table: string;
  /** Condition on the facts that go into cells. It admits refused requests only if the values count them apart. */
  readonly counted: string;
  readonly keys: readonly SqlColumn[];
  readonly values: readonly SqlColumn[];
  /** Aggregates over facts and the same over their cells. They differ if cells are missing or wrong. */
  readonly sums: readonly CellSum[];
  /** Columns with the same names that are read of each fact, where grouping facts into cells would not pay. */
  readonly ofFact?: readonly SqlColumn[];
}

/** Keys that all cells of sealed days have besides their own, so that a report filtered by status can read cells. */
const STATUS_KEYS: readonly SqlColumn[] = [
  ['of_error', `toUInt8(${IS_ERROR})`],
  ['of_status', 'ifNull(status, 0)'],
];
export const STATUS_OF_FACT = STATUS_KEYS.map(([, sql]) => sql).join(', ');

export type CellSum = readonly [ofFacts: string, ofCells: string];

/** A statement that selects the cells of a report's facts. A key may have several cells, which the reader merges. */
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

/** Joins `ofFacts`, for the facts that no seal covers, with `ofCells`, for the cells of the sealed days. */
export function checkedUnion(params: ReportParams, ofFacts: string, ofCells: string): string {
  const { sealed } = params;
  if (sealed === undefined) return ofFacts;
  const kept = `${ofCells} WHERE organization_id = {cells_of:UUID} AND day >= {first_sealed:Date}
    AND day <= {last_sealed:Date} AND seal IN {seals:Array(UUID)} AND ${checkedCellConditions(params)}`;
  return sealed.open.length === 0 ? kept : `${ofFacts} UNION ALL ${kept}`;
}

/** The facts that a seal covers: from the start of its day in UTC up to the instant until which it is sealed. */
export const SEALED_STRETCH = `admitted_at >= toDateTime64({day:Date}, 3, 'UTC')
  AND admitted_at < fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')`;

/**
 * The statement that stores the cells of a seal: for all organizations together, and for each of
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
