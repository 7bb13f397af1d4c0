// Lease calls whose answers are lost, on a real Postgres: each is recovered while it may still be on its way, on
// another connection and perhaps in another period, and afterwards the database has leased to each process exactly what
// that process knows of.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { RecoveredCall } from '../../src/domain/quotas/lease.ts';
import { recoverLease, registerEpoch, returnLease, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import { recoverLimitLease, returnLimitLease, takeLimitLease } from '../../src/storage/postgres/limits/limit-leases.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { howMany } from '../support/at-length.ts';
import { fundOrganization } from '../support/executions.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { pause } from '../support/waiting.ts';

const STEPS = howMany({ short: 100, long: 1_000 });
const PROCESSES = 3;
const LOST_SHARE = 0.4;
/** A lost call is sent, and asked about, at most this much later. */
const LATE_MS_MAX = 5;
/** An hour of the budget, so that many calls are recovered in another one than that in which they are carried out. */
const BUDGET_HOUR_MS = 10;
const STARTED_AT_MS = performance.now();
/** Given up because of a lock, or to end a deadlock: not done. */
const BUSY = new Set(['55P03', '40P01']);

let database: TestDatabase;

before(async () => {
  database = await openTestDatabase();
});

after(async () => {
  await database?.close();
});

/** The calls of one process about one wallet or limit. */
interface Calls {
  take(amount: bigint, call: number): Promise<{ readonly granted: bigint; readonly grantId: string }>;
  giveBack(grantId: string, amount: bigint, call: number): Promise<void>;
  recover(call: number): Promise<RecoveredCall>;
}

function callsOfWallet(epoch: number, walletId: string): Calls {
  const { postgres } = database;
  return {
    take: async (amount, call) => {
      const { granted } = await takeLease(postgres, { epoch, walletId, amount, minimum: 1n, call });
      return { granted, grantId: walletId };
    },
    giveBack: (_, amount, call) => returnLease(postgres, { epoch, walletId, amount, call }),
    recover: (call) => recoverLease(postgres, { epoch, walletId, call }),
  };
}

function callsOfLimit(epoch: number, limitId: string): Calls {
  const { postgres } = database;
  const atMs = (): number => Math.floor((performance.now() - STARTED_AT_MS) / BUDGET_HOUR_MS) * 3_600_000;
  return {
    take: (amount, call) =>
      takeLimitLease(postgres, { epoch, limitId, amount, minimum: 1n, present: null, call, atMs: atMs() }),
    giveBack: (grantId, amount, call) => returnLimitLease(postgres, { epoch, limitId, grantId, amount, call }),
    recover: (call) => recoverLimitLease(postgres, { epoch, limitId, call, atMs: atMs() }),
  };
}

/** What a process has, by grant. */
class Holdings extends Map<string, bigint> {
  add(grantId: string, amount: bigint): void {
    this.set(grantId, (this.get(grantId) ?? 0n) + amount);
  }
}

/** Takes and returns at random; `late`: calls that may still be on their way when it ends. */
async function live(calls: Calls, random: SeededRandom, late: Promise<unknown>[]): Promise<Holdings> {
  const holdings = new Holdings();
  /** null: its answer was lost. */
  const send = async <T>(act: () => Promise<T>): Promise<T | 'busy' | null> => {
    if (!random.chance(LOST_SHARE)) return act().catch(busyOrThrow);
    late.push(pause(random.between(0, LATE_MS_MAX)).then(act).catch(busyOrThrow));
    await pause(random.between(0, LATE_MS_MAX));
    return null;
  };
  for (let call = 1; call <= STEPS; call += 1) {
    const [grantId, amount] = random.pick([...holdings].filter(([, has]) => has > 0n)) ?? [];
    if (grantId === undefined || amount === undefined || random.chance(0.5)) {
      const taken = await send(() => calls.take(BigInt(random.whole(1, 5_000)), call));
      if (taken === 'busy') continue;
      const lent = taken ?? (await recover(calls, call));
      if ('granted' in lent && lent.granted > 0n) holdings.add(lent.grantId, lent.granted);
    } else {
      const rest = BigInt(random.whole(1, Number(amount)));
      const returned = await send(() => calls.giveBack(grantId, rest, call));
      const isDone = returned === null ? (await recover(calls, call)).isDone : returned !== 'busy';
      if (isDone) holdings.add(grantId, -rest);
    }
  }
  return holdings;
}

/** Asks twice: the second answer must be the same. */
async function recover(calls: Calls, call: number): Promise<RecoveredCall> {
  const ask = async (): Promise<RecoveredCall> => {
    for (;;) {
      const recovered = await calls.recover(call).catch(busyOrThrow);
      if (recovered !== 'busy') return recovered;
    }
  };
  const recovered = await ask();
  assert.deepEqual(await ask(), recovered);
  return recovered;
}

function busyOrThrow(fault: unknown): 'busy' {
  const { code } = fault as { code?: string };
  if (code !== undefined && BUSY.has(code)) return 'busy';
  throw fault;
}

test('what a process knows of is what is leased to it, whichever answers were lost', async () => {
  const { postgres } = database;
  const { organizationId, walletId } = await fundOrganization(postgres, 40_000n);
  const limitOf = async (kind: string, window: string | null): Promise<string> => {
    const id = randomUUID();
    await postgres.query(
      'INSERT INTO usage_limits (id, organization_id, kind, time_window, amount) VALUES ($1, $2, $3, $4, 30000)',
      [id, organizationId, kind, window],
    );
    return id;
  };
  const [budget, places] = [await limitOf('budget', 'hour'), await limitOf('concurrent_requests', null)];
  const late: Promise<unknown>[] = [];
  const lives = [walletId, budget, places].flatMap((id, kind) =>
    Array.from({ length: PROCESSES }, async (_, index) => {
      const epoch = await registerEpoch(postgres, { machine: 'test', kind: 'gateway', pid: 1 });
      const calls = id === walletId ? callsOfWallet(epoch, id) : callsOfLimit(epoch, id);
      return { epoch, holdings: await live(calls, new SeededRandom(kind * PROCESSES + index), late) };
    }),
  );
  const ended = await Promise.all(lives);
  await Promise.all(late);
  for (const { epoch, holdings } of ended) {
    const { rows } = await postgres.query<{ id: string; outstanding: string }>(
      `SELECT wallet_id AS id, outstanding FROM leases WHERE epoch = $1
        UNION ALL SELECT pool_id, outstanding FROM limit_leases WHERE epoch = $1`,
      [epoch],
    );
    assert.ok(rows.length > 0);
    assert.deepEqual(
      rows.map(({ id, outstanding }) => [id, BigInt(outstanding)]),
      rows.map(({ id }) => [id, holdings.get(id) ?? 0n]),
    );
  }
  const { rows } = await postgres.query<{ leased: string; held: string }>(
    `SELECT leased, (SELECT coalesce(sum(outstanding), 0) FROM leases WHERE wallet_id = wallets.id) AS held FROM wallets
      WHERE id = $1
     UNION ALL SELECT leased, (SELECT coalesce(sum(outstanding), 0) FROM limit_leases WHERE pool_id = limit_pools.id)
      FROM limit_pools WHERE limit_id = ANY ($2)`,
    [walletId, [budget, places]],
  );
  assert.ok(rows.length > 3, 'the budget had several periods');
  for (const { leased, held } of rows) assert.equal(leased, held);
});
