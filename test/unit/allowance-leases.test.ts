// Leases of wallets and limits against a simulated store: never above, never refused while it lies free elsewhere, all
// or nothing, and nothing lost.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Draw, Shortage } from '../../src/generation/admission/allowance.ts';
import type { AllowanceLeases, Wish } from '../../src/generation/admission/allowance-leases.ts';
import type { Pool } from '../../src/generation/admission/allowance-store.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { SimulatedLending } from '../support/simulated-lending.ts';

type Drawn = readonly Draw[] | Shortage;

/** What came of a request: seen as soon as it is known. */
class Request {
  result: Drawn | null = null;
  atMs = 0;
  /** `end` comes so long after it was drawn. */
  constructor(
    lending: SimulatedLending,
    leases: AllowanceLeases,
    wishes: readonly Wish[],
    endAfterMs = 0,
    end?: (draws: readonly Draw[]) => void,
  ) {
    const drawn = leases.drawAll(wishes);
    const note = (result: Drawn): void => {
      this.result = result;
      this.atMs = lending.time.nowMs;
      if (end !== undefined && !('reason' in result)) lending.time.at(this.atMs + endAfterMs, () => end(result));
    };
    if (drawn instanceof Promise) void drawn.then(note);
    else note(drawn);
  }
  get draws(): readonly Draw[] {
    assert.ok(
      this.result !== null && !('reason' in this.result),
      `not drawn: ${JSON.stringify(this.result, (_, value) => String(value))}`,
    );
    return this.result;
  }
  get reason(): string | null {
    return this.result === null ? 'waits' : 'reason' in this.result ? this.result.reason : null;
  }
}

const wish = (pool: Pool, amount = 1n): Wish => ({ pool, amount });

