// Budgets and open requests, leased from a real Postgres: never more than the limit, what is used is posted once, what
// a dead process had returns.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { closeDeadEpoch, fenceEpoch, resolvePending } from '../../src/storage/postgres/ledger/epochs.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import {
  forgetLimitPools,
  recoverLimitLease,
  returnLimitLease,
  takeLimitLease,
} from '../../src/storage/postgres/limits/limit-leases.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { admittedRecord, terminalRecord } from '../support/executions.ts';
import { callInTurn, untilNotLocked } from '../support/lease-callers.ts';
import { openTestDatabase, silentLog, type TestDatabase } from '../support/postgres.ts';
import { budget, LimitedOrganization } from '../support/usage-limits.ts';
import { pause } from '../support/waiting.ts';

let database: TestDatabase;
let url: string;
let postgres: Postgres;
before(async () => {
  database = await openTestDatabase();
  ({ url, postgres } = database);
});
after(() => database?.close());

async function readPool(id: string): Promise<{ used: bigint; leased: bigint }> {
  const { rows } = await postgres.query<{ used: string; leased: string }>(
    'SELECT used, leased FROM limit_pools WHERE id = $1',
    [id],
  );
  return { used: BigInt(rows[0]?.used ?? -1), leased: BigInt(rows[0]?.leased ?? -1) };
}

