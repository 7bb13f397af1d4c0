// Spec 4.4: GET /v1/usage/limits/current, on a real Postgres: the ceilings that hold for the caller, and how they
// stand.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { PrincipalLimit } from '../../src/domain/identity/principal.ts';
import { postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import { registerEpoch } from '../../src/storage/postgres/ledger/wallets.ts';
import { returnLimitLease, takeLimitLease } from '../../src/storage/postgres/limits/limit-leases.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { type BillingFront, NOBODY, OWNER, startBillingFront } from '../support/billing-front.ts';
import { admittedRecord, type FundedOrganization, fundOrganization, terminalRecord } from '../support/executions.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';

describe('current usage limits', () => {
  let database: TestDatabase;
  let postgres: Postgres;
  let acme: FundedOrganization;
  let front: BillingFront;
  const limits: PrincipalLimit[] = [];

  async function limit(
    fields: Pick<PrincipalLimit, 'scope' | 'kind' | 'amount'> & Partial<PrincipalLimit>,
    userId: string | null = null,
  ): Promise<PrincipalLimit> {
    const { setBy = 'platform', window = null, model = null, kind, amount } = fields;
    const { rows } = await postgres.query<{ id: string }>(
      `INSERT INTO usage_limits (organization_id, user_id, kind, time_window, amount, model, set_by)
        VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
      [acme.organizationId, userId, kind, window, amount.toString(), model, setBy],
    );
    return { window, model, setBy, ...fields, id: rows[0]?.id ?? '' };
  }

  before(async () => {
    database = await openTestDatabase();
    ({ postgres } = database);
    acme = await fundOrganization(postgres, 0n);
    const { rows } = await postgres.query<{ id: string }>(
      `INSERT INTO users (email) VALUES ('a@acme.test') RETURNING id`,
    );
    const userId = rows[0]?.id ?? '';
    limits.push(
      await limit({ scope: 'organization', kind: 'requests_per_minute', amount: 600n }),
      await limit({ scope: 'organization', kind: 'budget', window: 'month', amount: 100_500_000_000_000n }),
      await limit({ scope: 'organization', kind: 'concurrent_requests', amount: 5n }),
      await limit(
        { scope: 'user', setBy: 'organization', kind: 'tokens_per_minute', amount: 1_000n, model: 'sim/small' },
        userId,
      ),
    );
    const ofAcme = { ...acme, billed: true, userId };
    front = await startBillingFront(postgres, {
      key: { ...NOBODY, ...ofAcme, limits },
      unlimited: { ...NOBODY, ...ofAcme },
      person: { ...OWNER, ...ofAcme },
      nowhere: OWNER,
    });
  });
  after(async () => {
    await front?.stop();
    await database?.close();
  });

  const current = async (as: string) =>
    (await front.call(as, 'GET', '/v1/usage/limits/current')).data as unknown as Readonly<Record<string, unknown>>[];

  test(
    'a key is told of every ceiling that holds for it: numbers, money as decimal strings, when a budget ' +
      'starts anew',
    async () => {
      const found = await current('key');
      const next = new Date();
      const resetsAt = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1)).toISOString();
      assert.deepEqual(found, [
        {
          scope: 'organization',
          set_by: 'platform',
          kind: 'requests_per_minute',
          window: null,
          limit: 600,
          used: 0,
          lent: 0,
          remaining: 600,
          resets_at: null,
          model: null,
        },
        {
          scope: 'organization',
          set_by: 'platform',
          kind: 'budget',
          window: 'month',
          limit: '100.5',
          used: '0',
          lent: '0',
          remaining: '100.5',
          resets_at: resetsAt,
          model: null,
        },
        {
          scope: 'organization',
          set_by: 'platform',
          kind: 'concurrent_requests',
          window: null,
          limit: 5,
          used: 0,
          lent: 0,
          remaining: 5,
          resets_at: null,
          model: null,
        },
        {
          scope: 'user',
          set_by: 'organization',
          kind: 'tokens_per_minute',
          window: null,
          limit: 1_000,
          used: 0,
          lent: 0,
          remaining: 1_000,
          resets_at: null,
          model: 'sim/small',
        },
      ]);
      assert.deepEqual(await current('unlimited'), []);
    },
  );

  test('of a rate what was granted counts as used, and what gateways may still use of it is lent', async () => {
    const epoch = await registerEpoch(postgres, { machine: 'test', pid: 1, kind: 'gateway' });
    const limitId = limits[0]?.id ?? '';
    const lease = { epoch, limitId, amount: 10n, minimum: 10n, present: null };
    const standing = async () => {
      const [requests] = await current('key');
      return [requests?.['used'], requests?.['lent'], requests?.['remaining']];
    };
    const ended = await takeLimitLease(postgres, { ...lease, atMs: Date.now() - 40_000 });
    assert.deepEqual(await standing(), [10, 0, 590]);
    await returnLimitLease(postgres, { epoch, limitId, grantId: ended.grantId, amount: 9n });
    assert.deepEqual(await standing(), [1, 0, 599]);
    await takeLimitLease(postgres, { ...lease, amount: 19n });
    assert.deepEqual(await standing(), [20, 19, 580]);
  });

  test('open requests are used places until their end is posted, each in its own scope', async () => {
    const epoch = await registerEpoch(postgres, { machine: 'test', pid: 1, kind: 'gateway' });
    const [mine, another] = [admittedRecord(acme), admittedRecord(await fundOrganization(postgres, 0n))];
    const batch = { epoch, segment: 1, fromOffset: 0, toOffset: 10, records: [mine, admittedRecord(acme), another] };
    await postExecutions(postgres, batch);
    const places = async () => {
      const found = (await current('key')).find(({ kind }) => kind === 'concurrent_requests');
      return [found?.['used'], found?.['remaining']];
    };
    assert.deepEqual(await places(), [2, 3]);
    const ended = terminalRecord(mine, { charge: '0', ratedCost: '0' });
    await postExecutions(postgres, { ...batch, fromOffset: 10, toOffset: 20, records: [ended] });
    assert.deepEqual(await places(), [1, 4]);
  });

  test(
    'a person is told of the organization’s and of their own; without an active organization the scope ' +
      'is not resolved',
    async () => {
      assert.deepEqual((await current('person')).map(({ scope, kind }) => `${String(scope)} ${String(kind)}`).sort(), [
        'organization budget',
        'organization concurrent_requests',
        'organization requests_per_minute',
        'user tokens_per_minute',
      ]);
      const { body } = await front.call('nowhere', 'GET', '/v1/usage/limits/current');
      assert.equal((body as { error: string }).error, 'authorization scope required');
    },
  );
});