describe('leases', () => {
  test('the second request draws from memory, at once', async () => {
    const lending = new SimulatedLending();
    const wallet = lending.pool('credit', 'w', 1_000_000n);
    const process = lending.process();
    const first = new Request(lending, process, [wish(wallet, 10n)]);
    assert.equal(first.reason, 'waits');
    await lending.time.run(100);
    assert.equal(first.draws.length, 1);
    assert.equal(new Request(lending, process, [wish(wallet, 10n)]).reason, null);
  });

  test('once it is known what a wallet has, enough for many requests is borrowed ahead, before the first little is used up', async () => {
    const lending = new SimulatedLending();
    const wallet = lending.pool('credit', 'w', 1_000_000_000n);
    const process = lending.process();
    const requests = [new Request(lending, process, [wish(wallet, 1_000n)])];
    await lending.time.run(100);
    requests.push(new Request(lending, process, [wish(wallet, 1_000n)]));
    await lending.time.run(200);
    lending.away = 'refused';
    for (let count = 0; count < 500; count += 1) requests.push(new Request(lending, process, [wish(wallet, 1_000n)]));
    for (const request of requests) assert.equal(request.draws.length, 1);
  });

  test('500 parallel requests over 4 processes on a wallet that affords exactly 7: exactly 7', async () => {
    const lending = new SimulatedLending(7);
    const wallet = lending.pool('credit', 'w', 7n * 100n + 99n);
    const processes = [lending.process(), lending.process(), lending.process(), lending.process()];
    const requests = Array.from(
      { length: 500 },
      (_, index) => new Request(lending, processes[index % 4] as AllowanceLeases, [wish(wallet, 100n)]),
    );
    await lending.time.run(5_000);
    assert.equal(requests.filter(({ reason }) => reason === null).length, 7);
    assert.equal(requests.filter(({ reason }) => reason === 'short').length, 493);
    assert.ok(lending.calls.take < 100, `one answer speaks for all that wait: ${lending.calls.take}`);
  });

  test('who waits for a wallet that somebody has locked is served when it is free, and nobody else waits or is refused', async () => {
    const lending = new SimulatedLending(5);
    const locked = lending.pool('credit', 'locked', 1_000_000n);
    const other = lending.pool('credit', 'other', 1_000_000n);
    const limit = lending.pool('requests_per_minute', 'limit', 1_000n);
    const process = lending.process();
    lending.locked.add('locked');
    const waiting = Array.from({ length: 10 }, () => new Request(lending, process, [wish(limit), wish(locked, 10n)]));
    await lending.time.run(1_000);
    const neighbours = Array.from(
      { length: 10 },
      (_, index) => new Request(lending, process, [wish(limit), wish(other, BigInt(10 + index))]),
    );
    await lending.time.run(2_500);
    for (const request of neighbours) assert.equal(request.draws.length, 2);
    for (const request of waiting) assert.equal(request.reason, 'waits');
    assert.equal(lending.calls.probe, 0);
    lending.locked.delete('locked');
    await lending.time.run(3_500);
    for (const request of waiting) assert.equal(request.draws.length, 2);
  });

  test('who waits for a lock that never goes is refused in the end, and what is owed there goes back when it does', async () => {
    const lending = new SimulatedLending(6);
    const wallet = lending.pool('credit', 'w', 1_000n);
    const process = lending.process();
    const first = new Request(lending, process, [wish(wallet, 10n)]);
    await lending.time.run(100);
    lending.locked.add('w');
    for (const draw of first.draws) process.release(draw, 0n);
    process.callBack('w');
    const late = new Request(lending, process, [wish(wallet, 900n)]);
    await lending.time.run(10_000);
    assert.equal(late.reason, 'unavailable');
    assert.ok(lending.leased('w') > 0n);
    lending.locked.delete('w');
    process.tick();
    await lending.time.run(11_000);
    assert.equal(lending.leased('w'), 0n);
  });

  test('a lease follows its use: with its wallet locked for three seconds under load, nobody waits', async () => {
    const lending = new SimulatedLending(8);
    const wallet = lending.pool('credit', 'w', 1_000_000_000n);
    const process = lending.process();
    let waited = 0;
    const load = async (seconds: number): Promise<void> => {
      for (let count = 0; count < seconds * 500; count += 1) {
        const request = new Request(lending, process, [wish(wallet, 100n)]);
        if (request.reason === 'waits') waited += 1;
        else lending.time.at(lending.time.nowMs + 20, () => process.release(request.draws[0] as Draw, 100n));
        await lending.time.run(lending.time.nowMs + 2);
      }
    };
    await load(4);
    waited = 0;
    // Wherever in the life of a lease it happens.
    for (let round = 0; round < 4; round += 1) {
      lending.locked.add('w');
      await load(3);
      lending.locked.delete('w');
      await load(1.3 + round);
    }
    assert.equal(waited, 0);
  });

  test('what the store refuses of one wallet says nothing against the store', async () => {
    const lending = new SimulatedLending(7);
    const [broken, sound] = [lending.pool('credit', 'broken', 100n), lending.pool('credit', 'sound', 100n)];
    const process = lending.process();
    lending.refused.add('broken');
    const refused = new Request(lending, process, [wish(broken)]);
    const served = new Request(lending, process, [wish(sound)]);
    await lending.time.run(100);
    assert.equal(refused.reason, 'unavailable');
    assert.equal(served.draws.length, 1);
    assert.equal(lending.calls.probe, 0);
  });

  test('what another process has free is not refused: money, and places for open requests', async () => {
    for (const kind of ['credit', 'concurrent_requests'] as const) {
      const lending = new SimulatedLending(3);
      const pool = lending.pool(kind, 'p', 100n);
      const [first, second] = [lending.process(), lending.process()];
      const earlier = Array.from({ length: 100 }, () => new Request(lending, first, [wish(pool)]));
      await lending.time.run(1_000);
      for (const { draws } of earlier) first.release(draws[0] as Draw, 0n);
      assert.equal(lending.leased('p'), 100n);
      const request = new Request(lending, second, [wish(pool, 100n)]);
      await lending.time.run(2_000);
      assert.equal(request.reason, null, kind);
    }
  });

  test('two processes that each have half of what both need do not block each other', async () => {
    const lending = new SimulatedLending(5);
    const wallet = lending.pool('credit', 'w', 100n);
    const [first, second] = [lending.process(), lending.process()];
    const halves = [
      new Request(lending, first, [wish(wallet, 60n)]),
      new Request(lending, second, [wish(wallet, 40n)]),
    ];
    await lending.time.run(1_000);
    first.release(halves[0]?.draws[0] as Draw, 0n);
    second.release(halves[1]?.draws[0] as Draw, 0n);
    const requests = [
      new Request(lending, first, [wish(wallet, 100n)]),
      new Request(lending, second, [wish(wallet, 100n)]),
    ];
    await lending.time.run(5_000);
    assert.deepEqual(new Set(requests.map(({ reason }) => reason)), new Set([null, 'short']));
  });

  test('all or nothing: what a refused request met on its way is as free as before', async () => {
    const lending = new SimulatedLending();
    const places = lending.pool('concurrent_requests', 'places', 5n);
    const rate = lending.pool('requests_per_minute', 'rate', 5n);
    const wallet = lending.pool('credit', 'w', 10n);
    const process = lending.process();
    const refused = new Request(lending, process, [wish(places), wish(rate), wish(wallet, 11n)]);
    await lending.time.run(2_000);
    assert.deepEqual([refused.reason, (refused.result as Shortage).pool.key], ['short', 'w']);
    assert.deepEqual(process.totals('concurrent_requests').held, 0n);
    const rest = Array.from(
      { length: 5 },
      () => new Request(lending, process, [wish(places), wish(rate), wish(wallet, 2n)]),
    );
    await lending.time.run(4_000);
    for (const request of rest) assert.equal(request.draws.length, 3);
  });

  test('a request that waits for one thing holds nothing of another', async () => {
    const lending = new SimulatedLending();
    const places = lending.pool('concurrent_requests', 'places', 1n);
    const wallet = lending.pool('credit', 'w', 1_000n);
    const process = lending.process();
    const warm = new Request(lending, process, [wish(places)]);
    await lending.time.run(1_000);
    process.release(warm.draws[0] as Draw, 0n);
    const waiting = new Request(lending, process, [wish(places), wish(wallet, 10n)]);
    assert.equal(waiting.reason, 'waits');
    const other = new Request(lending, process, [wish(places)]);
    assert.equal(other.reason, null, 'the place is free while the first asks for its money');
    process.release(other.draws[0] as Draw, 0n);
    await lending.time.run(2_000);
    assert.equal(waiting.reason, null);
  });

  test('a frozen wallet says so, also where its money was warm, and what was borrowed is back', async () => {
    const lending = new SimulatedLending();
    const wallet = lending.pool('credit', 'w', 1_000n);
    const process = lending.process();
    const first = new Request(lending, process, [wish(wallet, 10n)]);
    await lending.time.run(500);
    lending.change('w', { frozen: true });
    const second = new Request(lending, process, [wish(wallet, 10n)]);
    await lending.time.run(1_000);
    assert.equal(second.reason, 'frozen');
    process.release(first.draws[0] as Draw, 4n);
    await lending.time.run(1_500);
    assert.equal(lending.leased('w'), 4n, 'the rest of a hold goes back as well');
    lending.change('w', { frozen: false });
    const third = new Request(lending, process, [wish(wallet, 10n)]);
    await lending.time.run(2_500);
    assert.equal(third.reason, null);
  });

  test('a limit that is gone holds nobody back; a need of nothing is always there', async () => {
    const lending = new SimulatedLending();
    const rate = lending.pool('requests_per_minute', 'rate', 0n);
    const wallet = lending.pool('credit', 'w', 0n);
    const process = lending.process();
    lending.change('rate', { gone: true });
    const request = new Request(lending, process, [wish(rate), wish(wallet, 0n)]);
    await lending.time.run(1_000);
    assert.equal(request.draws.length, 2);
    process.release(request.draws[0] as Draw, 0n);
  });

  test('idle leases go back, and what is empty is forgotten', async () => {
    const lending = new SimulatedLending();
    const wallet = lending.pool('credit', 'w', 1_000n);
    const process = lending.process();
    const request = new Request(lending, process, [wish(wallet, 10n)]);
    await lending.time.run(100);
    process.release(request.draws[0] as Draw, 7n);
    await lending.time.run(20_000);
    process.tick();
    await lending.time.run(20_100);
    assert.equal(lending.leased('w'), 7n);
    process.tick();
    assert.deepEqual(process.totals('credit'), { free: 0n, held: 0n });
  });

  test('borrowings shrink as a pool empties', async () => {
    const lending = new SimulatedLending();
    const wallet = lending.pool('credit', 'w', 10_000n);
    const process = lending.process();
    for (let index = 0; index < 900; index += 1) {
      const request = new Request(lending, process, [wish(wallet, 10n)]);
      await lending.time.run(lending.time.nowMs + 20);
      process.release(request.draws[0] as Draw, 10n);
    }
    const left = 10_000n - lending.leased('w');
    assert.ok(left > 500n, `most of what is left stays in the wallet: ${left}`);
  });
});

