// Decides whether a version of the program can run on the schema of a database. A migration normally only adds, so that
// versions which do not know the migration can go on running beside the version that applied it. A migration that does
// more says in its header which versions must stop:
//
//   -- Needs: 0046. Why versions that do not know migration 46 must not run on this schema.
//   -- Beside older versions: why older versions can go on, though the migration does more than add.
//
// test/house/migrations.test.ts enforces the headers. The table `applied_migrations` stores the number after "Needs".

/** This version cannot run on the schema of the database. The message says what to do. */
export class SchemaMismatch extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SchemaMismatch';
  }
}

export interface AppliedMigration {
  readonly number: number;
  readonly name: string;
  /** The migration that a version must know to run on this schema; null: every version can. */
  readonly needs: number | null;
}

const NEEDS = /^-- Needs: (\d{4})\b/m;

/** The number after "Needs" in a migration's header; null: the header names none. */
export function readNeeds(sql: string): number | null {
  const [, number] = NEEDS.exec(sql) ?? [];
  return number === undefined ? null : Number(number);
}

/**
 * Throws SchemaMismatch if a newer version has applied a migration that this version must know and does not. `applied`:
 * the database's migrations in order; `newest`: this version's last migration.
 */
export function refuseLeftBehind(
  database: 'Postgres' | 'ClickHouse',
  applied: readonly AppliedMigration[],
  newest: { readonly number: number; readonly name: string } | undefined,
): void {
  const known = newest?.number ?? 0;
  if (!applied.some(({ number, needs }) => number > known && needs !== null && needs > known)) return;
  throw new SchemaMismatch(
    `${database} has the schema ${applied.at(-1)?.name}, and this version of Tollgate knows none after ` +
      `${newest?.name ?? 'none'}: a newer version has been started on this database, whose changes leave this one ` +
      'behind. Run that version or a newer one. To go back, restore the backup that was made before the upgrade',
  );
}

/** Throws SchemaMismatch if the database lacks migrations of this version. Only jobs applies migrations. */
export function refuseMissing(
  applied: readonly AppliedMigration[],
  newest: { readonly number: number; readonly name: string } | undefined,
): void {
  const last = applied.at(-1);
  if (newest === undefined || (last?.number ?? 0) >= newest.number) return;
  throw new SchemaMismatch(
    `Postgres has ${last === undefined ? 'no schema' : `the schema ${last.name}`}, and this version of ` +
      `Tollgate needs ${newest.name}: start jobs of this version first ("tollgate jobs", or "tollgate start"), ` +
      'which bring the database up to it; gateways and commands come after',
  );
}