describe('a budget', () => {
  test('callers at once lease all of it and no more', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(10_000n));
    const [limitId] = await tenant.limitIds();
    const epochs = await Promise.all(Array.from({ length: 8 }, () => tenant.newEpoch()));
    const answersOf = await Promise.all(
      epochs.map((epoch) => callInTurn(25, () => tenant.take(epoch, limitId, 97n, { minimum: 1n }))),
    );
    const answers = answersOf.flat();
    assert.equal(
      answers.reduce((sum, { granted }) => sum + granted, 0n),
      10_000n,
    );
    assert.equal(new Set(answers.map(({ grantId }) => grantId)).size, 1);
    await tenant.assertBooksAgree();
  });

  test('an amount that is free is granted whole; else what is free if it suffices; else nothing, and when the period ends', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(100n));
    const [limitId] = await tenant.limitIds();
    const epoch = await tenant.newEpoch();
    const other = await tenant.newEpoch();
    const atMs = Date.UTC(2026, 10, 20, 23, 59, 0);
    const first = await tenant.take(epoch, limitId, 60n, { atMs });
    const { grantId } = first;
    assert.deepEqual(first, {
      granted: 60n,
      grantId,
      validForMs: 60_000,
      presentMoved: false,
      available: 40n,
      leasedElsewhere: 0n,
      frozen: false,
      ceiling: 100n,
      retryAfterMs: null,
      gone: false,
    });
    const present = { grantId, available: 5n };
    assert.equal((await tenant.take(epoch, limitId, 1n, { atMs, present })).presentMoved, true);
    const short = await tenant.take(other, limitId, 60n, { minimum: 40n, atMs });
    assert.deepEqual(
      [short.granted, short.available, short.leasedElsewhere, short.retryAfterMs],
      [0n, 39n, 61n, 60_000],
    );
    assert.equal((await tenant.take(other, limitId, 60n, { minimum: 39n, atMs })).granted, 39n);
    await returnLimitLease(postgres, { epoch, limitId, grantId, amount: 61n });
    await assert.rejects(
      returnLimitLease(postgres, { epoch, limitId, grantId, amount: 1n }),
      /violates check constraint/,
    );
    await assert.rejects(
      returnLimitLease(postgres, { epoch: await tenant.newEpoch(), limitId, grantId, amount: 1n }),
      /violates check|holds nothing/,
    );
    assert.deepEqual(await readPool(grantId), { used: 0n, leased: 39n });
    await tenant.assertBooksAgree();
  });

  test('a lost call that was found not done is not carried out in a later period either', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(100n, 'hour'));
    const [limitId] = await tenant.limitIds();
    const epoch = await tenant.newEpoch();
    const atMs = Date.UTC(2026, 10, 20, 22, 59, 59);
    const [nextMs, afterNextMs] = [atMs + 2_000, atMs + 3_602_000];
    const first = await tenant.take(epoch, limitId, 10n, { atMs, call: 1 });
    assert.deepEqual(await recoverLimitLease(postgres, { epoch, limitId, call: 2, atMs }), { isDone: false });
    const late = await tenant.take(epoch, limitId, 10n, { atMs: nextMs, call: 2 });
    assert.deepEqual([late.granted, late.available, late.retryAfterMs], [0n, 100n, 3_599_000]);
    assert.equal((await tenant.take(epoch, limitId, 20n, { atMs: nextMs, call: 3 })).granted, 20n);
    // A return to the pool of a period before, recovered in a later one.
    const lost = { epoch, limitId, call: 4, atMs: afterNextMs };
    assert.deepEqual(await recoverLimitLease(postgres, lost), { isDone: false });
    await returnLimitLease(postgres, { epoch, limitId, grantId: first.grantId, amount: 10n, call: 4 });
    assert.deepEqual(await readPool(first.grantId), { used: 0n, leased: 10n });
    assert.deepEqual(await recoverLimitLease(postgres, lost), { isDone: false });
    await returnLimitLease(postgres, { epoch, limitId, grantId: first.grantId, amount: 10n, call: 5 });
    const done = { isDone: true, granted: 0n, grantId: first.grantId };
    assert.deepEqual(await recoverLimitLease(postgres, { epoch, limitId, call: 5, atMs: afterNextMs }), done);
    await tenant.assertBooksAgree();
  });

  test('a lost call is recovered while a pool of a past period is forgotten', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(100n, 'hour'));
    const [limitId] = await tenant.limitIds();
    const epoch = await tenant.newEpoch();
    const pastMs = Date.UTC(2026, 10, 20);
    const { grantId } = await tenant.take(epoch, limitId, 10n, { atMs: pastMs, call: 1 });
    await returnLimitLease(postgres, { epoch, limitId, grantId, amount: 10n, call: 2 });
    const { recovering } = await postgres.transaction(async (client) => {
      await client.query('DELETE FROM limit_leases WHERE pool_id = $1', [grantId]);
      await client.query('DELETE FROM limit_pools WHERE id = $1', [grantId]);
      const recovering = recoverLimitLease(postgres, { epoch, limitId, call: 3, atMs: pastMs + 7_200_000 });
      // It has met the lock, if it waits for it at all.
      await pause(50);
      return { recovering };
    });
    assert.deepEqual(await recovering, { isDone: false });
    const late = await tenant.take(epoch, limitId, 1n, { atMs: pastMs + 7_200_000, call: 3 });
    assert.equal(late.granted, 0n);
    await tenant.assertBooksAgree();
  });

  test('a lost return that was found not done is not carried out after its limit was removed', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(100n, 'hour'));
    const [limitId] = await tenant.limitIds();
    const epoch = await tenant.newEpoch();
    const { grantId } = await tenant.take(epoch, limitId, 50n, { call: 1 });
    await postgres.query('DELETE FROM usage_limits WHERE id = $1', [limitId]);
    assert.deepEqual(await recoverLimitLease(postgres, { epoch, limitId, call: 2 }), { isDone: false });
    await returnLimitLease(postgres, { epoch, limitId, grantId, amount: 10n, call: 2 });
    assert.deepEqual(await readPool(grantId), { used: 0n, leased: 50n });
    await returnLimitLease(postgres, { epoch, limitId, grantId, amount: 10n, call: 3 });
    assert.deepEqual(await readPool(grantId), { used: 0n, leased: 40n });
    assert.equal((await tenant.take(epoch, limitId, 1n, { call: 4 })).gone, true);
    // Of a limit of which it has nothing, too.
    const other = await tenant.newEpoch();
    assert.deepEqual(await recoverLimitLease(postgres, { epoch: other, limitId, call: 1 }), { isDone: false });
    await tenant.assertBooksAgree();
  });

  test('what executions used is posted to all their pools once, however often it comes', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(10_000n, 'day'), budget(50_000n, 'month'));
    const [day, month = ''] = await tenant.limitIds();
    const epoch = await tenant.newEpoch();
    const grants = await Promise.all([day, month].map((id) => tenant.take(epoch, id, 5_000n)));
    const budgets = grants.map(({ grantId }) => grantId);
    const admitted = admittedRecord(tenant.owner, { budgets });
    const free = admittedRecord(tenant.owner, { budgets, walletId: null, authorizedAmount: null });
    const ended = [
      terminalRecord(admitted, { budgetUse: '700' }),
      terminalRecord(free, { budgetUse: '40', charge: null, billingStatus: 'not_billed' }),
      terminalRecord(admittedRecord(tenant.owner, { budgets }), { budgetUse: '0', charge: '0' }),
      terminalRecord(admittedRecord(tenant.owner)),
    ];
    await tenant.post(epoch, admitted, free);
    for (const { grantId } of grants) assert.deepEqual(await readPool(grantId), { used: 0n, leased: 5_000n });
    await tenant.post(epoch, ...ended);
    await tenant.post(epoch, ...ended, ...ended);
    for (const { grantId } of grants) assert.deepEqual(await readPool(grantId), { used: 740n, leased: 4_260n });
    await returnLimitLease(postgres, { epoch, limitId: day, grantId: budgets[0] ?? '', amount: 4_260n });
    assert.equal((await tenant.take(epoch, day, 1n)).available, 10_000n - 740n - 1n);
    await tenant.assertBooksAgree();
  });

  test('a process that dies returns what it has not used, and once', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(1_000n));
    const [limitId] = await tenant.limitIds();
    const epoch = await tenant.newEpoch();
    const other = await tenant.newEpoch();
    const { grantId } = await tenant.take(epoch, limitId, 900n);
    await tenant.take(other, limitId, 50n);
    const open = admittedRecord(tenant.owner, { budgets: [grantId] });
    await tenant.post(
      epoch,
      open,
      terminalRecord(admittedRecord(tenant.owner, { budgets: [grantId] }), { budgetUse: '300', charge: '300' }),
    );
    await fenceEpoch(postgres, epoch);
    await assert.rejects(tenant.take(epoch, limitId, 1n), { code: 'TG001' });
    for (const _ of [1, 2]) await postgres.transaction((client) => closeDeadEpoch(client, epoch));
    await postgres.transaction((client) => resolvePending(client, { nowMs: 1_790_000_009_000, max: 10 }));
    assert.deepEqual(await readPool(grantId), { used: 300n, leased: 50n });
    assert.deepEqual(
      [(await tenant.take(other, limitId, 651n)).granted, (await tenant.take(other, limitId, 650n)).granted],
      [0n, 650n],
    );
    await tenant.assertBooksAgree();
  });

  test('many epochs that take, use, give back and die at once keep the books', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(40_000n, 'day'), budget(60_000n, 'month'));
    const [day, month = ''] = await tenant.limitIds();
    const pools = [day, month];
    const work = async (index: number): Promise<void> => {
      const epoch = await tenant.newEpoch();
      for (let round = 0; round < 8; round += 1) {
        const grants = await Promise.all(pools.map((limitId) => tenant.take(epoch, limitId, 900n, { minimum: 700n })));
        if (grants.every(({ granted }) => granted > 0n)) {
          const budgets = grants.map(({ grantId }) => grantId);
          const order = index % 2 === 0 ? budgets : budgets.toReversed();
          await tenant.post(
            epoch,
            terminalRecord(admittedRecord(tenant.owner, { budgets: order }), { budgetUse: '700' }),
          );
        }
        for (const [position, { granted, grantId }] of grants.entries()) {
          const left = granted === 0n || grants.some((grant) => grant.granted === 0n) ? granted : granted - 700n;
          const given = { epoch, limitId: pools[position] ?? '', grantId, amount: left };
          if (round % 3 !== 0) await untilNotLocked(() => returnLimitLease(postgres, given)).catch(ignoreNothingHeld);
        }
      }
      await postgres.transaction((client) => closeDeadEpoch(client, epoch));
    };
    await Promise.all(Array.from({ length: 6 }, (_, index) => work(index)));
    const { rows } = await postgres.query<{ used: string; leased: string }>(
      'SELECT used, leased FROM limit_pools WHERE limit_id = ANY ($1)',
      [pools],
    );
    assert.equal(new Set(rows.map(({ used }) => used)).size, 1);
    assert.ok(BigInt(rows[0]?.used ?? 0) > 0n && rows.every(({ leased }) => leased === '0'));
    await tenant.assertBooksAgree();
  });

  test('a use above the lease is booked whole, and the check of the books names it', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(1_000n));
    const [limitId] = await tenant.limitIds();
    const epoch = await tenant.newEpoch();
    const { grantId } = await tenant.take(epoch, limitId, 100n);
    await tenant.post(
      epoch,
      terminalRecord(admittedRecord(tenant.owner, { budgets: [grantId] }), { budgetUse: '1001', charge: '1' }),
    );
    assert.deepEqual(await readPool(grantId), { used: 1_001n, leased: 0n });
    assert.deepEqual(
      (await findBrokenInvariants(postgres)).map(({ invariant }) => invariant),
      ['a limit is not overspent'],
    );
    assert.equal((await tenant.take(epoch, limitId, 1n)).granted, 0n);
    await postgres.query('UPDATE limit_pools SET highest_limit = 1001 WHERE id = $1', [grantId]);
    await tenant.assertBooksAgree();
  });
});

