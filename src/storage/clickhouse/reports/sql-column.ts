// A column of a select list, by its name and the SQL that makes it.

export type SqlColumn = readonly [name: string, sql: string];

/** The select list. Columns are constants of this folder, never values. */
export function checkedColumns(columns: readonly SqlColumn[]): string {
  return columns.map(([name, sql]) => `${sql} AS ${name}`).join(',\n  ');
}

export function checkedNames(columns: readonly SqlColumn[]): string {
  return columns.map(([name]) => name).join(', ');
}
