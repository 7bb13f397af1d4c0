// Leases of wallets and limits against a simulated store: never above, never refused while it lies free elsewhere, all
// or nothing, and nothing lost.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Quota } from '../../src/domain/quotas/lease.ts';
import type { Hold } from '../../src/generation/admission/leases/quota-lease.ts';
import type { QuotaLeases, QuotaNeed } from '../../src/generation/admission/leases/quota-leases.ts';
import { RememberedRefusal, type Shortage } from '../../src/generation/admission/leases/remembered-refusal.ts';
import { howMany } from '../support/at-length.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { SimulatedLeaseStore } from '../support/simulated-lease-store.ts';

type Result = readonly Hold[] | Shortage;

/** What came of a request: seen as soon as it is known. */
class Request {
  result: Result | null = null;
  atMs = 0;
  /** `end` comes so long after it was held. */
  constructor(
    store: SimulatedLeaseStore,
    leases: QuotaLeases,
    needs: readonly QuotaNeed[],
    endAfterMs = 0,
    end?: (holds: readonly Hold[]) => void,
  ) {
    const held = leases.holdAll(needs);
    const note = (result: Result): void => {
      this.result = result;
      this.atMs = store.time.nowMs;
      if (end !== undefined && !('reason' in result)) store.time.at(this.atMs + endAfterMs, () => end(result));
    };
    if (held instanceof Promise) void held.then(note);
    else note(held);
  }
  get holds(): readonly Hold[] {
    assert.ok(
      this.result !== null && !('reason' in this.result),
      `not held: ${JSON.stringify(this.result, (_, value) => String(value))}`,
    );
    return this.result;
  }
  get reason(): string | null {
    return this.result === null ? 'waits' : 'reason' in this.result ? this.result.reason : null;
  }
}

const need = (quota: Quota, amount = 1n): QuotaNeed => ({ quota, amount });

/** A wallet of 1,000 of which another process has all: held by an open request, or idle since that has ended. */
async function walletElsewhere(how: 'held' | 'idle') {
  const store = new SimulatedLeaseStore();
  const wallet = store.quota('credit', 'w', 1_000n);
  const [process, other] = [store.process(), store.process()];
  const all = new Request(store, other, [need(wallet, 1_000n)]);
  await store.time.run(100);
  assert.equal(all.holds.length, 1);
  if (how === 'idle') for (const hold of all.holds) other.release(hold, 0n);
  return { store, wallet, process };
}