/** A caller that was granted nothing has no lease to return to. */
function ignoreNothingHeld(error: Error): void {
  if (!/holds nothing/.test(error.message)) throw error;
}

describe('the period of a budget', () => {
  const NOON = Date.UTC(2026, 10, 20, 12, 0, 0); // a Friday
  const ENDS = {
    hour: Date.UTC(2026, 10, 20, 13),
    day: Date.UTC(2026, 10, 21),
    week: Date.UTC(2026, 10, 23),
    month: Date.UTC(2026, 11, 1),
  } as const;

  test('is the calendar hour, day, ISO week or month in UTC, whatever the session says', async () => {
    const elsewhere = createPostgres({ url, log: silentLog, max: 1 });
    await elsewhere.query(`SET TIME ZONE 'Pacific/Apia'`);
    for (const window of ['hour', 'day', 'week', 'month'] as const) {
      const tenant = await LimitedOrganization.create(postgres, budget(100n, window));
      const [limitId] = await tenant.limitIds();
      const epoch = await tenant.newEpoch();
      for (const client of [postgres, elsewhere]) {
        const request = { epoch, limitId, amount: 1n, minimum: 1n, present: null };
        assert.equal((await takeLimitLease(client, { ...request, atMs: NOON })).validForMs, ENDS[window] - NOON);
        assert.equal((await takeLimitLease(client, { ...request, atMs: ENDS[window] - 1 })).validForMs, 1);
        assert.equal(
          (await takeLimitLease(client, { ...request, atMs: ENDS[window] })).available,
          client === postgres ? 99n : 98n,
        );
      }
      await tenant.assertBooksAgree();
    }
    await elsewhere.close();
  });

  test('when it ends a new pool begins; what ends late is posted to the pool that it was held from', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(100n));
    const [limitId] = await tenant.limitIds();
    const epoch = await tenant.newEpoch();
    const friday = await tenant.take(epoch, limitId, 100n, { atMs: ENDS.day - 1 });
    const saturday = await tenant.take(epoch, limitId, 100n, {
      atMs: ENDS.day,
      present: { grantId: friday.grantId, available: 40n },
    });
    assert.deepEqual([saturday.granted, saturday.presentMoved], [100n, false]);
    assert.notEqual(saturday.grantId, friday.grantId);
    await returnLimitLease(postgres, { epoch, limitId, grantId: friday.grantId, amount: 40n });
    await tenant.post(
      epoch,
      terminalRecord(admittedRecord(tenant.owner, { budgets: [friday.grantId] }), { budgetUse: '60', charge: '60' }),
    );
    assert.deepEqual(await readPool(friday.grantId), { used: 60n, leased: 0n });
    assert.deepEqual(await readPool(saturday.grantId), { used: 0n, leased: 100n });
    await tenant.assertBooksAgree();
  });

  test('what is long past, or of a limit that is gone, is forgotten once nothing of it is leased', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(100n), { kind: 'concurrent_requests', limit: 5n });
    const [byDay, open = ''] = await tenant.limitIds();
    const epoch = await tenant.newEpoch();
    const past = new Date(ENDS.day + 10 * 86_400_000);
    const { grantId } = await tenant.take(epoch, byDay, 100n, { atMs: NOON });
    await tenant.take(epoch, open, 1n);
    const forget = async (): Promise<unknown> => {
      await forgetLimitPools(postgres, past);
      return [(await readPool(grantId)).leased, (await readPool(open)).leased];
    };
    assert.deepEqual(await forget(), [100n, 1n]);
    await returnLimitLease(postgres, { epoch, limitId: byDay, grantId, amount: 100n });
    await returnLimitLease(postgres, { epoch, limitId: open, grantId: open, amount: 1n });
    assert.deepEqual(await forget(), [-1n, 0n]);
    await tenant.setLimits(tenant.scope);
    assert.deepEqual(await forget(), [-1n, -1n]);
    await tenant.assertBooksAgree();
  });
});

