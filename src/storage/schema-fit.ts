// Whether a version of the program fits the schema of a database. A migration only adds, so that versions which do not
// know it go on beside the one that applied it; one that does more says in its header which of them it leaves behind:
//
//   -- Needs: 0046. Why versions that do not know migration 46 must not run on it.
//   -- Beside older versions: why they go on, though it does more than add.
//
// test/house/migrations.test.ts holds migrations to it; `applied_migrations` has the number that a header names.

/** The database and this version do not go together. Its message says what to do. */
export class SchemaUnfit extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SchemaUnfit';
  }
}

export interface AppliedMigration {
  readonly number: number;
  readonly name: string;
  /** The migration that a version must know to run on it; null: it leaves no version behind. */
  readonly needs: number | null;
}

const NEEDS = /^-- Needs: (\d{4})\b/m;

/** What the header of a migration names; null: it leaves no version behind. */
export function readNeeds(sql: string): number | null {
  const [, number] = NEEDS.exec(sql) ?? [];
  return number === undefined ? null : Number(number);
}

/**
 * `applied`: those of the database, in order; `newest`: of this version. Throws SchemaUnfit where a newer version has
 * applied one that leaves this one behind.
 */
export function refuseLeftBehind(
  database: 'Postgres' | 'ClickHouse',
  applied: readonly AppliedMigration[],
  newest: { readonly number: number; readonly name: string } | undefined,
): void {
  const known = newest?.number ?? 0;
  if (!applied.some(({ number, needs }) => number > known && needs !== null && needs > known)) return;
  throw new SchemaUnfit(
    `${database} has the schema ${applied.at(-1)?.name}, and this version of Tollgate knows none after ` +
      `${newest?.name ?? 'none'}: a newer version has been started on this database, whose changes leave this one ` +
      'behind. Run that version or a newer one. To go back, restore the backup that was made before the upgrade',
  );
}

/** Throws SchemaUnfit where the database lacks migrations of this version, which jobs applies. */
export function refuseMissing(
  applied: readonly AppliedMigration[],
  newest: { readonly number: number; readonly name: string } | undefined,
): void {
  const last = applied.at(-1);
  if (newest === undefined || (last?.number ?? 0) >= newest.number) return;
  throw new SchemaUnfit(
    `Postgres has ${last === undefined ? 'no schema' : `the schema ${last.name}`}, and this version of ` +
      `Tollgate needs ${newest.name}: start jobs of this version first ("tollgate jobs", or "tollgate start"), ` +
      'which bring the database up to it; gateways and commands come after',
  );
}
