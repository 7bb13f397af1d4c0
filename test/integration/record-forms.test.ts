// Every form of records that a version has written is read by this one, and becomes the same rows, charges and facts as
// that version's own jobs made of it.

import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { FIELD_ROWS, RECORD_FORM, USAGE_ROWS } from '../../src/records/fields.ts';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { insertFacts } from '../../src/storage/clickhouse/facts.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { listQuarantine } from '../../src/storage/spool/spool-directory.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import * as shipping from '../support/shipping.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import {
  describeForm,
  type RecordedForm,
  type Row,
  readRecordedForms,
  withoutChance,
} from './record-forms/recorded-form.ts';

const FORMS = readRecordedForms();
let server: TestPostgres;
let clickhouse: TestClickHouse;
before(async () => {
  server = await startTestPostgres();
  clickhouse = await openTestClickHouse();
});
after(async () => {
  await clickhouse?.close();
  await server?.stop();
});

describe('forms of records', () => {
  test('each is written down, the present one too', () => {
    assert.deepEqual(
      FORMS.map(({ form }) => form),
      Array.from({ length: RECORD_FORM }, (_, index) => index + 1),
      'raise RECORD_FORM by one, and write that form down: test/integration/record-forms/write-form.ts',
    );
    assert.deepEqual(
      FORMS.at(-1)?.description,
      describeForm(FIELD_ROWS, USAGE_ROWS),
      'the table of fields is another than that of the last form: raise RECORD_FORM and write that form down',
    );
  });

  test('a form has all fields of the one before, as they were, and what it adds is optional', () => {
    for (const [index, { form, description }] of FORMS.entries()) {
      const { fields, usage } = description;
      const before = FORMS[index - 1]?.description ?? description;
      const known = new Set(before.fields.map(({ name }) => name));
      const kept = fields.filter(({ name }) => known.has(name));
      assert.deepEqual(kept, before.fields, `form ${form} changes fields or their order`);
      const required = fields.filter(({ name, isOptional }) => !known.has(name) && !isOptional);
      assert.deepEqual(required, [], `form ${form} adds what older records do not have`);
      assert.deepEqual(usage.slice(0, before.usage.length), before.usage, `form ${form} moves the counts of a usage`);
    }
  });

  for (const recorded of FORMS) {
    test(`a spool of form ${recorded.form} is shipped as its own version shipped it`, async (context) => {
      const { shipped, directory } = recorded;
      const postgres = createPostgres({ url: await server.createDatabase(), log: silentLog, max: 3 });
      context.after(() => postgres.close());
      await clickhouse.clear();
      await shipping.addPayer(postgres, shipped);
      const epoch = await shipping.createEpoch(postgres, shipped, shipped.executions);
      const spoolDirectory = temporaryDirectory(context);
      cpSync(directory, join(spoolDirectory, String(epoch)), { recursive: true });
      await shipping
        .testShipper({
          spoolDirectory,
          postgres,
          facts: {
            insert: (facts, batch) => insertFacts(clickhouse.client, facts, batch),
            probe: async () => undefined,
          },
        })
        .drainOnce();
      assert.deepEqual(listQuarantine(spoolDirectory), []);
      const { rows } = await postgres.query<{ row: Row }>(
        'SELECT to_jsonb(generations) AS row FROM generations ORDER BY id',
      );
      assertSame(
        rows.map(({ row }) => withoutChance(row)),
        shipped.generations,
        recorded,
      );
      const facts = await selectRows<Row>(clickhouse.client, 'SELECT * FROM request_facts FINAL ORDER BY id');
      assertSame(facts, shipped.facts, recorded);
      assert.equal(String((await shipping.readWallet(postgres, shipped.walletId)).balance), shipped.balance);
      assert.deepEqual(await findBrokenInvariants(postgres), []);
    });
  }
});

/** What is there now is what was there then; what came later says nothing. */
function assertSame(present: readonly Row[], then: readonly Row[], { form }: RecordedForm): void {
  assert.ok(then.length > 0);
  const columns = new Set(Object.keys(then[0] ?? {}));
  const split = present.map((row) => Object.entries(row));
  assert.deepEqual(
    split.map((entries) => Object.fromEntries(entries.filter(([name]) => columns.has(name)))),
    then,
  );
  for (const [name, value] of split.flatMap((entries) => entries.filter(([column]) => !columns.has(column))))
    assert.ok(
      [null, false, 0, '', '0'].includes(value as null) || (Array.isArray(value) && value.length === 0),
      `a record of form ${form} says ${JSON.stringify(value)} of ${name}`,
    );
}
