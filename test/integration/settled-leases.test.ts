// Lease calls whose answers are lost, on a real Postgres: each is settled while it may still be on its way, on another
// connection, and afterwards the database has leased to each process exactly what that process knows of.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { SettledCall } from '../../src/domain/quotas/lease.ts';
import { registerEpoch, returnLease, settleLease, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import { returnLimitLease, settleLimitLease, takeLimitLease } from '../../src/storage/postgres/limits/limit-leases.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { howMany } from '../support/at-length.ts';
import { fundOrganization } from '../support/executions.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { pause } from '../support/waiting.ts';

const STEPS = howMany({ short: 100, long: 1_000 });
const PROCESSES = 3;
const LOST_SHARE = 0.4;
/** A call that is lost leaves so late at most, and so late at most it is settled. */
const LATE_MS_MAX = 5;
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
  settle(call: number): Promise<SettledCall>;
}

function callsOfWallet(epoch: number, walletId: string): Calls {
  const { postgres } = database;
  return {
    take: async (amount, call) => {
      const { granted } = await takeLease(postgres, { epoch, walletId, amount, minimum: 1n, call });
      return { granted, grantId: walletId };
    },
    giveBack: (_, amount, call) => returnLease(postgres, { epoch, walletId, amount, call }),
    settle: (call) => settleLease(postgres, { epoch, walletId, call }),
  };
}

function callsOfLimit(epoch: number, limitId: string): Calls {
  const { postgres } = database;
  return {
    take: (amount, call) => takeLimitLease(postgres, { epoch, limitId, amount, minimum: 1n, present: null, call }),
    giveBack: (grantId, amount, call) => returnLimitLease(postgres, { epoch, limitId, grantId, amount, call }),
    settle: (call) => settleLimitLease(postgres, { epoch, limitId, call }),
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
      const { granted, grantId: id } =
        taken === null ? await settle(calls, call) : taken === 'busy' ? { granted: 0n, grantId: '' } : taken;
      if (granted > 0n) holdings.add(id, granted);
    } else {
      const rest = BigInt(random.whole(1, Number(amount)));
      const returned = await send(() => calls.giveBack(grantId, rest, call));
      const isDone = returned === null ? (await settle(calls, call)).isDone : returned !== 'busy';
      if (isDone) holdings.add(grantId, -rest);
    }
  }
  return holdings;
}

/** Asked again it says the same. */
async function settle(calls: Calls, call: number): Promise<SettledCall> {
  const ask = async (): Promise<SettledCall> => {
    for (;;) {
      const settled = await calls.settle(call).catch(busyOrThrow);
      if (settled !== 'busy') return settled;
    }
  };
  const settled = await ask();
  assert.deepEqual(await ask(), settled);
  return settled;
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
  const [budget, places] = [await limitOf('budget', 'month'), await limitOf('concurrent_requests', null)];
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
    `SELECT leased, (SELECT sum(outstanding) FROM leases WHERE wallet_id = wallets.id) AS held FROM wallets
      WHERE id = $1
     UNION ALL SELECT leased, (SELECT sum(outstanding) FROM limit_leases WHERE pool_id = limit_pools.id)
      FROM limit_pools WHERE limit_id = ANY ($2)`,
    [walletId, [budget, places]],
  );
  assert.equal(rows.length, 3);
  for (const { leased, held } of rows) assert.equal(leased, held);
});
