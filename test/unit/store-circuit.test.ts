// What the circuit before the lease store makes of calls that it does not need an answer of, and of a process that
// stood still.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Quota } from '../../src/domain/quotas/lease.ts';
import { createLeaseTime } from '../../src/gateway/generation/lease-store.ts';
import type { LeaseStore } from '../../src/generation/admission/leases/lease-store.ts';
import { StoreCircuit } from '../../src/generation/admission/leases/store-circuit.ts';
import { systemClock } from '../../src/platform/clock.ts';

const LENT = {
  granted: 1n,
  grantId: 'grant',
  available: 1n,
  leasedElsewhere: 0n,
  frozen: false,
  validForMs: null,
  presentMoved: false,
  ceiling: null,
  retryAfterMs: null,
  gone: false,
} as const;
const REQUEST = { amount: 1n, minimum: 1n, present: null } as const;
const wallet = (key: string): Quota => ({ kind: 'credit', key });
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Takes are answered when `answer` resolves, revocations when they are told to. */
class OpenStore implements LeaseStore {
  readonly revoking: { readonly keys: readonly string[]; readonly end: PromiseWithResolvers<void> }[] = [];
  answer: Promise<unknown> = Promise.resolve();

  async take() {
    await this.answer;
    return LENT;
  }

  revoke(quotas: readonly Quota[]) {
    const end = Promise.withResolvers<void>();
    this.revoking.push({ keys: quotas.map(({ key }) => key), end });
    return end.promise;
  }

  async giveBack() {
    return 'done' as const;
  }

  async recover() {
    return { isDone: false } as const;
  }

  async probe() {}
}

function circuitOver(store: LeaseStore, monotonicMs = () => 0) {
  const faults: unknown[] = [];
  const time = { monotonicMs, wait: () => new Promise<void>(() => {}) };
  return { faults, circuit: new StoreCircuit(store, time, { fault: (fault) => faults.push(fault), found: () => {} }) };
}

test('what is to be revoked while a revocation is sent goes together after it; one that fails closes nothing', async () => {
  const store = new OpenStore();
  const { circuit, faults } = circuitOver(store);
  const told: [string, boolean][] = [];
  const revoke = (key: string) => void circuit.revoke(wallet(key)).then((isSent) => told.push([key, isSent]));
  revoke('a');
  await settled();
  for (const key of ['b', 'c', 'b']) revoke(key);
  await settled();
  assert.deepEqual(
    store.revoking.map(({ keys }) => keys),
    [['a']],
  );
  assert.deepEqual(await circuit.take(wallet('d'), REQUEST, 1), LENT);
  store.revoking[0]?.end.reject(new Error('to notify took too long'));
  await settled();
  store.revoking[1]?.end.resolve();
  await settled();
  assert.deepEqual(
    store.revoking.map(({ keys }) => keys),
    [['a'], ['b', 'c']],
  );
  assert.deepEqual(told, [
    ['a', false],
    ['b', true],
    ['c', true],
    ['b', true],
  ]);
  assert.equal(faults.length, 1);
  assert.equal(circuit.isAway(), false);
});

test('a revocation that hangs holds up the next ones for two seconds', async () => {
  const store = new OpenStore();
  const waits: (() => void)[] = [];
  const time = { monotonicMs: () => 0, wait: () => new Promise<void>((resolve) => waits.push(resolve)) };
  const circuit = new StoreCircuit(store, time, { fault: () => {}, found: () => {} });
  for (const key of ['a', 'b']) {
    void circuit.revoke(wallet(key));
    await settled();
  }
  assert.equal(store.revoking.length, 1);
  waits[0]?.();
  await settled();
  assert.deepEqual(
    store.revoking.map(({ keys }) => keys),
    [['a'], ['b']],
  );
});

test('a deadline that passed while the process stood still lets an answer count that has come meanwhile', async () => {
  const order: string[] = [];
  const late = createLeaseTime(systemClock)
    .wait(5)
    .then(() => order.push('deadline'));
  // What sockets have is handed on after the timers and before these.
  setImmediate(() => order.push('answer'));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30);
  await late;
  assert.deepEqual(order, ['answer', 'deadline']);
});

test('a wait is over no earlier than it should be, though timers count whole milliseconds', async () => {
  const time = createLeaseTime(systemClock);
  const early: number[] = [];
  // The timers of leases do not keep a process alive.
  const alive = setInterval(() => undefined, 1_000);
  for (let count = 0; count < 40; count += 1) {
    const untilMs = time.monotonicMs() + 3 + count / 40;
    await time.wait(untilMs - time.monotonicMs());
    if (time.monotonicMs() < untilMs) early.push(untilMs - time.monotonicMs());
  }
  clearInterval(alive);
  assert.deepEqual(early, []);
});
