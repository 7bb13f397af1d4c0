// A table and its columns. Tables, charts and CSV files use the same columns.

import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { type Count, moment, relativeTime } from '../logic/format.ts';
import { now } from '../state/clock.ts';
import { zone } from '../state/view.ts';
import { RowBlocks, WHOLE_ROWS_MAX } from './row-blocks.tsx';

export interface Column<Row> {
  readonly name: string;
  /** The value in CSV. */
  readonly raw: (row: Row) => string | Count | null;
  /** The cell of the table; without `show` it is the raw value. */
  readonly show?: (row: Row) => ComponentChildren;
  readonly isNumber?: boolean;
  /** Hidden in a narrow window. */
  readonly isExtra?: boolean;
}

/** A column of numbers that `written` formats. */
export function numberColumn<Row, Value extends string | Count | null | undefined>(
  name: string,
  valueOf: (row: Row) => Value,
  written: (value: Value) => ComponentChildren,
  { isExtra = false } = {},
): Column<Row> {
  return { name, raw: (row) => valueOf(row) ?? null, show: (row) => written(valueOf(row)), isNumber: true, isExtra };
}

/** A column of moments in the chosen time zone, to the minute. It is hidden in a narrow window. */
export function momentColumn<Row>(name: string, momentOf: (row: Row) => string | null): Column<Row> {
  return { name, raw: momentOf, show: (row) => moment(momentOf(row), zone.value, false), isExtra: true };
}

/** A column that says how long ago something was. */
export function agoColumn<Row>(
  name: string,
  momentOf: (row: Row) => string | null,
  { isExtra = false } = {},
): Column<Row> {
  return { name, raw: momentOf, show: (row) => relativeTime(momentOf(row), now.value.getTime()), isExtra };
}

interface NamedCellProps {
  readonly note?: string | null;
  readonly children: ComponentChildren;
}

/** The content of the cell that names a row, with a note below the name. */
export function NamedCell({ note = null, children }: NamedCellProps) {
  return (
    <>
      <span class="cell-main">{children}</span>
      {note !== null && <span class="note">{note}</span>}
    </>
  );
}

interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf?: (row: Row) => string;
  /** Buttons at the end of a row. */
  readonly actions?: (row: Row) => ComponentChildren;
  readonly isSelected?: (row: Row) => boolean;
}

/** In a narrow window a table with more columns puts the cells of a row below each other, with their columns' names. */
const NARROW_COLUMNS_MAX = 3;

export function Table<Row>({ caption, columns, rows, keyOf, actions, isSelected }: TableProps<Row>) {
  const isLong = rows.length > WHOLE_ROWS_MAX;
  const below = columns.filter(({ isExtra }) => !isExtra).length - 1;
  const isStacked = actions !== undefined || below > NARROW_COLUMNS_MAX - 1;
  const rowAt = (index: number) => {
    const row = rows[index] as Row;
    return (
      <tr
        key={keyOf?.(row) ?? index}
        class={isSelected?.(row) ? 'selected' : undefined}
        // The head is row 1.
        aria-rowindex={isLong ? index + 2 : undefined}
      >
        {columns.map((column, at) => cellOf(column, row, at))}
        {actions && (
          <td class="actions">
            <span class="buttons">{actions(row)}</span>
          </td>
        )}
      </tr>
    );
  };
  return (
    // The frame scrolls sideways, so it must be reachable by keyboard.
    <div class="table-frame" role="region" aria-label={caption} tabIndex={0}>
      <table
        class={isStacked ? `stacked${below % 3 === 0 ? ' in-three' : ''}` : undefined}
        aria-rowcount={isLong ? rows.length + 1 : undefined}
      >
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr aria-rowindex={isLong ? 1 : undefined}>
            {columns.map((column, index) => (
              <th key={index} scope="col" class={classOf(column)}>
                {column.name}
              </th>
            ))}
            {actions && (
              <th scope="col">
                <span class="unseen">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        {isLong ? (
          <RowBlocks
            count={rows.length}
            cells={columns.length + (actions === undefined ? 0 : 1)}
            rowAt={rowAt}
            widest={<WidestCells columns={columns} rows={rows} />}
          />
        ) : (
          <tbody>{rows.map((_, index) => rowAt(index))}</tbody>
        )}
      </table>
    </div>
  );
}

/** The key is the column's position, because two series of a chart may have the same name. */
function cellOf<Row>(column: Column<Row>, row: Row, at: number) {
  return (
    <td key={at} class={classOf(column)} data-name={column.name}>
      {column.show?.(row) ?? column.raw(row)}
    </td>
  );
}

/** For each column the cell with the longest text. */
function WidestCells<Row>({ columns, rows }: Pick<TableProps<Row>, 'columns' | 'rows'>) {
  const widest = useMemo(() => columns.map(({ raw }) => longestOf(rows, raw)), [columns, rows]);
  return <>{columns.map((column, index) => cellOf(column, widest[index] as Row, index))}</>;
}

function longestOf<Row>(rows: readonly Row[], raw: Column<Row>['raw']): Row | undefined {
  let [longest, length]: [Row | undefined, number] = [rows[0], -1];
  for (const row of rows) {
    const present = String(raw(row) ?? '').length;
    if (present > length) [longest, length] = [row, present];
  }
  return longest;
}

function classOf({ isNumber, isExtra }: { readonly isNumber?: boolean; readonly isExtra?: boolean }): string {
  return [isNumber ? 'number' : '', isExtra ? 'extra' : ''].join(' ').trim();
}
