// What uploads had reserved whose process died is given back: in the order in which everybody takes the locks of
// quotas, once, and by two at the same time.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { expireReservations } from '../../src/storage/postgres/media/sweep.ts';
import { reserveMedia } from '../../src/storage/postgres/media/uploads.ts';
import { fundOrganization } from '../support/executions.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { waitFor } from '../support/waiting.ts';

const BYTES = 1_000;

describe('reservations of uploads that ended without a word', () => {
  let database: TestDatabase;

  before(async () => {
    database = await openTestDatabase();
  });
  after(() => database?.close());

  /** Organizations in descending order, as their rows lie in the table, each with so many expired reservations. */
  async function organizationsWith(count: number, reservations: number): Promise<string[]> {
    const { postgres } = database;
    const made = await Promise.all(Array.from({ length: count }, () => fundOrganization(postgres, 0n)));
    const ids = made.map(({ organizationId }) => organizationId).toSorted((one, other) => (one < other ? 1 : -1));
    for (const organizationId of ids)
      for (let index = 0; index < reservations; index += 1)
        await reserveMedia(postgres, {
          id: randomUUID(),
          organizationId,
          bytes: BYTES,
          organizationBytesMax: 10 ** 9,
          lifetimeMs: -1,
        });
    return ids;
  }

  async function reservedBy(ids: readonly string[]): Promise<number> {
    const { rows } = await database.postgres.query<{ reserved: number }>(
      'SELECT sum(reserved_bytes)::int AS reserved FROM media_quotas WHERE organization_id = ANY($1::uuid[])',
      [ids],
    );
    return rows[0]?.reserved ?? 0;
  }

  test('whoever takes the quotas of two organizations in order is not held up by them for good', async () => {
    const { postgres } = database;
    const ids = await organizationsWith(2, 1);
    const [last, first] = ids;
    const lock = 'SELECT FROM media_quotas WHERE organization_id = $1 FOR UPDATE';
    const expiring = await postgres.transaction(async (client) => {
      await client.query(lock, [first]);
      const given = expireReservations(postgres);
      given.catch(() => undefined);
      await waitFor(
        'it to wait for the lock',
        async () => {
          const { rows } = await postgres.query(`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'
            AND datname = current_database()`);
          return rows.length;
        },
        (waiting) => waiting > 0,
      );
      await client.query(lock, [last]);
      return { given };
    });
    assert.equal(await expiring.given, 2);
    assert.equal(await reservedBy(ids), 0);
  });

  test('two at once give each of them back once, beside a third that was still under way', async () => {
    const { postgres } = database;
    const ids = await organizationsWith(5, 20);
    const upload = { id: randomUUID(), organizationId: ids[0] ?? '', bytes: BYTES };
    await reserveMedia(postgres, { ...upload, organizationBytesMax: 10 ** 9, lifetimeMs: 600_000 });
    const given = await Promise.all([expireReservations(postgres), expireReservations(postgres)]);
    assert.equal(given[0] + given[1] + (await expireReservations(postgres)), 100, String(given));
    assert.equal(await reservedBy(ids), BYTES);
  });
});
