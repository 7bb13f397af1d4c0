// Requests and tokens per minute, leased from a real Postgres: in no 60 seconds is more used than the limit, and under
// load nearly all of it is.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { LeaseAnswer } from '../../src/domain/quotas/lease.ts';
import { closeDeadEpoch } from '../../src/storage/postgres/ledger/epochs.ts';
import { registerEpoch } from '../../src/storage/postgres/ledger/wallets.ts';
import { returnLimitLease, takeLimitLease } from '../../src/storage/postgres/limits/limit-leases.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { howMany } from '../support/at-length.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { fundOrganization } from '../support/executions.ts';
import { callInTurn } from '../support/lease-callers.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { mostInAMinute, RateTaker } from '../support/rate-takers.ts';

let database: TestDatabase;
let postgres: Postgres;
let organizationId: string;
before(async () => {
  database = await openTestDatabase();
  ({ postgres } = database);
  ({ organizationId } = await fundOrganization(postgres, 0n));
});
after(() => database?.close());

const ROUNDS = howMany({ short: 3, long: 6 });
const START_MS = 1_790_000_000_250;
const newEpoch = (): Promise<number> => registerEpoch(postgres, { machine: 'm', pid: 1, kind: 'gateway' });

async function makeLimit(amount: number, kind = 'tokens_per_minute'): Promise<string> {
  await postgres.query('DELETE FROM usage_limits WHERE organization_id = $1 AND kind = $2', [organizationId, kind]);
  const { rows } = await postgres.query<{ id: string }>(
    'INSERT INTO usage_limits (organization_id, kind, amount) VALUES ($1, $2, $3) RETURNING id',
    [organizationId, kind, amount],
  );
  return rows[0]?.id ?? '';
}

interface Load {
  readonly limit: number;
  readonly seconds: number;
  /** Requests per second of each taker. */
  readonly perSecond: readonly number[];
  readonly need: () => number;
  /** Of what a request held, the part that it turns out not to have used. */
  readonly unused: (need: number) => number;
  readonly random: () => number;
  /** Now and then a process dies with what it has. */
  readonly deaths: boolean;
}

/** Runs the load and returns how much was used. */
async function runLoad(load: Load): Promise<{ used: bigint; most: bigint }> {
  const { random } = load;
  const limitId = await makeLimit(load.limit);
  const chunk = BigInt(Math.ceil(load.limit / 60));
  const takers: RateTaker[] = [];
  for (const _ of load.perSecond) takers.push(new RateTaker(postgres, { limitId, epoch: await newEpoch(), chunk }));
  const revoke = async (): Promise<void> => {
    for (const taker of takers) await taker.giveBackFree();
  };
  const total = load.perSecond.reduce((sum, rate) => sum + rate, 0);
  for (
    let nowMs = START_MS;
    nowMs < START_MS + load.seconds * 1000;
    nowMs += (-Math.log(1 - random()) / total) * 1000
  ) {
    let pick = random() * total;
    const index = load.perSecond.findIndex((rate) => (pick -= rate) < 0);
    const taker = takers[Math.max(index, 0)];
    if (taker === undefined) continue;
    const need = load.need();
    await taker.request(BigInt(need), nowMs, random() * 20, revoke);
    const unused = load.unused(need);
    if (unused > 0) await taker.settle(BigInt(unused), nowMs);
    if (load.deaths && random() < 0.002) taker.replace(await newEpoch());
  }
  const used = takers.flatMap(({ uses }) => uses).reduce((sum, { amount }) => sum + amount, 0n);
  return { used, most: mostInAMinute(takers) };
}

