// A migration only adds: older versions run beside the version that applied it. The header of any other migration says
// why older versions still work, or which versions no longer do (src/storage/schema-fit.ts).

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readNeeds } from '../../src/storage/schema-fit.ts';
import { ROOT } from './sources.ts';

/** The last migrations from before this rule. */
const FREE = { 'deploy/postgres': 45, 'deploy/clickhouse': 8 } as const;
const BESIDE = /^-- Beside older versions: \S.{10,}/m;

describe('migrations', () => {
  for (const [folder, free] of Object.entries(FREE))
    test(`${folder} only adds`, () => {
      const files = readdirSync(join(ROOT, folder)).filter((file) => file.endsWith('.sql'));
      const bound = files.filter((file) => Number(file.slice(0, 4)) > free);
      const breaches = bound.flatMap((file) => {
        const sql = readFileSync(join(ROOT, folder, file), 'utf8');
        return findBreaches(sql, Number(file.slice(0, 4))).map((breach) => `${file}: ${breach}`);
      });
      assert.deepEqual(breaches, []);
    });

  test('statements that only add are accepted', () => {
    for (const sql of [
      'CREATE TABLE things (id uuid PRIMARY KEY, name text NOT NULL);\nCREATE UNIQUE INDEX things_name ON things (name);',
      'CREATE INDEX CONCURRENTLY generations_note ON generations (note);',
      'ALTER TABLE wallets ADD COLUMN note text, ADD COLUMN count numeric(38, 0) NOT NULL DEFAULT 0 CHECK (count >= 0);',
      'CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DROP TABLE x; RETURN NULL; END $$;\n' +
        'CREATE TRIGGER tells AFTER UPDATE ON wallets FOR EACH ROW EXECUTE FUNCTION tell();',
      "COMMENT ON TABLE wallets IS 'a; b';",
      "ALTER TABLE request_facts\n    ADD COLUMN IF NOT EXISTS note LowCardinality(String) COMMENT 'of, one';",
      'CREATE TABLE things (id int); INSERT INTO things VALUES (1); ALTER TABLE things DROP COLUMN id;',
      '-- Beside older versions: nobody reads this index by name.\nDROP INDEX api_keys_name;',
      '-- Needs: 0046. Nothing has used the column since.\nALTER TABLE wallets DROP COLUMN note;',
    ])
      assert.deepEqual(findBreaches(sql, 47), [], sql);
  });

  test('statements that remove, forbid or change are found', () => {
    for (const sql of [
      'ALTER TABLE wallets DROP COLUMN note;',
      'ALTER TABLE wallets ADD COLUMN note text NOT NULL;',
      'ALTER TABLE wallets ADD COLUMN note text, ALTER COLUMN balance TYPE text;',
      'ALTER TABLE wallets ADD COLUMN note text UNIQUE;',
      'ALTER TABLE wallets ADD CONSTRAINT positive CHECK (balance > 0);',
      'ALTER TABLE wallets RENAME COLUMN note TO text;',
      'CREATE UNIQUE INDEX once ON wallets (note);',
      'CREATE OR REPLACE FUNCTION tell() RETURNS trigger LANGUAGE sql AS $$ SELECT 1 $$;',
      'CREATE TRIGGER stops BEFORE INSERT ON wallets FOR EACH ROW EXECUTE FUNCTION tell();',
      "UPDATE wallets SET note = 'x';",
      'INSERT INTO wallets DEFAULT VALUES;',
      'DROP TABLE wallets;',
      'ALTER TABLE request_facts MODIFY COLUMN note String;',
      '-- Beside older versions: yes\nDROP TABLE wallets;',
      '-- Needs: 0048. Its own is the last that it can name.\nDROP TABLE wallets;',
    ])
      assert.equal(findBreaches(sql, 47).length, 1, sql);
  });
});

function findBreaches(sql: string, number: number): string[] {
  const needs = readNeeds(sql);
  if (needs !== null) return needs <= number ? [] : [`needs ${needs}, which comes later`];
  if (BESIDE.test(sql)) return [];
  const statements = splitOutside(withoutTexts(sql), ';');
  const made = new Set(
    statements.flatMap((one) => /^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)/.exec(one)?.[1] ?? []),
  );
  return statements.filter((statement) => !onlyAdds(statement, made));
}

/** Whether the statement only adds. `made`: tables created in the same file, which no older version uses yet. */
function onlyAdds(statement: string, made: ReadonlySet<string>): boolean {
  const [, index] = /^CREATE UNIQUE INDEX .*?\bON (\w+)/.exec(statement) ?? [];
  if (index !== undefined) return made.has(index);
  const [, changed, clauses] = /^ALTER TABLE (\w+) (.*)$/.exec(statement) ?? [];
  if (changed !== undefined && clauses !== undefined)
    return made.has(changed) || splitOutside(clauses, ',').every(addsColumn);
  const [, filled] = /^INSERT INTO (\w+)/.exec(statement) ?? [];
  if (filled !== undefined) return made.has(filled);
  return /^(?:CREATE (?:(?:UNLOGGED )?TABLE|INDEX|SEQUENCE|VIEW|TYPE|FUNCTION|TRIGGER \w+ AFTER)|COMMENT ON)\b/.test(
    statement,
  );
}

/** Whether the clause adds a column that every statement of an older version can leave out. */
function addsColumn(clause: string): boolean {
  if (!/^ADD (?:COLUMN|INDEX)\b/.test(clause) || /\b(?:UNIQUE|PRIMARY KEY|GENERATED)\b/.test(clause)) return false;
  return !/\bNOT NULL\b/.test(clause) || /\bDEFAULT\b/.test(clause);
}

/** The SQL on one line, without comments, and with empty quotes. */
function withoutTexts(sql: string): string {
  return sql
    .replace(/\$(\w*)\$.*?\$\1\$/gs, "''")
    .replace(/'(?:[^']|'')*'|--.*$/gm, (found) => (found.startsWith('--') ? '' : "''"))
    .replace(/\s+/g, ' ');
}

/** Splits the text at separators outside all parentheses. */
function splitOutside(text: string, separator: string): string[] {
  const parts = [''];
  let depth = 0;
  for (const character of text) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (character === separator && depth === 0) parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}