describe('leases', () => {
  test('a refusal of a limit is not remembered for who knows already that it was raised', async () => {
    const store = new SimulatedLeaseStore();
    const budget = store.quota('budget', 'b', 0n);
    const process = store.process();
    const refused = new Request(store, process, [need(budget, 10n)]);
    while (refused.reason === 'waits') await store.time.run(5);
    assert.equal(refused.reason, 'short');
    store.change('b', { size: 1_000n }, false);
    const { take } = store.calls;
    const before = new Request(store, process, [{ ...need(budget, 10n), ceiling: 0n }]);
    await store.time.run(1);
    const taken = store.calls.take;
    const after = new Request(store, process, [{ ...need(budget, 10n), ceiling: 1_000n }]);
    await store.time.run(100);
    assert.deepEqual([before.reason, taken], ['short', take]);
    assert.equal(after.holds.length, 1);
  });

  test('the second request holds from memory, at once', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 1_000_000n);
    const process = store.process();
    const first = new Request(store, process, [need(wallet, 10n)]);
    assert.equal(first.reason, 'waits');
    await store.time.run(100);
    assert.equal(first.holds.length, 1);
    assert.equal(new Request(store, process, [need(wallet, 10n)]).reason, null);
  });

  test('once it is known what a wallet has, enough for many requests is leased ahead, before the first little is used up', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 1_000_000_000n);
    const process = store.process();
    const requests = [new Request(store, process, [need(wallet, 1_000n)])];
    await store.time.run(100);
    requests.push(new Request(store, process, [need(wallet, 1_000n)]));
    await store.time.run(200);
    store.away = 'refused';
    for (let count = 0; count < 500; count += 1) requests.push(new Request(store, process, [need(wallet, 1_000n)]));
    for (const request of requests) assert.equal(request.holds.length, 1);
  });

  test('500 parallel requests over 4 processes on a wallet that affords exactly 7: exactly 7', async () => {
    const store = new SimulatedLeaseStore(7);
    const wallet = store.quota('credit', 'w', 7n * 100n + 99n);
    const processes = [store.process(), store.process(), store.process(), store.process()];
    const requests = Array.from(
      { length: 500 },
      (_, index) => new Request(store, processes[index % 4] as QuotaLeases, [need(wallet, 100n)]),
    );
    await store.time.run(5_000);
    assert.equal(requests.filter(({ reason }) => reason === null).length, 7);
    assert.equal(requests.filter(({ reason }) => reason === 'short').length, 493);
    assert.ok(store.calls.take < 100, `one answer speaks for all that wait: ${store.calls.take}`);
  });

  test('who is short right after notifications may have been missed gets what others have available', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 1_000n);
    const [process, other] = [store.process(), store.process()];
    // Eight times as much is leased ahead.
    for (const [owner, amount] of [
      [other, 100n],
      [process, 1n],
    ] as const) {
      const first = new Request(store, owner, [need(wallet, amount)]);
      await store.time.run(store.time.nowMs + 100);
      for (const hold of first.holds) owner.release(hold, 0n);
    }
    process.renewAll();
    const request = new Request(store, process, [need(wallet, 800n)]);
    await store.time.run(store.time.nowMs + 1_500);
    assert.equal(request.holds.length, 1);
  });

  test('who waits for a wallet that somebody has locked is served when it is free, and nobody else waits or is refused', async () => {
    const store = new SimulatedLeaseStore(5);
    const locked = store.quota('credit', 'locked', 1_000_000n);
    const other = store.quota('credit', 'other', 1_000_000n);
    const limit = store.quota('requests_per_minute', 'limit', 1_000n);
    const process = store.process();
    store.locked.add('locked');
    const waiting = Array.from({ length: 10 }, () => new Request(store, process, [need(limit), need(locked, 10n)]));
    await store.time.run(1_000);
    const neighbours = Array.from(
      { length: 10 },
      (_, index) => new Request(store, process, [need(limit), need(other, BigInt(10 + index))]),
    );
    await store.time.run(2_500);
    for (const request of neighbours) assert.equal(request.holds.length, 2);
    for (const request of waiting) assert.equal(request.reason, 'waits');
    assert.equal(store.calls.probe, 0);
    store.locked.delete('locked');
    await store.time.run(3_500);
    for (const request of waiting) assert.equal(request.holds.length, 2);
  });

  test('who waits for a lock that never goes is refused in the end, and what is pending return there is returned when it does', async () => {
    const store = new SimulatedLeaseStore(6);
    const wallet = store.quota('credit', 'w', 1_000n);
    const process = store.process();
    const first = new Request(store, process, [need(wallet, 10n)]);
    await store.time.run(100);
    store.locked.add('w');
    for (const hold of first.holds) process.release(hold, 0n);
    process.revoke('w');
    const late = new Request(store, process, [need(wallet, 900n)]);
    await store.time.run(10_000);
    assert.equal(late.reason, 'unavailable');
    assert.ok(store.leased('w') > 0n);
    store.locked.delete('w');
    process.tick();
    await store.time.run(11_000);
    assert.equal(store.leased('w'), 0n);
  });

  test('a lease follows its use: with its wallet locked for three seconds under load, nobody waits', async () => {
    const store = new SimulatedLeaseStore(8);
    const wallet = store.quota('credit', 'w', 1_000_000_000n);
    const process = store.process();
    let waited = 0;
    const load = async (seconds: number): Promise<void> => {
      for (let count = 0; count < seconds * 500; count += 1) {
        const request = new Request(store, process, [need(wallet, 100n)]);
        if (request.reason === 'waits') waited += 1;
        else store.time.at(store.time.nowMs + 20, () => process.release(request.holds[0] as Hold, 100n));
        await store.time.run(store.time.nowMs + 2);
      }
    };
    await load(4);
    waited = 0;
    // Wherever in the life of a lease it happens.
    for (let round = 0; round < 4; round += 1) {
      store.locked.add('w');
      await load(3);
      store.locked.delete('w');
      await load(1.3 + round);
    }
    assert.equal(waited, 0);
  });

  test('what the store refuses of one wallet says nothing against the store', async () => {
    const store = new SimulatedLeaseStore(7);
    const [broken, sound] = [store.quota('credit', 'broken', 100n), store.quota('credit', 'sound', 100n)];
    const process = store.process();
    store.refused.add('broken');
    const refused = new Request(store, process, [need(broken)]);
    const served = new Request(store, process, [need(sound)]);
    await store.time.run(100);
    assert.equal(refused.reason, 'unavailable');
    assert.equal(served.holds.length, 1);
    assert.equal(store.calls.probe, 0);
  });

  test('what another process has free is not refused: money, and places for open requests', async () => {
    for (const kind of ['credit', 'concurrent_requests'] as const) {
      const store = new SimulatedLeaseStore(3);
      const pool = store.quota(kind, 'p', 100n);
      const [first, second] = [store.process(), store.process()];
      const earlier = Array.from({ length: 100 }, () => new Request(store, first, [need(pool)]));
      await store.time.run(1_000);
      for (const { holds } of earlier) first.release(holds[0] as Hold, 0n);
      assert.equal(store.leased('p'), 100n);
      const request = new Request(store, second, [need(pool, 100n)]);
      await store.time.run(2_000);
      assert.equal(request.reason, null, kind);
    }
  });

  test('two processes that each have half of what both need do not block each other', async () => {
    const store = new SimulatedLeaseStore(5);
    const wallet = store.quota('credit', 'w', 100n);
    const [first, second] = [store.process(), store.process()];
    const halves = [new Request(store, first, [need(wallet, 60n)]), new Request(store, second, [need(wallet, 40n)])];
    await store.time.run(1_000);
    first.release(halves[0]?.holds[0] as Hold, 0n);
    second.release(halves[1]?.holds[0] as Hold, 0n);
    const requests = [
      new Request(store, first, [need(wallet, 100n)]),
      new Request(store, second, [need(wallet, 100n)]),
    ];
    await store.time.run(5_000);
    assert.deepEqual(new Set(requests.map(({ reason }) => reason)), new Set([null, 'short']));
  });

  test('all or nothing: what a refused request met on its way is as free as before', async () => {
    const store = new SimulatedLeaseStore();
    const places = store.quota('concurrent_requests', 'places', 5n);
    const rate = store.quota('requests_per_minute', 'rate', 5n);
    const wallet = store.quota('credit', 'w', 10n);
    const process = store.process();
    const refused = new Request(store, process, [need(places), need(rate), need(wallet, 11n)]);
    await store.time.run(2_000);
    assert.deepEqual([refused.reason, (refused.result as Shortage).quota.key], ['short', 'w']);
    assert.deepEqual(process.totals('concurrent_requests').held, 0n);
    const rest = Array.from(
      { length: 5 },
      () => new Request(store, process, [need(places), need(rate), need(wallet, 2n)]),
    );
    await store.time.run(4_000);
    for (const request of rest) assert.equal(request.holds.length, 3);
  });

  test('a request that waits for one thing holds nothing of another', async () => {
    const store = new SimulatedLeaseStore();
    const places = store.quota('concurrent_requests', 'places', 1n);
    const wallet = store.quota('credit', 'w', 1_000n);
    const process = store.process();
    const warm = new Request(store, process, [need(places)]);
    await store.time.run(1_000);
    process.release(warm.holds[0] as Hold, 0n);
    const waiting = new Request(store, process, [need(places), need(wallet, 10n)]);
    assert.equal(waiting.reason, 'waits');
    const other = new Request(store, process, [need(places)]);
    assert.equal(other.reason, null, 'the place is free while the first asks for its money');
    process.release(other.holds[0] as Hold, 0n);
    await store.time.run(2_000);
    assert.equal(waiting.reason, null);
  });

  test('a frozen wallet says so, also where its money was warm, and what was leased is returned', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 1_000n);
    const process = store.process();
    const first = new Request(store, process, [need(wallet, 10n)]);
    await store.time.run(500);
    store.change('w', { frozen: true });
    const second = new Request(store, process, [need(wallet, 10n)]);
    await store.time.run(1_000);
    assert.equal(second.reason, 'frozen');
    process.release(first.holds[0] as Hold, 4n);
    await store.time.run(1_500);
    assert.equal(store.leased('w'), 4n, 'the rest of a hold goes back as well');
    store.change('w', { frozen: false });
    const third = new Request(store, process, [need(wallet, 10n)]);
    await store.time.run(2_500);
    assert.equal(third.reason, null);
  });

  test('a frozen wallet serves nobody, also where a lease request under way is never answered', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 10_000n);
    const process = store.process();
    new Request(store, process, [need(wallet, 10n)]);
    await store.time.run(500);
    store.away = 'hangs';
    const { take } = store.calls;
    while (store.calls.take === take)
      assert.equal(new Request(store, process, [need(wallet, 10n)]).reason, null, 'from memory, until it is refilled');
    assert.ok(process.totals('credit').available > 10n);
    store.change('w', { frozen: true });
    await store.time.run(5_000);
    assert.equal(process.totals('credit').available, 0n);
    assert.notEqual(new Request(store, process, [need(wallet, 10n)]).reason, null);
  });

  test('a limit that is gone holds nobody back; a need of nothing is always there', async () => {
    const store = new SimulatedLeaseStore();
    const rate = store.quota('requests_per_minute', 'rate', 0n);
    const wallet = store.quota('credit', 'w', 0n);
    const process = store.process();
    store.change('rate', { gone: true });
    const request = new Request(store, process, [need(rate), need(wallet, 0n)]);
    await store.time.run(1_000);
    assert.equal(request.holds.length, 2);
    process.release(request.holds[0] as Hold, 0n);
  });

  for (const [notifyMs, reason] of [
    [500, null],
    [1_900, null],
    [2_500, 'unavailable'],
  ] as const)
    test(`what another process has idle is not refused as short where to notify takes ${notifyMs} ms`, async () => {
      const { store, wallet, process } = await walletElsewhere('idle');
      store.notifyMs = notifyMs;
      const request = new Request(store, process, [need(wallet, 500n)]);
      await store.time.run(6_000);
      assert.equal(request.reason, reason);
    });

  for (const [giveBackMs, answerMs] of [
    [5, 0],
    [60, 0],
    [200, 0],
    [350, 0],
    [350, 130],
    [350, 390],
    [350, 900],
  ] as const)
    test(`what another process has just released is not refused as short where a return takes ${giveBackMs} ms, an answer ${answerMs}`, async () => {
      const { store, wallet, process } = await walletElsewhere('idle');
      const other = store.processes[1] as QuotaLeases;
      Object.assign(store, { giveBackMs, answerMs });
      // Each needs all there is, so that each has to come back from where the one before was.
      for (let turn = 0; turn < 40; turn += 1) {
        const who = turn % 2 === 0 ? process : other;
        const request = new Request(store, who, [need(wallet, 1_000n)]);
        while (request.reason === 'waits') await store.time.run(store.time.nowMs + 1);
        assert.equal(request.reason, null, `turn ${turn}`);
        await store.time.run(store.time.nowMs + 7);
        who.release(request.holds[0] as Hold, 0n);
      }
    });

  test('what nobody returns is refused as soon as its time is over', async () => {
    const { store, wallet, process } = await walletElsewhere('held');
    const first = new Request(store, process, [need(wallet, 1_000n)]);
    while (first.reason === 'waits') await store.time.run(store.time.nowMs + 1);
    // What the store grants ends the row of refusals.
    store.deposit('w', 1n);
    const least = new Request(store, process, [need(wallet, 1n)]);
    await store.time.run(store.time.nowMs + 20);
    assert.deepEqual([first.reason, least.reason], ['short', null]);
    const cameAtMs = store.time.nowMs;
    const second = new Request(store, process, [need(wallet, 1_000n)]);
    while (second.reason === 'waits') await store.time.run(store.time.nowMs + 1);
    assert.equal(second.reason, 'short');
    const waitedMs = second.atMs - cameAtMs;
    assert.ok(waitedMs > 390 && waitedMs < 450, `${waitedMs} ms`);
  });

  test('who needs nearly all waits ten seconds at most while others who need little are served, and then is refused', async () => {
    const store = new SimulatedLeaseStore(1);
    store.giveBackMs = 100;
    const wallet = store.quota('credit', 'w', 3_000n);
    const processes = [store.process(), store.process()];
    const random = seededRandom(1);
    const open: { readonly request: Request; readonly cameAtMs: number }[] = [];
    let longestMs = 0;
    for (let turn = 0; turn < 4_000; turn += 1) {
      const process = processes[Math.floor(random() * 2)] as QuotaLeases;
      const amount = turn % 100 === 0 ? 2_900n : 50n;
      const request = new Request(store, process, [need(wallet, amount)], 20 + random() * 280, (holds) => {
        for (const hold of holds) process.release(hold, 0n);
      });
      if (request.reason === 'waits') open.push({ request, cameAtMs: store.time.nowMs });
      await store.time.run(store.time.nowMs + 7);
      for (const waiting of open.splice(0)) {
        longestMs = Math.max(longestMs, store.time.nowMs - waiting.cameAtMs);
        if (waiting.request.reason === 'waits') open.push(waiting);
      }
    }
    assert.ok(longestMs > 2_000 && longestMs < 11_000, `${longestMs} ms`);
  });

  test('the others have their time to return what is idle from when they were asked, however long that took', async () => {
    const { store, wallet, process } = await walletElsewhere('idle');
    store.notifyMs = 500;
    store.hearMs = 200;
    const request = new Request(store, process, [need(wallet, 500n)]);
    await store.time.run(3_000);
    assert.equal(request.reason, null);
  });

  for (const answerMs of [300, 1_200])
    test(`what nobody has is refused after one revocation where each answer takes ${answerMs} ms`, async () => {
      const { store, wallet, process } = await walletElsewhere('held');
      store.answerMs = answerMs;
      const request = new Request(store, process, [need(wallet, 500n)]);
      await store.time.run(8_000);
      assert.deepEqual([request.reason, store.calls.revoke], ['short', 1]);
    });

  test('an answer that was two seconds on its way is followed by a pause of 0.4 s at most, not of two more', async () => {
    const { store, wallet, process } = await walletElsewhere('held');
    const { time } = store;
    const { take } = store.calls;
    const request = new Request(store, process, [need(wallet, 500n)]);
    while (store.calls.take < take + 3) await time.run(time.nowMs + 1);
    // Only the answer to the third question is late.
    store.answerMs = 1_900;
    while (store.answered.take < store.calls.take) await time.run(time.nowMs + 1);
    await time.run(time.nowMs + 1);
    store.answerMs = 0;
    const sentMs = time.nowMs;
    while (request.reason === 'waits') await time.run(time.nowMs + 1);
    assert.equal(request.reason, 'short');
    assert.ok(time.nowMs - sentMs < 1_900 + 1_000, `told ${time.nowMs - sentMs} ms after the question`);
  });

  test('what nobody has is refused after one revocation, however long that took', async () => {
    const { store, wallet, process } = await walletElsewhere('held');
    store.notifyMs = 1_200;
    const request = new Request(store, process, [need(wallet, 500n)]);
    await store.time.run(2_500);
    assert.deepEqual([request.reason, store.calls.revoke], ['short', 1]);
  });

  test('while the others cannot be asked, what the store has serves who comes, and who waits when more is added', async () => {
    const { store, wallet, process } = await walletElsewhere('held');
    store.deposit('w', 100n, false);
    store.notifyMs = 60_000;
    const [large, waiting] = [900n, 400n].map((amount) => new Request(store, process, [need(wallet, amount)]));
    await store.time.run(200);
    const small = new Request(store, process, [need(wallet, 50n)]);
    await store.time.run(1_000);
    store.deposit('w', 500n);
    await store.time.run(4_000);
    assert.deepEqual([large?.reason, waiting?.reason, small.reason], ['unavailable', null, null]);
    assert.ok((large?.atMs ?? 0) < 2_300, `it is told after ${large?.atMs} ms`);
  });

  test('one request that tries ever cheaper models waits once for the others to be asked', async () => {
    const { store, wallet, process } = await walletElsewhere('held');
    store.notifyMs = 60_000;
    for (const amount of [900n, 800n, 700n, 600n, 500n]) {
      const request = new Request(store, process, [need(wallet, amount)]);
      while (request.reason === 'waits') await store.time.run(store.time.nowMs + 10);
      assert.equal(request.reason, 'unavailable');
    }
    assert.ok(store.time.nowMs < 2_500, `all are told after ${store.time.nowMs} ms`);
  });

  test('more than there is in all is short, whether or not the others can be asked', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 10n);
    const [process, other] = [store.process(), store.process()];
    const held = new Request(store, other, [need(wallet, 1n)]);
    await store.time.run(100);
    assert.equal(held.holds.length, 1);
    store.notifyMs = 60_000;
    const request = new Request(store, process, [need(wallet, 1_000n)]);
    await store.time.run(300);
    assert.equal(request.reason, 'short');
  });

  test('it is short at once also beside one that waits for the others', async () => {
    const { store, wallet, process } = await walletElsewhere('idle');
    store.notifyMs = 60_000;
    const [small, large] = [500n, 5_000n].map((amount) => new Request(store, process, [need(wallet, amount)]));
    await store.time.run(200);
    assert.deepEqual([small?.reason, large?.reason], ['waits', 'short']);
  });

  for (const [count, everyMs] of [
    [10, 5],
    [12, 10_000],
  ] as const)
    test(`${count} requests above all there is, ${everyMs} ms apart, take no room from who asks for less`, async () => {
      const { store, wallet, process } = await walletElsewhere('idle');
      for (let index = 0; index < count; index += 1) {
        const large = new Request(store, process, [need(wallet, 2_000n)]);
        await store.time.run(store.time.nowMs + everyMs);
        assert.notEqual(large.reason, null);
      }
      const { take } = store.calls;
      const larger = new Request(store, process, [need(wallet, 1_001n)]);
      await store.time.run(store.time.nowMs + 10);
      assert.deepEqual(larger.result, { ...(larger.result as Shortage), reason: 'short', servableMax: 1_000n });
      assert.ok(store.calls.take <= take + 1, 'it is refused as they are, from memory if they just were');
      const request = new Request(store, process, [need(wallet, 500n)]);
      await store.time.run(store.time.nowMs + 3_000);
      assert.deepEqual([request.reason, store.calls.revoke], [null, 1]);
    });

  test('of a rate, too', async () => {
    const store = new SimulatedLeaseStore();
    const rate = store.quota('tokens_per_minute', 'rate', 1_000n);
    const [process, other] = [store.process(), store.process()];
    const used = new Request(store, other, [need(rate, 400n)]);
    await store.time.run(100);
    other.release(used.holds[0] as Hold, 400n);
    for (let second = 1; second <= 20; second += 1) {
      await store.time.run(second * 1_000);
      for (const each of store.processes) each.tick();
    }
    const idle = new Request(store, other, [need(rate, 500n)]);
    await store.time.run(20_050);
    other.release(idle.holds[0] as Hold, 0n);
    const large = new Request(store, process, [need(rate, 900n)]);
    await store.time.run(20_100);
    const request = new Request(store, process, [need(rate, 300n)]);
    await store.time.run(23_000);
    assert.deepEqual([large.reason, request.reason], ['short', null]);
  });

  test('nor where nobody else had anything of it when it came', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 1_000n);
    const [process, other] = [store.process(), store.process()];
    const { take } = store.calls;
    while (store.calls.take < take + 7) {
      new Request(store, process, [need(wallet, 2_000n)]);
      await store.time.run(store.time.nowMs + 20);
    }
    const all = new Request(store, other, [need(wallet, 1_000n)]);
    await store.time.run(store.time.nowMs + 50);
    for (const hold of all.holds) other.release(hold, 0n);
    const request = new Request(store, process, [need(wallet, 500n)]);
    await store.time.run(store.time.nowMs + 3_000);
    assert.equal(request.reason, null);
  });

  test('a budget is not refused as more than all beyond its period', () => {
    const answer = {
      granted: 0n,
      grantId: 'b',
      validForMs: 100,
      presentMoved: false,
      available: 500n,
      leasedElsewhere: 100n,
      frozen: false,
      ceiling: 1_000n,
      retryAfterMs: 100,
      gone: false,
    };
    const refusal = new RememberedRefusal(
      { kind: 'budget', key: 'b' },
      { answer, reason: 'short', leastRefused: 800n, total: 600n, refusals: 0, nowMs: 0 },
    );
    assert.deepEqual(
      [50, 150].map((nowMs) => refusal.shortage(601n, 0n, nowMs)?.servableMax),
      [600n, undefined],
    );
    assert.equal(refusal.shortage(600n, 0n, 50), null);
  });

  test('returns that meet locks are tried again a few at a time', async () => {
    const store = new SimulatedLeaseStore();
    const [process, other] = [store.process(), store.process()];
    const wallets = Array.from({ length: 20 }, (_, index) => store.quota('credit', `w${index}`, 1_000n));
    for (const wallet of wallets) {
      const all = new Request(store, other, [need(wallet, 1_000n)]);
      await store.time.run(store.time.nowMs + 20);
      other.release(all.holds[0] as Hold, 0n);
    }
    const fromMs = store.time.nowMs;
    const requests = wallets.map((wallet) => new Request(store, process, [need(wallet, 500n)]));
    store.time.at(fromMs + 8, () => {
      for (const { key } of wallets) store.locked.add(key);
    });
    await store.time.run(fromMs + 300);
    const { giveBack } = store.calls;
    await store.time.run(fromMs + 1_800);
    // Two senders, each with a call of 0.2 s under way.
    assert.ok(store.calls.giveBack - giveBack <= 16, `${store.calls.giveBack - giveBack} returns in 1.5 s`);
    store.locked.clear();
    await store.time.run(fromMs + 6_000);
    assert.deepEqual(new Set(requests.map(({ reason }) => reason)), new Set([null]));
  });

  test('who was late to ask the others returns then what it has itself', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 1_000n);
    const [process, other] = [store.process(), store.process()];
    const held = new Request(store, process, [need(wallet, 600n)]);
    await store.time.run(100);
    const idle = new Request(store, other, [need(wallet, 400n)]);
    await store.time.run(4_000);
    other.release(idle.holds[0] as Hold, 0n);
    store.notifyMs = 2_500;
    const late = new Request(store, process, [need(wallet, 500n)]);
    await store.time.run(6_300);
    assert.equal(late.reason, 'unavailable');
    process.release(held.holds[0] as Hold, 0n);
    await store.time.run(6_600);
    const request = new Request(store, other, [need(wallet, 800n)]);
    await store.time.run(8_000);
    assert.equal(request.reason, null);
  });

  test('who came while the others could not be asked does not shorten the time they get once they are', async () => {
    const { store, wallet, process } = await walletElsewhere('idle');
    store.isMute = true;
    const requests: Request[] = [];
    for (let count = 1; count <= 100; count += 1) {
      requests.push(new Request(store, process, [need(wallet, 500n)]));
      await store.time.run(100 + count * 20);
    }
    store.isMute = false;
    store.hearMs = 100;
    while (requests.at(-1)?.reason !== null && store.time.nowMs < 6_000) {
      requests.push(new Request(store, process, [need(wallet, 500n)]));
      await store.time.run(store.time.nowMs + 20);
    }
    const served = requests.findIndex(({ reason }) => reason === null);
    assert.deepEqual(new Set(requests.slice(0, served).map(({ reason }) => reason)), new Set(['unavailable']));
  });

  for (const lockedMs of [210, 260, 300, 2_800])
    test(`what meets a lock of ${lockedMs} ms on its way back comes before its asker has given up`, async () => {
      const { store, wallet, process } = await walletElsewhere('idle');
      await store.time.run(500);
      store.time.at(508, () => store.locked.add('w'));
      store.time.at(508 + lockedMs, () => store.locked.delete('w'));
      const request = new Request(store, process, [need(wallet, 500n)]);
      for (let seconds = 1; seconds <= 5; seconds += 1) {
        await store.time.run(seconds * 1_000);
        for (const each of store.processes) each.tick();
      }
      assert.equal(request.reason, null);
    });

  test('after a lock that outlasted a revocation, who still waits gets what was released in the meantime', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 1_000n);
    const [process, other] = [store.process(), store.process()];
    const all = new Request(store, other, [need(wallet, 1_000n)]);
    await store.time.run(500);
    store.time.at(540, () => store.locked.add('w'));
    store.time.at(2_700, () => other.release(all.holds[0] as Hold, 0n));
    store.time.at(3_000, () => store.locked.delete('w'));
    const request = new Request(store, process, [need(wallet, 500n)]);
    await store.time.run(5_000);
    assert.equal(request.reason, null);
    assert.equal(store.calls.revoke, 2);
  });

  test('who comes while a revocation hangs is told as soon as the store has answered, seconds later, too', async () => {
    const { store, wallet, process } = await walletElsewhere('held');
    store.notifyMs = 60_000;
    const waits: number[] = [];
    for (let count = 0; count < 4; count += 1) {
      const fromMs = store.time.nowMs;
      const request = new Request(store, process, [need(wallet, 500n)]);
      for (let tick = 0; tick < 6; tick += 1) {
        await store.time.run(store.time.nowMs + 1_000);
        process.tick();
      }
      assert.equal(request.reason, 'unavailable');
      waits.push(request.atMs - fromMs);
    }
    const [first = 0, ...later] = waits;
    assert.ok(first < 2_200 && later.every((ms) => ms < 200), `they waited ${waits.join(', ')} ms`);
  });

  test('where nobody can be notified each request is told so, and none that there is no more', async () => {
    const { store, wallet, process } = await walletElsewhere('idle');
    store.isMute = true;
    const requests: Request[] = [];
    for (let count = 1; count <= 500; count += 1) {
      requests.push(new Request(store, process, [need(wallet, 500n)]));
      await store.time.run(100 + count * 20);
    }
    await store.time.run(store.time.nowMs + 1_000);
    assert.deepEqual(new Set(requests.map(({ reason }) => reason)), new Set(['unavailable']));
    assert.ok(store.calls.take < 40, `from memory: ${store.calls.take} calls for 500 requests`);
  });

  test('idle leases go back, and what is empty is forgotten', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 1_000n);
    const process = store.process();
    const request = new Request(store, process, [need(wallet, 10n)]);
    await store.time.run(100);
    process.release(request.holds[0] as Hold, 7n);
    await store.time.run(20_000);
    process.tick();
    await store.time.run(20_100);
    assert.equal(store.leased('w'), 7n);
    process.tick();
    assert.deepEqual(process.totals('credit'), { available: 0n, held: 0n });
  });

  test('leases shrink as a quota empties', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 10_000n);
    const process = store.process();
    for (let index = 0; index < 900; index += 1) {
      const request = new Request(store, process, [need(wallet, 10n)]);
      await store.time.run(store.time.nowMs + 20);
      process.release(request.holds[0] as Hold, 10n);
    }
    const left = 10_000n - store.leased('w');
    assert.ok(left > 500n, `most of what is left stays in the wallet: ${left}`);
  });
});

