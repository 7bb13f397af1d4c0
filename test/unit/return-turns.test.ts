// Thousands of leases that are returned in the same instant: a few calls at once, and nobody who needs a lease waits
// for them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LeaseStore } from '../../src/generation/admission/leases/lease-store.ts';
import { QuotaLeases } from '../../src/generation/admission/leases/quota-leases.ts';

const LEASES = 400;
const LENT = {
  available: 1_000_000n,
  leasedElsewhere: 0n,
  frozen: false,
  validForMs: null,
  presentMoved: false,
} as const;

/** A store whose calls are answered one by one, when it is told to. */
class SlowStore implements LeaseStore {
  readonly returned = new Map<string, bigint>();
  readonly open: (() => void)[] = [];
  mostAtOnce = 0;
  isSlow = false;

  async take({ key }: { key: string }, { amount }: { amount: bigint }) {
    return { ...LENT, granted: amount, grantId: key, ceiling: null, retryAfterMs: null, gone: false };
  }

  async giveBack({ key }: { key: string }, _grantId: string, amount: bigint) {
    if (this.isSlow)
      await new Promise<void>((resolve) => {
        this.open.push(resolve);
        this.mostAtOnce = Math.max(this.mostAtOnce, this.open.length);
      });
    this.returned.set(key, (this.returned.get(key) ?? 0n) + amount);
    return 'done' as const;
  }

  recover(): Promise<never> {
    return Promise.reject(new Error('no answer is lost here'));
  }

  async revoke() {}
  async probe() {}
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

async function openLeases(): Promise<{ store: SlowStore; leases: QuotaLeases }> {
  const store = new SlowStore();
  const time = { monotonicMs: () => 1, wait: () => new Promise<void>(() => {}) };
  const leases = new QuotaLeases(store, time, (fault) => assert.fail(String(fault)));
  for (let index = 0; index < LEASES; index++) await holdAndRelease(leases, `wallet-${index}`);
  await settled();
  store.isSlow = true;
  return { store, leases };
}

async function holdAndRelease(leases: QuotaLeases, key: string): Promise<void> {
  const holds = await leases.holdAll([{ quota: { kind: 'credit', key }, amount: 10n }]);
  assert.ok(Array.isArray(holds), key);
  for (const hold of holds) leases.release(hold, 0n);
}

async function answerAll(store: SlowStore): Promise<void> {
  while (store.open.length > 0) {
    store.open.shift()?.();
    await settled();
  }
}

test('all leases are returned, a few at a time, and another request does not wait for them', async () => {
  const { store, leases } = await openLeases();
  leases.renewAll();
  leases.tick();
  await settled();
  assert.equal(store.mostAtOnce, 2);
  await holdAndRelease(leases, 'another wallet');
  await answerAll(store);
  assert.equal(store.mostAtOnce, 2);
  assert.equal(store.returned.size, LEASES);
});

test('a request on a lease whose turn is far does not wait for it', async () => {
  const { store, leases } = await openLeases();
  leases.renewAll();
  await settled();
  const held = holdAndRelease(leases, `wallet-${LEASES - 1}`);
  await settled();
  assert.equal(store.open.length, 3, 'its return is sent at once, before it asks anew');
  store.open.pop()?.();
  await held;
  await answerAll(store);
  assert.equal(store.returned.size, LEASES);
});

test('at the end of a process each has been returned', async () => {
  const { store, leases } = await openLeases();
  const end = leases.returnAll();
  await settled();
  await answerAll(store);
  await end;
  assert.equal(store.returned.size, LEASES);
});

test('afterwards as much is leased ahead as before: nobody was short', async () => {
  let nowMs = 1;
  const asked: bigint[] = [];
  class AskedStore extends SlowStore {
    override take(quota: { key: string }, request: { amount: bigint }) {
      asked.push(request.amount);
      return super.take(quota, request);
    }
  }
  const time = { monotonicMs: () => nowMs, wait: () => new Promise<void>(() => {}) };
  const leases = new QuotaLeases(new AskedStore(), time, (fault) => assert.fail(String(fault)));
  const ask = async (): Promise<void> => {
    await holdAndRelease(leases, 'wallet');
    await settled();
  };
  await ask();
  await ask();
  const before = asked.at(-1);
  asked.length = 0;
  leases.renewAll();
  await settled();
  assert.deepEqual(asked, [before], 'at once, should the store go away once more');
  // Another process that is short is what makes leases small.
  leases.revoke('wallet');
  await settled();
  nowMs += 3_000;
  asked.length = 0;
  await ask();
  assert.deepEqual(new Set(asked), new Set([10n]));
});