describe('open requests', () => {
  test('under saturation by unequal processes: never above, and at least 95% of the places taken', async () => {
    const lending = new SimulatedLending(3);
    const places = lending.pool('concurrent_requests', 'places', 20n);
    const processes = [lending.process(), lending.process(), lending.process(), lending.process()];
    let [open, highest, sinceMs, area] = [0, 0, 0, 0];
    const change = (by: number): void => {
      area += open * (lending.time.nowMs - sinceMs);
      sinceMs = lending.time.nowMs;
      open += by;
      highest = Math.max(highest, open);
    };
    const endMs = 20_000;
    const askOn = async (index: number): Promise<void> => {
      const process = processes[index % 4] as AllowanceLeases;
      while (lending.time.nowMs < endMs) {
        const drawn = await process.drawAll([wish(places)]);
        if ('reason' in drawn) await lending.time.wait(index % 3 === 0 ? 2 : 400);
        else {
          change(1);
          await lending.time.wait(100);
          change(-1);
          process.release(drawn[0] as Draw, 0n);
        }
      }
    };
    for (let index = 0; index < 60; index += 1) void askOn(index);
    for (let atMs = 0; atMs <= endMs; atMs += 1_000) {
      await lending.time.run(atMs);
      for (const process of processes) process.tick();
    }
    change(0);
    assert.equal(highest, 20);
    assert.ok(area / endMs >= 19, `${area / endMs} open on average`);
    assert.ok(lending.calls.take < 100 * (endMs / 1_000), `${lending.calls.take} borrowings`);
  });
});