describe('open requests', () => {
  test('under saturation by unequal processes: never above, and at least 95% of the places taken', async () => {
    const store = new SimulatedLeaseStore(3);
    const places = store.quota('concurrent_requests', 'places', 20n);
    const processes = [store.process(), store.process(), store.process(), store.process()];
    let [open, highest, sinceMs, area, admitted] = [0, 0, 0, 0, 0];
    const change = (by: number): void => {
      area += open * (store.time.nowMs - sinceMs);
      sinceMs = store.time.nowMs;
      open += by;
      highest = Math.max(highest, open);
    };
    const endMs = 20_000;
    const askOn = async (index: number): Promise<void> => {
      const process = processes[index % 4] as QuotaLeases;
      while (store.time.nowMs < endMs) {
        const held = await process.holdAll([need(places)]);
        if ('reason' in held) await store.time.wait(index % 3 === 0 ? 2 : 400);
        else {
          change(1);
          admitted += 1;
          await store.time.wait(100);
          change(-1);
          process.release(held[0] as Hold, 0n);
        }
      }
    };
    for (let index = 0; index < 60; index += 1) void askOn(index);
    for (let atMs = 0; atMs <= endMs; atMs += 1_000) {
      await store.time.run(atMs);
      for (const process of processes) process.tick();
    }
    change(0);
    assert.equal(highest, 20);
    assert.ok(area / endMs >= 19, `${area / endMs} open on average`);
    assert.ok(store.calls.take < admitted, `${store.calls.take} lease requests, ${admitted} admitted`);
  });
});