describe('a sliding minute', () => {
  test('is never above the limit, whatever the takers do, and however they die', async (context) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const seed = randomInt(2 ** 31);
      context.diagnostic(`seed ${seed}`);
      const random = seededRandom(seed);
      const limit = 20 + Math.floor(random() * 2_000);
      const needMax = 1 + Math.floor(random() * Math.min(limit, 80));
      // From half of the limit to five times as much, one taker with most of it; rarely a pause.
      const wanted = (limit / needMax / 30) * (0.5 + 4.5 * random());
      const { most, used } = await runLoad({
        limit,
        seconds: 240,
        perSecond: [0.7, 0.2, 0.08, 0.02].map((part) => Math.min(part * wanted, 40)),
        need: () => 1 + Math.floor(random() * needMax),
        unused: (need) => (random() < 0.5 ? Math.floor(random() * need) : 0),
        random,
        deaths: true,
      });
      assert.ok(most <= BigInt(limit), `seed ${seed}: ${most} of ${limit} in a minute`);
      assert.ok(used > 0n, `seed ${seed}: nothing was used`);
    }
  });

  test('under skewed load of twice the limit four takers use at least 95% of it', async (context) => {
    const seed = randomInt(2 ** 31);
    context.diagnostic(`seed ${seed}`);
    const random = seededRandom(seed);
    const minutes = howMany({ short: 6, long: 15 });
    const { used, most } = await runLoad({
      limit: 300,
      seconds: minutes * 60,
      perSecond: [8.5, 1, 0.4, 0.1],
      need: () => 1,
      unused: () => 0,
      random,
      deaths: false,
    });
    context.diagnostic(`${used} used of ${minutes * 300}, ${most} at most in a minute`);
    assert.ok(most <= 300n, `seed ${seed}: ${most} in a minute`);
    assert.ok(used * 100n >= BigInt(minutes * 300 * 95), `seed ${seed}: ${used} of ${minutes * 300}`);
  });

  test('by the clock of the database: callers at once get all of the limit and no more', async () => {
    const limitId = await makeLimit(1_000, 'requests_per_minute');
    const epochs = await Promise.all([1, 2, 3, 4].map(newEpoch));
    const beganMs = performance.now();
    const answersOf = await Promise.all(
      epochs.map((epoch) =>
        callInTurn(30, () => takeLimitLease(postgres, { epoch, limitId, amount: 17n, minimum: 1n, present: null })),
      ),
    );
    const tookMs = performance.now() - beganMs;
    const answers = answersOf.flat();
    assert.equal(
      answers.reduce((sum, { granted }) => sum + granted, 0n),
      1_000n,
    );
    for (const { granted, validForMs, grantId } of answers.filter((answer) => answer.granted > 0n)) {
      assert.ok(granted <= 17n && validForMs !== null && validForMs > 0 && validForMs <= 16_000);
      assert.match(grantId, new RegExp(`^${limitId}@\\d+$`));
    }
    const refused = answers.find((answer) => answer.granted === 0n);
    assert.ok(
      refused !== undefined &&
        refused.retryAfterMs !== null &&
        // What was granted first has been counted for as long as all of this took.
        refused.retryAfterMs > 59_000 - tookMs &&
        refused.retryAfterMs <= 76_000,
    );
  });
});

