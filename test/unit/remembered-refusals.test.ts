// What an exhausted wallet and a saturated limit cost the database: a refusal is remembered, so that those that come
// after it are refused at once, until there may be room again.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Quota } from '../../src/domain/quotas/lease.ts';
import type { Hold } from '../../src/generation/admission/leases/quota-lease.ts';
import type { QuotaLeases } from '../../src/generation/admission/leases/quota-leases.ts';
import type { Shortage } from '../../src/generation/admission/leases/remembered-refusal.ts';
import { SimulatedLeaseStore } from '../support/simulated-lease-store.ts';

/** A request that ended in another process is seen within this (docs/money-and-limits.md), its return included. */
const REMEMBERED_MS_MAX = 1_200;

class Load {
  readonly store: SimulatedLeaseStore;
  admitted = 0;
  refused = 0;
  /** Refusals that took any time. */
  waited = 0;

  constructor(store: SimulatedLeaseStore) {
    this.store = store;
  }

  /** Asks once, and what is held is kept. */
  ask(process: QuotaLeases, quota: Quota, amount = 1n): void {
    const { time } = this.store;
    const askedMs = time.nowMs;
    void Promise.resolve(process.holdAll([{ quota, amount }])).then((result) => {
      if (!('reason' in result)) this.admitted += 1;
      else this.refused += 1;
      if ('reason' in result && time.nowMs > askedMs) this.waited += 1;
    });
  }

  /** One request every few milliseconds, of one process after the other. */
  async askOn(processes: readonly QuotaLeases[], quota: Quota, forMs: number, everyMs = 5): Promise<void> {
    const { time } = this.store;
    const endMs = time.nowMs + forMs;
    for (let count = 0; time.nowMs < endMs; count += 1) {
      this.ask(processes[count % processes.length] as QuotaLeases, quota);
      await time.run(time.nowMs + everyMs);
    }
  }
}

async function heldOf(process: QuotaLeases, quota: Quota, amount = 1n): Promise<Hold | string> {
  const held = await process.holdAll([{ quota, amount }]);
  return 'reason' in held ? held.reason : (held[0] as Hold);
}

/** The answer to one request, after at most so long. */
async function answerWithin(store: SimulatedLeaseStore, forMs: number, asked: Promise<Hold | string>): Promise<string> {
  let answer = 'waits';
  void asked.then((held) => (answer = typeof held === 'string' ? held : 'held'));
  await store.time.run(store.time.nowMs + forMs);
  return answer;
}