describe('rates', () => {
  test('a grant is renewed well before its end: with its limit locked for two seconds under load, nobody waits', async () => {
    const store = new SimulatedLeaseStore(9);
    const rate = store.quota('requests_per_minute', 'r', 60_000n);
    const process = store.process();
    let waited = 0;
    const load = async (seconds: number): Promise<void> => {
      for (let count = 0; count < seconds * 20; count += 1) {
        const request = new Request(store, process, [need(rate)]);
        if (request.reason === 'waits') waited += 1;
        else store.time.at(store.time.nowMs + 20, () => process.release(request.holds[0] as Hold, 1n));
        await store.time.run(store.time.nowMs + 50);
      }
    };
    await load(4);
    waited = 0;
    for (let round = 0; round < 8; round += 1) {
      store.locked.add('r');
      await load(2);
      store.locked.delete('r');
      await load(1.1 + round / 2);
    }
    assert.equal(waited, 0);
  });

  test('what has expired unused goes back, and is not lost for a minute', async () => {
    const store = new SimulatedLeaseStore();
    const rate = store.quota('tokens_per_minute', 'rate', 1_000n);
    const [first, second] = [store.process(), store.process()];
    const request = new Request(store, first, [need(rate, 1_000n)]);
    await store.time.run(100);
    await store.time.run(5_000);
    first.release(request.holds[0] as Hold, 100n);
    first.tick();
    await store.time.run(5_100);
    const other = new Request(store, second, [need(rate, 900n)]);
    await store.time.run(6_000);
    assert.equal(other.reason, null);
  });

  test('under saturation by unequal processes: never above in any 60 seconds, and at least 95% of the limit', async () => {
    const store = new SimulatedLeaseStore(11);
    const rate = store.quota('requests_per_minute', 'rate', 120n);
    const processes = [store.process(), store.process(), store.process(), store.process()];
    const random = seededRandom(12);
    const requests: Request[] = [];
    for (let atMs = 0; atMs < 190_000; atMs += 50) {
      await store.time.run(atMs);
      // One gets most of the requests, one next to none.
      const index = Math.min(3, Math.floor(random() ** 4 * 4));
      requests.push(new Request(store, processes[index] as QuotaLeases, [need(rate)]));
      if (atMs % 1_000 === 0) for (const process of processes) process.tick();
    }
    await store.time.run(192_000);
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
      const store = new SimulatedLeaseStore();
      const wallet = store.quota('credit', 'w', 1_000_000n);
      const process = store.process();
      const warm = new Request(store, process, [need(wallet, 10n)]);
      await store.time.run(100);
      assert.equal(warm.reason, null);
      store.away = away;
      await store.time.run(2_000);
      const first = new Request(store, process, [need(wallet, 500_000n)]);
      await store.time.run(4_500);
      assert.equal(first.reason, 'unavailable');
      assert.equal(new Request(store, process, [need(wallet, 10n)]).reason, null, 'what holds a lease goes on');
      let slowestMs = 0;
      for (let atMs = 4_500; atMs < 20_000; atMs += 100) {
        await store.time.run(atMs);
        const request = new Request(store, process, [need(wallet, 500_000n)]);
        await store.time.run(atMs + 99);
        assert.equal(request.reason, 'unavailable');
        slowestMs = Math.max(slowestMs, request.atMs - atMs);
      }
      assert.equal(slowestMs, 0);
      store.away = 'no';
      const until = store.time.nowMs + 2_000;
      let served = false;
      while (store.time.nowMs < until && !served) {
        const request = new Request(store, process, [need(wallet, 500_000n)]);
        await store.time.run(store.time.nowMs + 100);
        served = request.reason === null;
      }
      assert.ok(served, 'within two seconds of being back');
    });
  }

  const mayHaveMissed = (process: QuotaLeases): void => process.renewAll();
  for (const [what, isNoticed, happen, goneMs] of [
    ['notifications may have been missed', true, mayHaveMissed, 2_000],
    ['they may have, and nobody has noticed', false, mayHaveMissed, 2_000],
    ['it was idle', true, (process: QuotaLeases) => process.tick(), 17_000],
    ['it was idle, and nobody has noticed', false, (process: QuotaLeases) => process.tick(), 17_000],
  ] as const) {
    test(`while the store is away nothing leased is given away because ${what}, and as soon as it is back it is`, async () => {
      const store = new SimulatedLeaseStore(26);
      const [wallet, other] = [store.quota('credit', 'w', 1_000n), store.quota('credit', 'other', 1_000n)];
      const process = store.process();
      const warm = new Request(store, process, [need(wallet, 10n)]);
      await store.time.run(100);
      process.release(warm.holds[0] as Hold, 0n);
      const leased = store.leased('w');
      assert.ok(leased >= 10n);
      store.away = 'hangs';
      const lost = isNoticed ? new Request(store, process, [need(other)]) : null;
      await store.time.run(20_000);
      if (lost !== null) assert.equal(lost.reason, 'unavailable');
      happen(process);
      const served = new Request(store, process, [need(wallet, 10n)]);
      await store.time.run(20_100);
      assert.equal(served.reason, null, 'what holds a lease goes on');
      process.release(served.holds[0] as Hold, 0n);
      assert.equal(store.answered.giveBack, 0);
      store.away = 'no';
      await store.time.run(20_100 + goneMs);
      process.tick();
      await store.time.run(20_200 + goneMs);
      assert.equal(store.answered.giveBack, 1);
    });
  }

  test('it may go away again right after notifications may have been missed: what had leased goes on', async () => {
    const store = new SimulatedLeaseStore(27);
    const needs = [need(store.quota('credit', 'w', 1_000n), 10n), need(store.quota('concurrent_requests', 'c', 100n))];
    const process = store.process();
    const warm = new Request(store, process, needs);
    await store.time.run(100);
    for (const hold of warm.holds) process.release(hold, 0n);
    process.renewAll();
    await store.time.run(200);
    assert.equal(store.answered.giveBack, 2);
    store.away = 'hangs';
    for (let times = 0; times < 5; times += 1) {
      const served = new Request(store, process, needs);
      await store.time.run(store.time.nowMs + 100);
      assert.equal(served.reason, null);
      for (const hold of served.holds) process.release(hold, 0n);
    }
  });

  test('it may go away while many are leased anew: those whose turn has not come go on, and all are when it is back', async () => {
    const store = new SimulatedLeaseStore(28);
    const process = store.process();
    const wallets = Array.from({ length: 200 }, (_, index) => store.quota('credit', `w${index}`, 1_000n));
    const serveAll = async (): Promise<number> => {
      const requests = wallets.map((wallet) => new Request(store, process, [need(wallet, 10n)]));
      await store.time.run(store.time.nowMs + 3_000);
      const served = requests.filter(({ reason }) => reason === null);
      for (const { holds } of served) process.release(holds[0] as Hold, 0n);
      return served.length;
    };
    assert.equal(await serveAll(), wallets.length);
    for (const away of ['refused', 'hangs', 'refused'] as const) {
      process.renewAll();
      await store.time.run(store.time.nowMs + 200);
      store.away = away;
      const lost = new Request(store, process, [need(store.quota('credit', `lost ${away}`, 1_000n))]);
      await store.time.run(store.time.nowMs + 2_500);
      assert.equal(lost.reason, 'unavailable');
      assert.ok((await serveAll()) >= wallets.length - 10, 'all but those of which a call was under way');
      store.away = 'no';
      await store.time.run(store.time.nowMs + 2_000);
      store.away = 'refused';
      await store.time.run(store.time.nowMs + 100);
      assert.equal(await serveAll(), wallets.length, 'all are leased anew without a request');
      store.away = 'no';
      await store.time.run(store.time.nowMs + 2_000);
    }
  });

  test('it may go away while many that are idle are returned: those whose turn has not come go on', async () => {
    const store = new SimulatedLeaseStore(31);
    const process = store.process();
    const wallets = Array.from({ length: 200 }, (_, index) => store.quota('credit', `w${index}`, 1_000n));
    const askAll = (): Request[] => wallets.map((wallet) => new Request(store, process, [need(wallet, 10n)]));
    const warm = askAll();
    await store.time.run(2_000);
    for (const { holds } of warm) process.release(holds[0] as Hold, 0n);
    await store.time.run(20_000);
    process.tick();
    await store.time.run(20_100);
    assert.ok(store.answered.giveBack > 10);
    store.away = 'refused';
    await store.time.run(20_200);
    const served = askAll().filter(({ reason }) => reason === null);
    assert.ok(served.length + store.answered.giveBack >= wallets.length - 4);
    for (const { holds } of served) process.release(holds[0] as Hold, 0n);
    store.away = 'no';
    await store.time.run(30_000);
    const { take } = store.calls;
    await store.time.run(40_000);
    process.tick();
    await store.time.run(45_000);
    assert.ok(wallets.every(({ key }) => store.leased(key) === 0n));
    assert.equal(store.calls.take, take, 'what is idle is not leased anew');
  });

  test('a lease that is to be filled when the store is back is not forgotten before: what it brings comes back', async () => {
    const store = new SimulatedLeaseStore(32);
    const process = store.process();
    const wallets = Array.from({ length: 100 }, (_, index) => store.quota('credit', `w${index}`, 1_000n));
    const askAll = (): Request[] => wallets.map((wallet) => new Request(store, process, [need(wallet, 10n)]));
    const warm = askAll();
    await store.time.run(2_000);
    for (const { holds } of warm) process.release(holds[0] as Hold, 0n);
    store.away = 'refused';
    const lost = new Request(store, process, [need(store.quota('credit', 'lost', 10n))]);
    await store.time.run(2_100);
    assert.equal(lost.reason, 'unavailable');
    const used = store.leased('w0');
    for (let left = used; left > 0n; left -= 10n)
      for (const { holds } of askAll()) process.release(holds[0] as Hold, 10n);
    store.away = 'no';
    await store.time.run(2_400);
    process.tick();
    await store.time.run(10_000);
    assert.ok(wallets.every(({ key }) => store.leased(key) > used));
    await store.time.run(30_000);
    process.tick();
    await store.time.run(35_000);
    assert.ok(wallets.every(({ key }) => store.leased(key) === used));
  });

  test('a process that ends leases nothing anew, though it was to be before the store went away', async () => {
    const store = new SimulatedLeaseStore(30);
    const process = store.process();
    const wallets = Array.from({ length: 10 }, (_, index) => store.quota('credit', `w${index}`, 1_000n));
    const requests = wallets.map((wallet) => new Request(store, process, [need(wallet, 10n)]));
    await store.time.run(1_000);
    for (const { holds } of requests) process.release(holds[0] as Hold, 0n);
    process.renewAll();
    await store.time.run(1_012);
    store.away = 'refused';
    await store.time.run(2_000);
    store.away = 'no';
    void process.returnAll();
    await store.time.run(9_000);
    assert.ok(wallets.every(({ key }) => store.leased(key) === 0n));
  });

  test('a wallet that was frozen, of which nobody has heard, pays for nothing once the store answers', async () => {
    const store = new SimulatedLeaseStore(29);
    const process = store.process();
    const wallets = Array.from({ length: 100 }, (_, index) => store.quota('credit', `w${index}`, 1_000n));
    for (const wallet of wallets) new Request(store, process, [need(wallet, 10n)]);
    await store.time.run(1_000);
    for (const { key } of wallets) store.change(key, { frozen: true }, false);
    process.renewAll();
    await store.time.run(1_010);
    const requests = wallets.map((wallet) => new Request(store, process, [need(wallet, 10n)]));
    await store.time.run(3_000);
    assert.ok(requests.every(({ reason }) => reason === 'frozen'));
  });

  test('what a lost call was about is there for another process as soon as the store is back', async () => {
    const store = new SimulatedLeaseStore(22);
    const places = store.quota('concurrent_requests', 'places', 4n);
    const [process, other] = [store.process(), store.process()];
    const requests = Array.from({ length: 4 }, () => new Request(store, process, [need(places)]));
    await store.time.run(1_000);
    for (const { holds } of requests) process.release(holds[0] as Hold, 0n);
    store.away = 'refused';
    process.revoke('places');
    await store.time.run(10_000);
    store.away = 'no';
    // No tick, and no request of that process: it finds out by itself.
    await store.time.run(10_600);
    assert.equal(store.leased('places'), 0n);
    const taken = new Request(store, other, [need(places)]);
    await store.time.run(10_700);
    assert.equal(taken.reason, null);
    const { probe } = store.calls;
    await store.time.run(60_000);
    assert.equal(store.calls.probe, probe, 'a store that is there is not probed');
  });

  test('a process ends within seconds, though all that it would return is locked', async () => {
    const store = new SimulatedLeaseStore(23);
    const process = store.process();
    const wallets = Array.from({ length: 200 }, (_, index) => store.quota('credit', `w${index}`, 1_000n));
    const requests = wallets.map((wallet) => new Request(store, process, [need(wallet)]));
    await store.time.run(1_000);
    for (const { holds } of requests) process.release(holds[0] as Hold, 0n);
    for (const { key } of wallets) store.locked.add(key);
    let isDone = false;
    void process.returnAll().then(() => {
      isDone = true;
    });
    await store.time.run(5_900);
    assert.equal(isDone, false, 'they are tried');
    await store.time.run(6_000);
    assert.equal(isDone, true);
  });

  test('a store that answers probes and fails calls is asked a few times a second', async () => {
    const store = new SimulatedLeaseStore(24);
    const wallet = store.quota('credit', 'w', 1_000n);
    const process = store.process();
    store.away = 'only reads';
    const requests: Request[] = [];
    for (let atMs = 0; atMs < 10_000; atMs += 10) {
      requests.push(new Request(store, process, [need(wallet)]));
      await store.time.run(atMs + 10);
    }
    const { take, giveBack, recover, probe } = store.calls;
    assert.ok(take + giveBack + recover <= 60 && probe <= 60, JSON.stringify(store.calls));
    assert.ok(requests.every(({ reason }) => reason === 'unavailable' || reason === 'waits'));
    store.away = 'no';
    await store.time.run(11_000);
    const served = new Request(store, process, [need(wallet)]);
    await store.time.run(11_100);
    assert.equal(served.reason, null);
  });

  test('what this process has yet to return is not missing, also where the store went away meanwhile', async () => {
    const store = new SimulatedLeaseStore(25);
    const [wallet, other] = [store.quota('credit', 'w', 100n), store.quota('credit', 'other', 100n)];
    const process = store.process();
    const first = new Request(store, process, [need(wallet, 60n)]);
    await store.time.run(1_000);
    process.withdraw('w');
    await store.time.run(4_000);
    const second = new Request(store, process, [need(wallet, 50n)]);
    process.release(first.holds[0] as Hold, 0n);
    store.away = 'refused';
    const lost = new Request(store, process, [need(other)]);
    await store.time.run(5_000);
    assert.equal(lost.reason, 'unavailable');
    assert.equal(second.reason, 'unavailable');
  });

  test('places whose give-back was lost come back by themselves', async () => {
    const store = new SimulatedLeaseStore(21);
    const places = store.quota('concurrent_requests', 'places', 4n);
    const process = store.process();
    const requests = Array.from({ length: 4 }, () => new Request(store, process, [need(places)]));
    await store.time.run(1_000);
    for (const { holds } of requests) process.release(holds[0] as Hold, 0n);
    store.lossRate = 1;
    process.revoke('places');
    await store.time.run(3_000);
    store.lossRate = 0;
    await store.time.run(5_000);
    process.tick();
    await store.time.run(6_000);
    assert.equal(store.leased('places'), 0n);
    const again = Array.from({ length: 4 }, () => new Request(store, process, [need(places)]));
    await store.time.run(8_000);
    assert.deepEqual(
      again.map(({ reason }) => reason),
      [null, null, null, null],
    );
  });
});

