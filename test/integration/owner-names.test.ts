// The names that reports show beside ids, from a real Postgres: nothing of another organization is named, and a report
// does without names while they cannot be read.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { nameOwners } from '../../jobs/reports/name-owners.ts';
import { namingRows } from '../../src/domain/reports/owners.ts';
import { findOwnerNames } from '../../src/storage/postgres/identity/owner-names.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';

let database: TestDatabase;
let postgres: Postgres;
let ours: Row;
let theirs: Row;

interface Row {
  readonly organization_id: string;
  readonly team_id: string;
  readonly user_id: string;
  readonly api_key_id: string;
}

async function makeOrganization(slug: string): Promise<Row> {
  const insert = async (statement: string, ...values: unknown[]) =>
    (await postgres.query<{ id: string }>(`${statement} RETURNING id`, values)).rows[0]?.id ?? '';
  const organization_id = await insert(
    "INSERT INTO organizations (slug, display_name, billing) VALUES ($1, $1, 'none')",
    slug,
  );
  const team_id = await insert(
    'INSERT INTO teams (organization_id, slug) VALUES ($1, $2)',
    organization_id,
    `team-of-${slug}`,
  );
  const user_id = await insert('INSERT INTO users (email) VALUES ($1)', `ann@${slug}.test`);
  const api_key_id = await insert(
    'INSERT INTO api_keys (organization_id, team_id, user_id, name, key_hash, key_prefix) VALUES ($1, $2, $3, $4, $5, $6)',
    organization_id,
    team_id,
    user_id,
    `key of ${slug}`,
    randomBytes(32),
    'tg-x',
  );
  return { organization_id, team_id, user_id, api_key_id };
}

before(async () => {
  database = await openTestDatabase();
  ({ postgres } = database);
  ours = await makeOrganization('acme');
  theirs = await makeOrganization('globex');
});
after(() => database?.close());

const nameRowsOf = (organizationId: string | null) =>
  namingRows((of, ids) => findOwnerNames(postgres, of, ids), organizationId);

describe('names', () => {
  test('stand beside the ids of a row', async () => {
    const [row] = await nameRowsOf(ours.organization_id)([{ cost: '1', ...ours }]);
    assert.deepEqual(Object.entries(row ?? {}), [
      ['cost', '1'],
      ['organization_id', ours.organization_id],
      ['organization', 'acme'],
      ['team_id', ours.team_id],
      ['team', 'team-of-acme'],
      ['user_id', ours.user_id],
      ['user', 'ann@acme.test'],
      ['api_key_id', ours.api_key_id],
      ['api_key', 'key of acme'],
    ]);
  });

  test('of another organization are none, whoever knows the ids', async () => {
    const { user_id: _, ...ids } = theirs;
    const [row] = await nameRowsOf(ours.organization_id)([ids]);
    assert.deepEqual([row?.organization, row?.team, row?.api_key], [null, null, null]);
    const names = await findOwnerNames(postgres, ours.organization_id, {
      organization: [theirs.organization_id],
      team: [theirs.team_id],
      user: [],
      api_key: [theirs.api_key_id],
    });
    assert.deepEqual(
      Object.values(names).map(({ size }) => size),
      [0, 0, 0, 0],
    );
  });

  test('of all organizations are for the platform', async () => {
    const rows = await nameRowsOf(null)([ours, theirs]);
    assert.deepEqual(
      rows.map(({ organization, team, user, api_key }) => [organization, team, user, api_key]),
      [
        ['acme', 'team-of-acme', 'ann@acme.test', 'key of acme'],
        ['globex', 'team-of-globex', 'ann@globex.test', 'key of globex'],
      ],
    );
  });

  test('of what is gone, or never was, are null', async () => {
    const [row] = await nameRowsOf(null)([{ team_id: randomUUID(), user_id: null, api_key_id: randomUUID() }]);
    assert.deepEqual([row?.team, row?.user, row?.api_key], [null, null, null]);
    assert.equal('organization' in (row ?? {}), false);
  });
});

test('a report goes without names while they cannot be read, and a log line says so', async () => {
  const warnings: string[] = [];
  const log = { warn: (_: object, message: string) => void warnings.push(message) };
  const find = nameOwners(async () => Promise.reject(new Error('connect ECONNREFUSED')), log);
  const [row] = await namingRows(find, null)([ours]);
  assert.deepEqual([row?.api_key_id, row?.api_key], [ours.api_key_id, null]);
  assert.deepEqual(warnings, ['a report is shown without names']);
});