describe('rates', () => {
  test('a grant is renewed well before its end: with its limit locked for two seconds under load, nobody waits', async () => {
    const lending = new SimulatedLending(9);
    const rate = lending.pool('requests_per_minute', 'r', 60_000n);
    const process = lending.process();
    let waited = 0;
    const load = async (seconds: number): Promise<void> => {
      for (let count = 0; count < seconds * 20; count += 1) {
        const request = new Request(lending, process, [wish(rate)]);
        if (request.reason === 'waits') waited += 1;
        else lending.time.at(lending.time.nowMs + 20, () => process.release(request.draws[0] as Draw, 1n));
        await lending.time.run(lending.time.nowMs + 50);
      }
    };
    await load(4);
    waited = 0;
    for (let round = 0; round < 8; round += 1) {
      lending.locked.add('r');
      await load(2);
      lending.locked.delete('r');
      await load(1.1 + round / 2);
    }
    assert.equal(waited, 0);
  });

  test('what has expired unused goes back, and is not lost for a minute', async () => {
    const lending = new SimulatedLending();
    const rate = lending.pool('tokens_per_minute', 'rate', 1_000n);
    const [first, second] = [lending.process(), lending.process()];
    const request = new Request(lending, first, [wish(rate, 1_000n)]);
    await lending.time.run(100);
    await lending.time.run(5_000);
    first.release(request.draws[0] as Draw, 100n);
    first.tick();
    await lending.time.run(5_100);
    const other = new Request(lending, second, [wish(rate, 900n)]);
    await lending.time.run(6_000);
    assert.equal(other.reason, null);
  });

  test('under saturation by unequal processes: never above in any 60 seconds, and at least 95% of the limit', async () => {
    const lending = new SimulatedLending(11);
    const rate = lending.pool('requests_per_minute', 'rate', 120n);
    const processes = [lending.process(), lending.process(), lending.process(), lending.process()];
    const random = seededRandom(12);
    const requests: Request[] = [];
    for (let atMs = 0; atMs < 190_000; atMs += 50) {
      await lending.time.run(atMs);
      // One gets most of the requests, one next to none.
      const index = Math.min(3, Math.floor(random() ** 4 * 4));
      requests.push(new Request(lending, processes[index] as AllowanceLeases, [wish(rate)]));
      if (atMs % 1_000 === 0) for (const process of processes) process.tick();
    }
    await lending.time.run(192_000);
    const admitted = requests.filter(({ reason }) => reason === null).map(({ atMs }) => atMs);
    assertWithin(admitted, 120);
    const steady = admitted.filter((atMs) => atMs >= 60_000 && atMs < 180_000).length / 2;
    assert.ok(steady >= 114, `${steady} a minute of 120`);
    assert.ok(admitted.filter((atMs) => atMs < 60_000).length >= 114, 'the first minute, too');
  });
});