describe('grants', () => {
  const atMs = START_MS;
  let limitId: string;
  let epoch: number;
  let other: number;
  const take = (amount: bigint, more: Partial<Parameters<typeof takeLimitLease>[1]> = {}): Promise<LeaseAnswer> =>
    takeLimitLease(postgres, { epoch, limitId, amount, minimum: amount, present: null, atMs, ...more });

  const begin = async (): Promise<void> => {
    limitId = await makeLimit(100);
    epoch = await newEpoch();
    other = await newEpoch();
  };

  test('far from the limit a grant lasts long, near it no longer than the next second', async () => {
    await begin();
    const first = await take(1n);
    assert.deepEqual(
      [first.granted, first.available, first.leasedElsewhere, first.ceiling, first.gone],
      [1n, 99n, 0n, 100n, false],
    );
    assert.ok((first.validForMs ?? 0) > 13_000 && (first.validForMs ?? 0) <= 16_000);
    const last = await take(60n);
    assert.equal(last.validForMs, 1_750);
    const elsewhere = await take(50n, { epoch: other });
    assert.deepEqual([elsewhere.granted, elsewhere.available, elsewhere.leasedElsewhere], [0n, 39n, 61n]);
    // 1 counts for 75 seconds, 60 for 61 and a bit: with those gone 50 can be had.
    assert.equal(elsewhere.retryAfterMs, 61_750);
    assert.equal((await take(50n, { epoch: other, atMs: atMs + 61_749 })).granted, 0n);
    assert.equal((await take(50n, { epoch: other, atMs: atMs + 61_750 })).granted, 50n);
  });

  test('more than the limit can never be had, and nobody is told when', async () => {
    await begin();
    const answer = await take(101n);
    assert.deepEqual([answer.granted, answer.ceiling, answer.retryAfterMs], [0n, 100n, null]);
  });

  test('what is free of the present grant moves to the next label, and is not counted twice', async () => {
    await begin();
    const first = await take(40n);
    const next = await take(10n, { atMs: atMs + 3_000, present: { grantId: first.grantId, available: 30n } });
    assert.deepEqual([next.granted, next.presentMoved, next.available], [10n, true, 50n]);
    assert.notEqual(next.grantId, first.grantId);
    // The 10 used under the first label age first, the 40 under the second later.
    const labelOf = ({ grantId }: LeaseAnswer): number => Number(grantId.split('@')[1]);
    assert.equal(
      (await take(0n, { minimum: 0n, atMs: (labelOf(first) + 61) * 1000 })).available,
      labelOf(first) < labelOf(next) ? 60n : 100n,
    );
    assert.equal((await take(0n, { minimum: 0n, atMs: (labelOf(next) + 61) * 1000 })).available, 100n);
  });

  test('what is given back can be had again at once; what no longer counts is forgotten', async () => {
    await begin();
    const first = await take(100n);
    assert.equal((await take(1n, { epoch: other })).leasedElsewhere, 100n);
    await returnLimitLease(postgres, { epoch, limitId, grantId: first.grantId, amount: 70n });
    const second = await take(70n, { epoch: other });
    assert.deepEqual([second.granted, second.leasedElsewhere], [70n, 30n]);
    assert.equal((await take(100n, { atMs: atMs + 90_000 })).granted, 100n);
    await returnLimitLease(postgres, { epoch, limitId, grantId: first.grantId, amount: 30n });
    assert.equal((await take(1n, { atMs: atMs + 90_000 })).granted, 0n);
    await assert.rejects(
      returnLimitLease(postgres, { epoch, limitId, grantId: first.grantId, amount: -1n }),
      /negative/,
    );
  });

  test('a lowered limit holds at the next call, and a clock that steps back lends nothing twice', async () => {
    await begin();
    await take(60n);
    await postgres.query('UPDATE usage_limits SET amount = 50 WHERE id = $1', [limitId]);
    assert.deepEqual([(await take(1n)).granted, (await take(1n)).ceiling], [0n, 50n]);
    await postgres.query('UPDATE usage_limits SET amount = 70 WHERE id = $1', [limitId]);
    assert.equal((await take(10n, { atMs: atMs - 2_000 })).granted, 10n);
    assert.equal((await take(1n, { atMs: atMs - 5_000 })).granted, 0n);
    assert.equal((await take(1n)).granted, 0n);
  });

  test('what a dead process was granted counts on; a fenced one is refused; a limit that is gone says so', async () => {
    await begin();
    await take(100n);
    await postgres.transaction((client) => closeDeadEpoch(client, epoch));
    assert.equal((await take(1n, { epoch: other })).granted, 0n);
    await assert.rejects(take(1n, { atMs: atMs + 90_000 }), { code: 'TG001' });
    assert.equal((await take(1n, { epoch: other, atMs: atMs + 90_000 })).granted, 1n);
    await postgres.query('DELETE FROM usage_limits WHERE id = $1', [limitId]);
    const gone = await take(1n, { epoch: other });
    assert.deepEqual([gone.gone, gone.granted, gone.ceiling, gone.retryAfterMs], [true, 0n, null, null]);
  });

  test('however long it is used, a window stays as small as it began', async () => {
    await begin();
    const sizeOf = async (): Promise<unknown> =>
      (await postgres.query('SELECT cardinality(cells) AS n FROM rate_windows WHERE limit_id = $1', [limitId])).rows;
    await take(1n);
    const size = await sizeOf();
    for (let second = 0; second < 200; second += 1) await take(1n, { atMs: atMs + second * 1_000 });
    assert.deepEqual(await sizeOf(), size);
  });
});
