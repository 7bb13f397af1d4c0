// A newer version has brought a database to a schema that this one does not know: what it would read and write there is
// not defined.

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