/** Nowhere more than `limit` of them in 60 seconds. */
function assertWithin(timesMs: readonly number[], limit: number): void {
  const times = [...timesMs].sort((first, second) => first - second);
  for (const [index, atMs] of times.entries()) {
    const next = times[index + limit];
    assert.ok(next === undefined || next - atMs >= 60_000, `more than ${limit} in the 60 seconds from ${atMs}`);
  }
}

describe('a store that is away', () => {
  for (const away of ['refused', 'hangs'] as const) {
    test(`${away}: refused at once when it is known, and served again when it is back`, async () => {
      const lending = new SimulatedLending();
      const wallet = lending.pool('credit', 'w', 1_000_000n);
      const process = lending.process();
      const warm = new Request(lending, process, [wish(wallet, 10n)]);
      await lending.time.run(100);
      assert.equal(warm.reason, null);
      lending.away = away;
      await lending.time.run(2_000);
      const first = new Request(lending, process, [wish(wallet, 500_000n)]);
      await lending.time.run(4_500);
      assert.equal(first.reason, 'unavailable');
      assert.equal(new Request(lending, process, [wish(wallet, 10n)]).reason, null, 'what holds a lease goes on');
      let slowestMs = 0;
      for (let atMs = 4_500; atMs < 20_000; atMs += 100) {
        await lending.time.run(atMs);
        const request = new Request(lending, process, [wish(wallet, 500_000n)]);
        await lending.time.run(atMs + 99);
        assert.equal(request.reason, 'unavailable');
        slowestMs = Math.max(slowestMs, request.atMs - atMs);
      }
      assert.equal(slowestMs, 0);
      lending.away = 'no';
      const until = lending.time.nowMs + 2_000;
      let served = false;
      while (lending.time.nowMs < until && !served) {
        const request = new Request(lending, process, [wish(wallet, 500_000n)]);
        await lending.time.run(lending.time.nowMs + 100);
        served = request.reason === null;
      }
      assert.ok(served, 'within two seconds of being back');
    });
  }

  test('places whose give-back was lost come back by themselves', async () => {
    const lending = new SimulatedLending(21);
    const places = lending.pool('concurrent_requests', 'places', 4n);
    const process = lending.process();
    const requests = Array.from({ length: 4 }, () => new Request(lending, process, [wish(places)]));
    await lending.time.run(1_000);
    for (const { draws } of requests) process.release(draws[0] as Draw, 0n);
    lending.lossRate = 1;
    process.callBack('places');
    await lending.time.run(3_000);
    lending.lossRate = 0;
    await lending.time.run(70_000);
    const again = Array.from({ length: 4 }, () => new Request(lending, process, [wish(places)]));
    await lending.time.run(75_000);
    assert.deepEqual(
      again.map(({ reason }) => reason),
      [null, null, null, null],
    );
  });
});

describe('seeded', () => {
  test('wallets: every amount is accounted for, over several processes', async () => {
    for (let seed = 1; seed <= 60; seed += 1) await simulateWallet(seed, 0);
  });
  test('wallets whose answers are lost: never overspent', async () => {
    for (let seed = 1; seed <= 60; seed += 1) await simulateWallet(seed, 0.1);
  });
  test('limits of open requests: never above, with and without lost answers', async () => {
    for (let seed = 1; seed <= 40; seed += 1) await simulatePlaces(seed, seed % 2 === 0 ? 0.1 : 0);
  });
  test('rates: never above in any 60 seconds, whatever is used of what was drawn', async () => {
    for (let seed = 1; seed <= 30; seed += 1) await simulateRate(seed, seed % 2 === 0 ? 0.05 : 0);
  });
});