/** Of the seeds of each test, the first of so many parts. */
const SEED_PARTS = howMany({ short: 3, long: 1 });

describe('seeded', () => {
  test('wallets: every amount is accounted for, over several processes', async () => {
    for (let seed = 1; seed <= 60 / SEED_PARTS; seed += 1) await simulateWallet(seed, 0);
  });
  test('wallets whose answers are lost: never overspent, and nothing is forgotten', async () => {
    for (let seed = 1; seed <= 60 / SEED_PARTS; seed += 1) await simulateWallet(seed, 0.1);
  });
  test('limits of open requests: never above, with and without lost answers', async () => {
    for (let seed = 1; seed <= 40 / SEED_PARTS; seed += 1) await simulatePlaces(seed, seed % 2 === 0 ? 0.1 : 0);
  });
  test('rates: never above in any 60 seconds, whatever is used of what was held', async () => {
    for (let seed = 1; seed <= 30 / SEED_PARTS; seed += 1) await simulateRate(seed, seed % 2 === 0 ? 0.05 : 0);
  });
});

async function simulateWallet(seed: number, lossRate: number): Promise<void> {
  const random = seededRandom(seed);
  const store = new SimulatedLeaseStore(seed);
  const balance = BigInt(Math.floor(random() * 50_000));
  const wallet = store.quota('credit', 'w', balance);
  store.lossRate = lossRate;
  store.lockRate = seed % 3 === 0 ? 0.2 : 0;
  const processes = [store.process(), store.process(), store.process()];
  let charged = 0n;
  for (let index = 0; index < 120; index += 1) {
    await store.time.run(store.time.nowMs + random() * 40);
    const process = processes[Math.floor(random() * 3)] as QuotaLeases;
    const amount = BigInt(1 + Math.floor(random() * 900));
    const charge = (amount * BigInt(Math.floor(random() * 101))) / 100n;
    new Request(store, process, [need(wallet, amount)], random() * 600, ([hold]) => {
      process.release(hold as Hold, charge);
      charged += charge;
    });
    if (index % 20 === 19) for (const each of processes) each.tick();
  }
  await store.time.run(store.time.nowMs + 5_000);
  store.lossRate = 0;
  store.lockRate = 0;
  await returnAll(store);
  assert.ok(charged <= balance, `seed ${seed}: overspent`);
  assert.equal(store.leased('w'), charged, `seed ${seed}`);
}

