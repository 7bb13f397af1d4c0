// A frozen wallet and a lowered limit: what requests hold of it when that is told is returned when they end, however
// late, and serves nobody else.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Quota } from '../../src/domain/quotas/lease.ts';
import type { Hold } from '../../src/generation/admission/leases/quota-lease.ts';
import type { QuotaLeases } from '../../src/generation/admission/leases/quota-leases.ts';
import { howMany } from '../support/at-length.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { SimulatedLeaseStore } from '../support/simulated-lease-store.ts';

/** A call that was sent before a change is answered, or given up, within this. */
const SETTLED_MS = 2_050;
/** Longer than what is released is returned after any revocation. */
const LATER_MS = 5_000;

/** The answer to one request, which must come within a second. */
async function answer(store: SimulatedLeaseStore, process: QuotaLeases, quota: Quota): Promise<Hold | string> {
  let result: Hold | string = 'waits';
  void Promise.resolve(process.holdAll([{ quota, amount: 10n }])).then((held) => {
    result = 'reason' in held ? held.reason : (held[0] as Hold);
  });
  await store.time.run(store.time.nowMs + 1_000);
  return result;
}

async function hold(store: SimulatedLeaseStore, process: QuotaLeases, quota: Quota): Promise<Hold> {
  const held = await answer(store, process, quota);
  assert.ok(typeof held === 'object');
  return held;
}

describe('what is withdrawn', () => {
  test('a frozen wallet pays for nobody with what a request releases long afterwards; a thawed one does again', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 1_000n);
    const process = store.process();
    const [first, second] = [await hold(store, process, wallet), await hold(store, process, wallet)];
    store.change('w', { frozen: true });
    for (const open of [first, second]) {
      await store.time.run(store.time.nowMs + LATER_MS);
      process.release(open, 4n);
      assert.equal(await answer(store, process, wallet), 'frozen');
    }
    assert.equal(store.leased('w'), 8n, 'only what was used is left of what was lent');
    store.change('w', { frozen: false });
    await store.time.run(store.time.nowMs + LATER_MS);
    process.release(await hold(store, process, wallet), 0n);
    assert.ok(!(process.holdAll([{ quota: wallet, amount: 10n }]) instanceof Promise), 'from memory again');
  });

  test('also where only an answer says that it is frozen', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 30n);
    const process = store.process();
    const open = await hold(store, process, wallet);
    store.change('w', { frozen: true }, false);
    for (const more of [await answer(store, process, wallet), await answer(store, process, wallet)])
      if (typeof more !== 'string') process.release(more, 10n);
    assert.equal(await answer(store, process, wallet), 'frozen');
    process.release(open, 0n);
    assert.equal(await answer(store, process, wallet), 'frozen');
  });

  test('also what was granted just before, in an answer that comes after the news', async () => {
    const store = new SimulatedLeaseStore();
    const { time } = store;
    const places = store.quota('concurrent_requests', 'places', 1_000n);
    const process = store.process();
    const holding = hold(store, process, places);
    while (store.answered.take === 0) await time.run(time.nowMs + 0.01);
    store.change('places', { size: 0n });
    const open = await holding;
    await time.run(time.nowMs + LATER_MS);
    process.release(open, 0n);
    assert.equal(await answer(store, process, places), 'short');
    assert.equal(store.leased('places'), 0n);
  });

  for (const kind of ['concurrent_requests', 'budget'] as const) {
    test(`${kind}: a lowered limit holds once what was open has ended, also where one follows the other`, async () => {
      const store = new SimulatedLeaseStore();
      const { time } = store;
      const limit = store.quota(kind, 'limit', 1_000n);
      const process = store.process();
      const open: Hold[] = [];
      for (let count = 0; count < 20; count += 1) open.push(await hold(store, process, limit));
      store.change('limit', { size: 50n });
      for (let count = 0; count < 20; count += 1) {
        await time.run(time.nowMs + LATER_MS / 2);
        process.release(open.shift() as Hold, 0n);
        const next = await answer(store, process, limit);
        if (typeof next !== 'string') open.push(next);
        process.tick();
      }
      await time.run(time.nowMs + LATER_MS);
      assert.ok(store.leased('limit') <= 50n, `${store.leased('limit')} lent of 50`);
      assert.equal(open.length, 5);
    });
  }

  for (const kind of ['credit', 'concurrent_requests'] as const) {
    test(`${kind}: whatever was open, lent and on its way when it was changed, nothing is above it two seconds later`, async () => {
      for (let seed = 1; seed <= howMany({ short: 6, long: 200 }); seed += 1) await changeAtRandom(kind, seed);
    });
  }
});

/** Three processes hold and release at random while a wallet is frozen and thawed, or a limit lowered and raised. */
async function changeAtRandom(kind: 'credit' | 'concurrent_requests', seed: number): Promise<void> {
  const store = new SimulatedLeaseStore(seed);
  const { time } = store;
  const random = seededRandom(seed);
  const quota = store.quota(kind, 'q', 400n);
  const processes = [store.process(), store.process(), store.process()];
  store.lossRate = random() < 0.3 ? 0.02 : 0;
  store.lockRate = random() < 0.3 ? 0.1 : 0;
  let allowed = 400n;
  let changedAtMs = 0;
  let openAmount = 0n;
  let admitted = 0;
  const above: string[] = [];
  const ask = (process: QuotaLeases): void => {
    const amount = BigInt(1 + Math.floor(random() * 30));
    const openMs = random() < 0.5 ? random() * 200 : random() * 12_000;
    void Promise.resolve(process.holdAll([{ quota, amount }])).then((held) => {
      if ('reason' in held) return;
      admitted += 1;
      openAmount += amount;
      if (time.nowMs - changedAtMs > SETTLED_MS && openAmount > allowed)
        above.push(`${openAmount} open, ${allowed} allowed, at ${time.nowMs}`);
      time.at(time.nowMs + openMs, () => {
        openAmount -= amount;
        process.release(held[0] as Hold, 0n);
      });
    });
  };
  let isChanged = false;
  for (let step = 0; step < 1_500; step += 1) {
    ask(processes[Math.floor(random() * 3)] as QuotaLeases);
    await time.run(time.nowMs + random() * 40);
    if (step % 10 === 0) for (const process of processes) process.tick();
    if (random() >= 0.004) continue;
    isChanged = !isChanged;
    changedAtMs = time.nowMs;
    // A frozen wallet admits nothing, whatever is open.
    allowed = isChanged ? (kind === 'credit' ? 0n : 40n) : 400n;
    store.change('q', kind === 'credit' ? { frozen: isChanged } : { size: allowed });
  }
  assert.deepEqual(above, [], `seed ${seed}`);
  assert.ok(admitted > 50, `seed ${seed}: ${admitted} admitted`);
}
