// The error for a database that a newer version has migrated to a schema unknown to this one, which must not read or
// write it.

export class SchemaTooNew extends Error {
  constructor(
    database: 'Postgres' | 'ClickHouse',
    { newest, known }: { readonly newest: string; readonly known: string },
  ) {
    super(
      `${database} has the schema ${newest}, and this version of Tollgate knows none after ${known}: a ` +
        `newer version has been started on this database. ` +
        'Run that version or a newer one. To go back, restore the backup that was made before the upgrade',
    );
    this.name = 'SchemaTooNew';
  }
}
