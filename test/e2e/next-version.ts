// A version after this one, for runs of an upgrade: a copy of a checkout with what a release brings that two versions
// must agree about, a field of records with its column in Postgres and in ClickHouse. It is thrown away.

import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the next version says of every execution in its new column; the others say nothing. */
const NEXT_NOTE = 'of the next version';
export const NEXT_COLUMN = 'upgrade_note';
const PARTS = ['bin', 'src', 'jobs', 'workers', 'deploy', 'package.json'];

/** Makes it in `directory`, which exists and is empty. */
export function makeNextVersion(checkout: string, directory: string): void {
  for (const part of PARTS) cpSync(join(checkout, part), join(directory, part), { recursive: true });
  symlinkSync(join(checkout, 'node_modules'), join(directory, 'node_modules'));
  edit(join(directory, 'package.json'), /"version": "([^"]*)"/, '"version": "$1-next"');
  const places = `{ postgres: '${NEXT_COLUMN}', clickhouse: '${NEXT_COLUMN}' }`;
  const fields = join(directory, 'src/records/fields.ts');
  edit(fields, /RECORD_FORM = (\d+)/, (_, form) => `RECORD_FORM = ${Number(form) + 1}`);
  edit(
    fields,
    '  itemIds: optionalEnd(texts, {}),\n',
    (row) => `${row}  upgradeNote: optionalEnd(nullable(text), ${places}),\n`,
  );
  edit(
    join(directory, 'src/generation/execution/execution.ts'),
    'metering.journal.append(this.start(), rated.end, this);',
    `metering.journal.append(this.start(), { ...rated.end, upgradeNote: '${NEXT_NOTE}' }, this);`,
  );
  addMigration(
    join(directory, 'deploy/postgres'),
    `ALTER TABLE generations ADD COLUMN ${NEXT_COLUMN} text;\n` +
      `CREATE INDEX generations_${NEXT_COLUMN} ON generations (${NEXT_COLUMN}) WHERE ${NEXT_COLUMN} IS NOT NULL;\n`,
  );
  addMigration(
    join(directory, 'deploy/clickhouse'),
    `ALTER TABLE request_facts\n    ADD COLUMN IF NOT EXISTS ${NEXT_COLUMN} Nullable(String);\n`,
  );
}

/** Whether versions can run beside this one that know more: checkouts of before do not name a form. */
export function standsNewerOnes(checkout: string): boolean {
  return existsSync(join(checkout, 'src/storage/schema-fit.ts'));
}

function addMigration(directory: string, sql: string): void {
  const number = readdirSync(directory).filter((file) => file.endsWith('.sql')).length + 1;
  writeFileSync(join(directory, `${String(number).padStart(4, '0')}-of-the-next-version.sql`), sql);
}

function edit(path: string, found: string | RegExp, put: string | ((...found: string[]) => string)): void {
  const text = readFileSync(path, 'utf8');
  const edited = text.replace(found, put as string);
  if (edited === text) throw new Error(`${path} has no ${String(found)} any more: the next version cannot be made`);
  writeFileSync(path, edited);
}