describe('open requests', () => {
  test('are never more than the limit; what is given back, or of a dead process, is free again', async () => {
    const tenant = await LimitedOrganization.create(postgres, { kind: 'concurrent_requests', limit: 50n });
    const [limitId] = await tenant.limitIds();
    const epochs = await Promise.all([1, 2, 3].map(() => tenant.newEpoch()));
    const [first = 0, second = 0] = epochs;
    const answers = await Promise.all(epochs.map((epoch) => callInTurn(30, () => tenant.take(epoch, limitId, 1n))));
    assert.equal(answers.flat().filter(({ granted }) => granted === 1n).length, 50);
    const full = await tenant.take(first, limitId, 1n);
    assert.deepEqual([full.grantId, full.validForMs, full.retryAfterMs, full.ceiling], [limitId, null, null, 50n]);
    await returnLimitLease(postgres, { epoch: first, limitId, grantId: limitId, amount: 1n });
    assert.equal((await tenant.take(second, limitId, 1n)).granted, 1n);
    const { rows } = await postgres.query<{ outstanding: string }>(
      'SELECT outstanding FROM limit_leases WHERE epoch = $1',
      [first],
    );
    await postgres.transaction((client) => closeDeadEpoch(client, first));
    assert.equal(
      (await tenant.take(second, limitId, 50n, { minimum: 1n })).granted,
      BigInt(rows[0]?.outstanding ?? -1),
    );
    await tenant.assertBooksAgree();
  });
});