async function simulateWallet(seed: number, lossRate: number): Promise<void> {
  const random = seededRandom(seed);
  const lending = new SimulatedLending(seed);
  const balance = BigInt(Math.floor(random() * 50_000));
  const wallet = lending.pool('credit', 'w', balance);
  lending.lossRate = lossRate;
  lending.lockRate = seed % 3 === 0 ? 0.2 : 0;
  const processes = [lending.process(), lending.process(), lending.process()];
  let charged = 0n;
  for (let index = 0; index < 120; index += 1) {
    await lending.time.run(lending.time.nowMs + random() * 40);
    const process = processes[Math.floor(random() * 3)] as AllowanceLeases;
    const amount = BigInt(1 + Math.floor(random() * 900));
    const charge = (amount * BigInt(Math.floor(random() * 101))) / 100n;
    new Request(lending, process, [wish(wallet, amount)], random() * 600, ([draw]) => {
      process.release(draw as Draw, charge);
      charged += charge;
    });
    if (index % 20 === 19) for (const each of processes) each.tick();
  }
  await lending.time.run(lending.time.nowMs + 5_000);
  lending.lossRate = 0;
  lending.lockRate = 0;
  await giveBackAll(lending);
  assert.ok(charged <= balance, `seed ${seed}: overspent`);
  if (lossRate === 0) assert.equal(lending.leased('w'), charged, `seed ${seed}`);
  else
    assert.ok(
      lending.leased('w') >= charged && lending.leased('w') <= balance,
      `seed ${seed}: ${lending.leased('w')} lent, ${charged} charged`,
    );
}

async function simulatePlaces(seed: number, lossRate: number): Promise<void> {
  const random = seededRandom(seed);
  const lending = new SimulatedLending(seed);
  const limit = BigInt(1 + Math.floor(random() * 12));
  const places = lending.pool('concurrent_requests', 'p', limit);
  lending.lossRate = lossRate;
  lending.lockRate = seed % 3 === 0 ? 0.2 : 0;
  const processes = [lending.process(), lending.process(), lending.process()];
  for (let index = 0; index < 300; index += 1) {
    await lending.time.run(lending.time.nowMs + random() * 20);
    const process = processes[Math.floor(random() ** 2 * 3)] as AllowanceLeases;
    new Request(lending, process, [wish(places)], random() * 700, ([draw]) => process.release(draw as Draw, 0n));
    const open = processes.reduce((sum, each) => sum + each.totals('concurrent_requests').held, 0n);
    assert.ok(open <= limit, `seed ${seed}: ${open} of ${limit} open`);
  }
  await lending.time.run(lending.time.nowMs + 5_000);
  lending.lossRate = 0;
  lending.lockRate = 0;
  await giveBackAll(lending);
  if (lossRate === 0) assert.equal(lending.leased('p'), 0n, `seed ${seed}`);
}

async function simulateRate(seed: number, lossRate: number): Promise<void> {
  const random = seededRandom(seed);
  const lending = new SimulatedLending(seed);
  const limit = 200 + Math.floor(random() * 4_000);
  const rate = lending.pool('tokens_per_minute', 'r', BigInt(limit));
  lending.lossRate = lossRate;
  lending.lockRate = seed % 3 === 0 ? 0.2 : 0;
  const processes = [lending.process(), lending.process(), lending.process()];
  const uses: { readonly request: Request; readonly used: bigint }[] = [];
  for (let index = 0; index < 700; index += 1) {
    await lending.time.run(lending.time.nowMs + random() * 400);
    const process = processes[Math.floor(random() ** 3 * 3)] as AllowanceLeases;
    const amount = BigInt(1 + Math.floor((random() * limit) / 8));
    const used = (amount * BigInt(Math.floor(random() * 101))) / 100n;
    const request = new Request(lending, process, [wish(rate, amount)], random() * 8_000, ([draw]) =>
      process.release(draw as Draw, used),
    );
    uses.push({ request, used });
    if (index % 4 === 0) for (const each of processes) each.tick();
  }
  await lending.time.run(lending.time.nowMs + 20_000);
  const admitted = uses.filter(({ request }) => request.reason === null);
  for (const first of admitted) {
    const within = admitted.filter(
      ({ request }) => request.atMs >= first.request.atMs && request.atMs < first.request.atMs + 60_000,
    );
    const total = within.reduce((sum, { used }) => sum + used, 0n);
    assert.ok(
      total <= BigInt(limit),
      `seed ${seed}: ${total} of ${limit} in the 60 seconds from ${first.request.atMs}`,
    );
  }
}

async function giveBackAll(lending: SimulatedLending): Promise<void> {
  const ends = lending.processes.map((process) => process.giveBackAll());
  await lending.time.run(lending.time.nowMs + 5_000);
  await Promise.all(ends);
}