async function simulatePlaces(seed: number, lossRate: number): Promise<void> {
  const random = seededRandom(seed);
  const store = new SimulatedLeaseStore(seed);
  const limit = BigInt(1 + Math.floor(random() * 12));
  const places = store.quota('concurrent_requests', 'p', limit);
  store.lossRate = lossRate;
  store.lockRate = seed % 3 === 0 ? 0.2 : 0;
  const processes = [store.process(), store.process(), store.process()];
  for (let index = 0; index < 300; index += 1) {
    await store.time.run(store.time.nowMs + random() * 20);
    const process = processes[Math.floor(random() ** 2 * 3)] as QuotaLeases;
    new Request(store, process, [need(places)], random() * 700, ([hold]) => process.release(hold as Hold, 0n));
    const open = processes.reduce((sum, each) => sum + each.totals('concurrent_requests').held, 0n);
    assert.ok(open <= limit, `seed ${seed}: ${open} of ${limit} open`);
  }
  await store.time.run(store.time.nowMs + 5_000);
  store.lossRate = 0;
  store.lockRate = 0;
  await returnAll(store);
  assert.equal(store.leased('p'), 0n, `seed ${seed}`);
}

async function simulateRate(seed: number, lossRate: number): Promise<void> {
  const random = seededRandom(seed);
  const store = new SimulatedLeaseStore(seed);
  const limit = 200 + Math.floor(random() * 4_000);
  const rate = store.quota('tokens_per_minute', 'r', BigInt(limit));
  store.lossRate = lossRate;
  store.lockRate = seed % 3 === 0 ? 0.2 : 0;
  const processes = [store.process(), store.process(), store.process()];
  const uses: { readonly request: Request; readonly used: bigint }[] = [];
  for (let index = 0; index < 700; index += 1) {
    await store.time.run(store.time.nowMs + random() * 400);
    const process = processes[Math.floor(random() ** 3 * 3)] as QuotaLeases;
    const amount = BigInt(1 + Math.floor((random() * limit) / 8));
    const used = (amount * BigInt(Math.floor(random() * 101))) / 100n;
    const request = new Request(store, process, [need(rate, amount)], random() * 8_000, ([hold]) =>
      process.release(hold as Hold, used),
    );
    uses.push({ request, used });
    if (index % 4 === 0) for (const each of processes) each.tick();
  }
  await store.time.run(store.time.nowMs + 20_000);
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

async function returnAll(store: SimulatedLeaseStore): Promise<void> {
  const ends = store.processes.map((process) => process.returnAll());
  await store.time.run(store.time.nowMs + 5_000);
  await Promise.all(ends);
}
