// The rows of the modelled database, and the changes of a transaction, so that they can be undone.

/** An error as Postgres reports it. */
export class DatabaseFault extends Error {
  override readonly name = 'DatabaseFault';
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const CHECK_VIOLATION = '23514';
export const UNIQUE_VIOLATION = '23505';
export const RAISED = 'P0001';
export const FENCED = 'TG001';

/** A table. A row is never changed in place: a change replaces it by a new row. */
export class Table<Row extends object> {
  private readonly rows = new Map<string, Row>();
  private readonly undo: (() => void)[];
  private readonly check: (row: Row) => string | null;

  /** `undo`: the undo steps of the running transaction. `check` names the constraint that a row breaks; null: none. */
  constructor(undo: (() => void)[], check: (row: Row) => string | null = () => null) {
    this.undo = undo;
    this.check = check;
  }

  get(key: string): Row | undefined {
    return this.rows.get(key);
  }

  set(key: string, row: Row): void {
    const broken = this.check(row);
    if (broken !== null) throw new DatabaseFault(CHECK_VIOLATION, `check constraint "${broken}" is violated by ${key}`);
    const before = this.rows.get(key);
    this.undo.push(() => (before === undefined ? this.rows.delete(key) : this.rows.set(key, before)));
    this.rows.set(key, row);
  }

  delete(key: string): void {
    const before = this.rows.get(key);
    if (before === undefined) return;
    this.undo.push(() => this.rows.set(key, before));
    this.rows.delete(key);
  }

  values(): Row[] {
    return [...this.rows.values()];
  }

  get size(): number {
    return this.rows.size;
  }
}
