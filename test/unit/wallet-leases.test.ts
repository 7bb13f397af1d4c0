// Wallet leases against a simulated wallet: never overspent, never refused while money lies free in another process, no hold lost.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type LeaseStore, WalletLeases } from '../../src/data-plane/admission/wallet-leases.ts';

/** A wallet as Postgres keeps it, shared by several processes, with replies in random order. */
class SimulatedWallet {
  balance: bigint;
  leased = 0n;
  frozen = false;
  down = false;
  takes = 0;
  readonly processes: WalletLeases[] = [];
  constructor(balance: bigint) {
    this.balance = balance;
  }

  store(): LeaseStore {
    let mine = 0n;
    return {
      takeLease: async (_walletId, amount, minimum) => {
        await pause();
        this.takes += 1;
        if (this.down) throw new Error('database away');
        const available = this.balance - this.leased;
        const granted = this.frozen ? 0n : available >= amount ? amount : available >= minimum ? available : 0n;
        this.leased += granted;
        mine += granted;
        assert.ok(this.leased <= this.balance, 'leases never exceed the balance');
        return { granted, available: available - granted, leasedElsewhere: this.leased - mine, frozen: this.frozen };
      },
      returnLease: async (_walletId, amount) => {
        await pause();
        this.leased -= amount;
        mine -= amount;
        assert.ok(this.leased >= 0n);
      },
      recall: async (walletId) => {
        for (const process of this.processes) await process.giveBack(walletId);
      },
    };
  }

  process(): WalletLeases {
    const process = new WalletLeases(this.store(), () => 0);
    this.processes.push(process);
    return process;
  }
}

const pause = () => new Promise((resolve) => setImmediate(resolve));

describe('wallet leases', () => {
  test('the second hold comes from memory', async () => {
    const wallet = new SimulatedWallet(1_000_000n);
    const process = wallet.process();
    assert.equal(process.tryHold('w', 10n), false);
    assert.equal(await process.hold('w', 10n), null);
    assert.equal(process.tryHold('w', 10n), true);
  });

  test('500 parallel requests over 4 processes on a wallet that affords exactly 7: exactly 7', async () => {
    const wallet = new SimulatedWallet(7n * 100n + 99n);
    const processes = [wallet.process(), wallet.process(), wallet.process(), wallet.process()];
    const results = await Promise.all(Array.from({ length: 500 }, (_, index) => (processes[index % 4] as WalletLeases).hold('w', 100n)));
    assert.equal(results.filter((result) => result === null).length, 7);
    assert.equal(results.filter((result) => result === 'insufficient_credit').length, 493);
  });

  test('money that another process has leased and not used is not refused', async () => {
    const wallet = new SimulatedWallet(1_000n);
    const [first, second] = [wallet.process(), wallet.process()];
    assert.equal(await first.hold('w', 10n), null);
    assert.ok(first.totals().free > 0n, 'the first process borrowed ahead');
    first.settle('w', 10n, 10n);
    assert.equal(await second.hold('w', 990n), null);
  });

  test('settling frees the rest of the hold; what is not charged goes back to the wallet', async () => {
    const wallet = new SimulatedWallet(1_000n);
    const process = wallet.process();
    assert.equal(await process.hold('w', 600n), null);
    process.settle('w', 600n, 250n);
    await process.giveBackAll();
    assert.equal(wallet.leased, 250n);
    assert.deepEqual(process.totals(), { free: 0n, held: 0n });
  });

  test('a frozen wallet and an unreachable one say so', async () => {
    const wallet = new SimulatedWallet(1_000n);
    wallet.frozen = true;
    assert.equal(await wallet.process().hold('w', 1n), 'billing_frozen');
    wallet.frozen = false;
    wallet.down = true;
    assert.equal(await wallet.process().hold('w', 1n), 'billing_unavailable');
    wallet.down = false;
    assert.equal(await wallet.process().hold('w', 1n), null);
  });

  test('a hold of nothing needs no money', async () => {
    const wallet = new SimulatedWallet(0n);
    assert.equal(await wallet.process().hold('w', 0n), null);
  });

  test('seeded: holds and settlements over several processes keep every amount accounted for', async () => {
    for (let seed = 1; seed <= 15; seed += 1) await simulate(seed);
  });
});

async function simulate(seed: number): Promise<void> {
  const random = generator(seed);
  const wallet = new SimulatedWallet(BigInt(Math.floor(random() * 50_000)));
  const deposited = wallet.balance;
  const processes = [wallet.process(), wallet.process(), wallet.process()];
  let charged = 0n;
  await Promise.all(
    Array.from({ length: 120 }, async () => {
      const process = processes[Math.floor(random() * 3)] as WalletLeases;
      const amount = BigInt(1 + Math.floor(random() * 900));
      for (let pauses = random() * 20; pauses > 1; pauses -= 1) await pause();
      if ((await process.hold('w', amount)) !== null) return;
      await pause();
      const charge = (amount * BigInt(Math.floor(random() * 100))) / 100n;
      process.settle('w', amount, charge);
      charged += charge;
    }),
  );
  for (const process of processes) await process.giveBackAll();
  // Charges stay leased until jobs posts them.
  assert.equal(wallet.leased, charged, `seed ${seed}`);
  assert.ok(charged <= deposited, `seed ${seed}`);
}

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}