describe('an exhausted wallet', () => {
  test('12,000 requests in a minute over four processes ask the store a few times, and are refused at once', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 0n);
    const processes = Array.from({ length: 4 }, () => store.process());
    const load = new Load(store);
    await load.askOn(processes, wallet, 60_000);
    assert.deepEqual([load.admitted, load.refused], [0, 12_000]);
    assert.ok(store.calls.take <= 4 * 8, `${store.calls.take} calls`);
    assert.ok(load.waited < 100, `${load.waited} waited for the store`);
  });

  for (const kind of ['credit', 'budget'] as const) {
    test(`${kind}: what others hold to the end of their requests costs each process a call a second`, async () => {
      const store = new SimulatedLeaseStore();
      const quota = store.quota(kind, 'q', 10n);
      const [holder, asker] = [store.process(), store.process()];
      const holding = heldOf(holder, quota, 10n);
      await store.time.run(100);
      const hold = await holding;
      const load = new Load(store);
      await load.askOn([asker], quota, 60_000);
      assert.equal(load.admitted, 0);
      const { take, revoke } = store.calls;
      assert.ok(take + revoke <= 200, `${take} lease requests, ${revoke} revocations for ${load.refused} refusals`);
      holder.release(hold as Hold, 4n);
      const releasedMs = store.time.nowMs;
      while (load.admitted === 0 && store.time.nowMs < releasedMs + 10_000) await load.askOn([asker], quota, 5);
      assert.ok(store.time.nowMs - releasedMs <= REMEMBERED_MS_MAX, `${store.time.nowMs - releasedMs} ms`);
    });
  }

  test('a deposit that is told is served at once; one that is not, within half a minute', async () => {
    for (const isTold of [true, false]) {
      const store = new SimulatedLeaseStore();
      const wallet = store.quota('credit', 'w', 0n);
      const process = store.process();
      const load = new Load(store);
      await load.askOn([process], wallet, 60_000);
      store.deposit('w', 1n, isTold);
      const paidMs = store.time.nowMs;
      while (load.admitted === 0 && store.time.nowMs < paidMs + 60_000) await load.askOn([process], wallet, 5);
      assert.ok(store.time.nowMs - paidMs <= (isTold ? 10 : 30_000), `${store.time.nowMs - paidMs} ms`);
    }
  });

  test('an answer from before a deposit that was heard of already refuses nobody', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 0n);
    const process = store.process();
    const held = heldOf(process, wallet);
    // The store has answered, and the answer is on its way.
    while (store.answered.take === 0) await store.time.run(store.time.nowMs + 0.01);
    store.deposit('w', 1n);
    assert.equal(await answerWithin(store, 100, held), 'held');
  });

  test('a deposit that is heard of while the others are asked to return what they have is served at once', async () => {
    const store = new SimulatedLeaseStore();
    const { time } = store;
    const wallet = store.quota('credit', 'w', 10n);
    const [holder, process] = [store.process(), store.process()];
    const holding = heldOf(holder, wallet, 10n);
    await time.run(100);
    assert.ok(typeof (await holding) !== 'string');
    await new Load(store).askOn([process], wallet, 5_000);
    const { revoke } = store.calls;
    let held = heldOf(process, wallet);
    while (store.calls.revoke === revoke) {
      await time.run(time.nowMs + 0.1);
      if (store.calls.revoke === revoke) held = heldOf(process, wallet);
    }
    store.deposit('w', 1_000n);
    assert.equal(await answerWithin(store, 30, held), 'held');
  });

  test('a frozen one is refused from memory too, and served as soon as it is thawed', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 1_000n);
    const process = store.process();
    store.change('w', { frozen: true });
    const load = new Load(store);
    await load.askOn([process], wallet, 60_000);
    assert.ok(store.calls.take <= 8, `${store.calls.take} calls`);
    store.change('w', { frozen: false });
    assert.equal(await answerWithin(store, 20, heldOf(process, wallet)), 'held');
  });

  test('what is left of it is lent to those who need no more, whatever larger ones were refused', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 50n);
    const process = store.process();
    for (let count = 0; count < 5; count += 1) {
      assert.equal(await answerWithin(store, 1_000, heldOf(process, wallet, 51n)), 'short');
    }
    assert.equal(await answerWithin(store, 20, heldOf(process, wallet, 50n)), 'held');
  });

  test('nothing is asked of the limits of a request whose wallet is known to be empty', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 0n);
    const places = store.quota('concurrent_requests', 'p', 5n);
    const process = store.process();
    assert.equal(await answerWithin(store, 100, heldOf(process, wallet)), 'short');
    assert.equal(await answerWithin(store, 100, heldOf(process, wallet)), 'short');
    const { take } = store.calls;
    const held = process.holdAll([
      { quota: places, amount: 1n },
      { quota: wallet, amount: 1n },
    ]);
    assert.equal(((await held) as Shortage).quota.key, 'w');
    assert.equal(store.calls.take, take);
  });
});

describe('a saturated rate', () => {
  test('a hundredfold of what it allows: about a call a second of each process, and all of it is used', async () => {
    const store = new SimulatedLeaseStore(4);
    const rate = store.quota('requests_per_minute', 'r', 120n);
    const processes = Array.from({ length: 4 }, () => store.process());
    const load = new Load(store);
    for (let second = 0; second < 130; second += 1) {
      await load.askOn(processes, rate, 1_000);
      for (const process of processes) process.tick();
    }
    assert.ok(load.admitted >= 234, `${load.admitted} admitted`);
    const { take, giveBack, revoke } = store.calls;
    assert.ok(take + giveBack + revoke < load.refused / 20, `${take}, ${giveBack}, ${revoke} for ${load.refused}`);
    assert.ok(take < load.admitted + 4 * 130, `${take} lease requests`);
  });

  test('Retry-After counts down while the refusal is remembered', async () => {
    const store = new SimulatedLeaseStore();
    const rate = store.quota('requests_per_minute', 'r', 0n);
    const process = store.process();
    const retryAfterMs = async (): Promise<number> => {
      const held = process.holdAll([{ quota: rate, amount: 1n }]);
      await store.time.run(store.time.nowMs + 300);
      return ((await held) as Shortage).retryAfterMs ?? 0;
    };
    const first = await retryAfterMs();
    const second = await retryAfterMs();
    assert.ok(second < first && second >= first - 310, `${first}, then ${second}`);
  });
});

describe('places', () => {
  test('refusals of a while ago do not count: who comes waits for what the others do not use', async () => {
    const store = new SimulatedLeaseStore();
    const { time } = store;
    const places = store.quota('concurrent_requests', 'p', 1n);
    const [holder, asker] = [store.process(), store.process()];
    const first = heldOf(holder, places);
    await time.run(time.nowMs + 100);
    const load = new Load(store);
    await load.askOn([asker], places, 5_000);
    assert.equal(load.admitted, 0);
    holder.release((await first) as Hold, 0n);
    await time.run(time.nowMs + 5_000);
    const second = heldOf(holder, places);
    await time.run(time.nowMs + 100);
    holder.release((await second) as Hold, 0n);
    await time.run(time.nowMs + 1_000);
    assert.equal(await answerWithin(store, 1_000, heldOf(asker, places)), 'held');
  });
});
