// A table, and what a column of one is. Charts, exports and tables are made of the same columns.

import type { ComponentChildren } from 'preact';

export interface Column<Row> {
  readonly name: string;
  /** As it goes into CSV. */
  readonly raw: (row: Row) => string | number | null;
  /** As it is shown; without it, as it is. */
  readonly show?: (row: Row) => ComponentChildren;
  readonly isNumber?: boolean;
  /** Not on a narrow screen. */
  readonly isExtra?: boolean;
}

/** A column of numbers that are all written in one way, `written`. */
export function numberColumn<Row, Value extends string | number | null | undefined>(
  name: string,
  valueOf: (row: Row) => Value,
  written: (value: Value) => ComponentChildren,
  { isExtra = false } = {},
): Column<Row> {
  return { name, raw: (row) => valueOf(row) ?? null, show: (row) => written(valueOf(row)), isNumber: true, isExtra };
}

interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf?: (row: Row) => string;
  /** What is done with a row, at its end. */
  readonly actions?: (row: Row) => ComponentChildren;
  readonly isSelected?: (row: Row) => boolean;
}

export function Table<Row>({ caption, columns, rows, keyOf, actions, isSelected }: TableProps<Row>) {
  return (
    // A region that scrolls can be reached by keyboard.
    <div class="table-frame" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={classOf(column)}>
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
        <tbody>
          {rows.map((row, index) => (
            <tr key={keyOf?.(row) ?? index} class={isSelected?.(row) ? 'selected' : undefined}>
              {columns.map((column) => (
                <td key={column.name} class={classOf(column)}>
                  {column.show?.(row) ?? column.raw(row)}
                </td>
              ))}
              {actions && <td class="actions">{actions(row)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classOf({ isNumber, isExtra }: { readonly isNumber?: boolean; readonly isExtra?: boolean }): string {
  return [isNumber ? 'number' : '', isExtra ? 'extra' : ''].join(' ').trim();
}
