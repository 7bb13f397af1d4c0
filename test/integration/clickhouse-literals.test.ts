// The embedded engine is given values as literals: each arrives as it is, none becomes SQL, and statements that run at
// once on two connections have their own.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { type ClickHouseClient, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { checkedLiterals } from '../../src/storage/clickhouse/literals.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';

const HOSTILE = [
  '',
  "'",
  "''",
  '\\',
  "\\'",
  "' OR 1 = 1 --",
  "'); DROP TABLE request_facts; --",
  "', 'String'), (SELECT 1",
  '{other:String}',
  '$&$1$`',
  'a\nb\tc\r\0d',
  '\\N',
  'null',
  '\u{1F600} é \u2028',
  '/* */ ; -- #',
];

describe('literals of the embedded engine', () => {
  let clickhouse: TestClickHouse;
  let second: ClickHouseClient;
  before(async () => {
    clickhouse = await openTestClickHouse();
    second = await clickhouse.connect();
  });
  after(() => clickhouse.close());

  test('each text arrives as it is, alone and in an array', async () => {
    for (const text of HOSTILE) {
      const rows = await selectRows(clickhouse.client, 'SELECT {text:String} AS text, {texts:Array(String)} AS texts', {
        text,
        texts: [text, 'and', text],
        other: 'not this',
      });
      assert.deepEqual(rows, [{ text, texts: [text, 'and', text] }]);
    }
  });

  test('each type arrives as it is', async () => {
    const id = '0b0b0b0b-0000-4000-8000-00000000000b';
    const integers = { a: 255, b: 65_535, c: 4_294_967_295, d: -1_790_812_800_000, e: [1, 2], i: [] };
    const values = { ...integers, f: id, g: [id, id], h: '2026-10-01' };
    const rows = await selectRows(
      clickhouse.client,
      `SELECT {a: UInt8} AS a, {b:UInt16} AS b, {c:UInt32} AS c, {d:Int64} AS d, {e:Array(UInt32)} AS e, {f:UUID} AS f,
         {g:Array(UUID)} AS g, {h:Date} AS h, {i:Array(UInt16)} AS i, toTypeName({d:Int64}) AS type
       SETTINGS output_format_json_quote_64bit_integers = 0`,
      values,
    );
    assert.deepEqual(rows, [{ ...values, type: 'Int64' }]);
  });

  test('a value that is none of its type is refused, and so is a parameter without one', () => {
    for (const [sql, values] of [
      ['{a:UInt32}', { a: '1) OR (1' }],
      ['{a:UInt32}', { a: 1.5 }],
      ['{a:UInt32}', {}],
      ['{a:UInt32}', { a: null }],
      ['{a:Array(UInt32)}', { a: ['1', 'x'] }],
      ['{a:Array(UInt32)}', { a: 1 }],
      ['{a:Map(String)}', { a: ['x'] }],
      ['{a:Float64}', { a: 1 }],
      ['{a:Nullable(UInt8)}', { a: 1 }],
      ['{a:Array(Array(UInt8))}', { a: [1] }],
      ['{a:constructor}', { a: 1 }],
    ] as const)
      assert.throws(() => checkedLiterals(sql, values), `${sql} ${JSON.stringify(values)}`);
    assert.equal(checkedLiterals("SELECT '{}', 1 AS a", {}), "SELECT '{}', 1 AS a");
  });

  test('lists as long as any report has fit into a statement', async () => {
    // The hours of some years, in each of the two places where a statement has them.
    const starts = Array.from({ length: 30_000 }, (_, hour) => 1_790_812_800 + hour * 3_600);
    const ids = Array.from(
      { length: 10_000 },
      (_, index) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    );
    const rows = await selectRows(
      clickhouse.client,
      `SELECT toUInt32(length({ids:Array(UUID)})) AS ids, roundDown(toUInt32(1790816401), {starts:Array(UInt32)}) AS start,
         toUInt32(length({starts:Array(UInt32)})) AS starts`,
      { starts, ids },
    );
    assert.deepEqual(rows, [{ ids: 10_000, start: 1_790_816_400, starts: 30_000 }]);
  });

  test('statements that wait for one of their connection hold no thread: files are read meanwhile', async () => {
    const ended: string[] = [];
    const statements = Array.from({ length: 6 }, () =>
      selectRows(clickhouse.client, 'SELECT sleep(0.3)').then(() => ended.push('statement')),
    );
    await readFile(import.meta.filename);
    ended.push('file');
    await Promise.all(statements);
    assert.equal(ended[0], 'file');
  });

  test('statements at once have their own values', async () => {
    await Promise.all(
      Array.from({ length: 200 }, async (_, number) => {
        const client = number % 2 === 0 ? clickhouse.client : second;
        const rows = await selectRows(client, 'SELECT {number:UInt32} AS number, {text:String} AS text', {
          number,
          text: `text ${number}`,
        });
        assert.deepEqual(rows, [{ number, text: `text ${number}` }]);
      }),
    );
  });
});
