// House rules about SQL: statements are only in storage and in numbered files, and values never become part of a
// statement's text.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { ALL_SOURCES, listBreaches, ROOT, type SourceFile, sourcesIn } from './sources.ts';

const STATEMENT =
  /[`'"]\s*(SELECT\s[^`'"]*\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX)|ALTER\s+TABLE|WITH\s+\w+\s+AS\s*\()/;

describe('SQL', () => {
  for (const folder of ['deploy/postgres', 'deploy/clickhouse', 'deploy/clickhouse/cluster']) {
    test(`${folder} is numbered from 1 without a gap`, () => {
      const files = readdirSync(join(ROOT, folder))
        .filter((file) => file.endsWith('.sql'))
        .sort();
      assert.ok(files.length > 0);
      for (const [index, file] of files.entries())
        assert.match(file, new RegExp(`^${String(index + 1).padStart(4, '0')}-[a-z0-9-]+\\.sql$`));
    });
  }

  test('statements are in src/storage and nowhere else', () => {
    const elsewhere = sourcesIn('src', 'jobs', 'workers').filter(({ path }) => !path.startsWith('src/storage/'));
    assert.deepEqual(
      listBreaches(elsewhere, ({ text }) => STATEMENT.exec(text)?.[0] ?? null),
      [],
    );
  });

  test(
    'a value is a parameter: only names in capitals or through a quoting or checking function are put ' +
      'into a statement',
    () => {
      assert.deepEqual(listBreaches(sourcesIn('src/storage'), findInterpolation), []);
    },
  );

  test('the rule above finds a seeded breach', () => {
    const text = ['query(`SELECT * FROM wallets WHERE id = $', '{id}`)'].join('');
    assert.notEqual(findInterpolation({ path: 'seeded', text }), null);
    assert.equal(findInterpolation({ path: 'seeded', text: text.replace('{id}', '{COLUMNS}') }), null);
  });

  test('there are statements to check', () => {
    assert.ok(ALL_SOURCES.some(({ path, text }) => path.startsWith('src/storage/') && STATEMENT.test(text)));
  });
});

/**
 * Finds a `${...}` in a statement that is neither a constant nor the result of a function that quotes or checks it;
 * null if there is none.
 */
function findInterpolation({ text }: SourceFile): string | null {
  for (const [template] of text.matchAll(/`(?:[^`\\]|\\.)*`/g)) {
    if (!STATEMENT.test(template)) continue;
    // Text after FORMAT is data in ClickHouse's own format, not SQL.
    const [statement = ''] = template.split(/FORMAT JSON\w+\\n/);
    for (const [whole, expression = ''] of statement.matchAll(/\$\{([^}]*)\}/g)) {
      if (!/^[A-Z][A-Z0-9_]*$/.test(expression) && !/^(\w+\.)?(quote|checked)\w*\(/.test(expression)) return whole;
    }
  }
  return null;
}
