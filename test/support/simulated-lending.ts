// A lending store as Postgres keeps it (wallets, limits of open requests, rates), shared by simulated processes, under
// a clock that a test owns: answers take their time, come in another order, or are lost before or after they took
// effect, by a seed.

import assert from 'node:assert/strict';
import { AllowanceLeases } from '../../src/generation/admission/allowance-leases.ts';
import type {
  AllowanceStore,
  LendingAnswer,
  LendingWish,
  NotDone,
  Pool,
} from '../../src/generation/admission/allowance-store.ts';
import { seededRandom } from './byte-splits.ts';

/** Time that passes only where `run` lets it. */
class SimulatedTime {
  nowMs = 0;
  private readonly due: { readonly atMs: number; readonly order: number; readonly happen: () => void }[] = [];
  private order = 0;

  monotonicMs(): number {
    return this.nowMs;
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.at(this.nowMs + ms, resolve));
  }

  at(atMs: number, happen: () => void): void {
    this.order += 1;
    this.due.push({ atMs, order: this.order, happen });
  }

  /** Lets everything happen that is due until then, in order. */
  async run(untilMs: number): Promise<void> {
    for (;;) {
      await settle();
      let next = -1;
      for (const [index, event] of this.due.entries()) {
        const first = this.due[next];
        if (first === undefined || event.atMs < first.atMs || (event.atMs === first.atMs && event.order < first.order))
          next = index;
      }
      const event = this.due[next];
      if (event === undefined || event.atMs > untilMs) break;
      this.due.splice(next, 1);
      this.nowMs = Math.max(this.nowMs, event.atMs);
      event.happen();
    }
    this.nowMs = untilMs;
  }
}

/** Until nothing more happens without time passing. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const RATE_SPAN_SECONDS = 60;
const LOCK_TIMEOUT_MS = 200;

interface LentPool {
  readonly kind: Pool['kind'];
  size: bigint;
  frozen: boolean;
  gone: boolean;
  /** Outstanding by process; of rates, by label and process. */
  readonly leased: Map<string, bigint>;
}

export class SimulatedLending {
  readonly time = new SimulatedTime();
  readonly processes: AllowanceLeases[] = [];
  /** The server does not answer: connections are refused, or calls hang. */
  away: 'no' | 'refused' | 'hangs' = 'no';
  /** Wallets and limits that somebody else has locked: calls about them are given up after a while. */
  readonly locked = new Set<string>();
  /** Chance that somebody else has locked what a call is about. */
  lockRate = 0;
  /** Wallets and limits of which the store refuses every call. */
  readonly refused = new Set<string>();
  /** Chance that the answer to a call is lost, before it took effect or after. */
  lossRate = 0;
  readonly calls = { take: 0, giveBack: 0, recall: 0, probe: 0 };
  private readonly pools = new Map<string, LentPool>();
  private readonly random: () => number;

  constructor(seed = 1) {
    this.random = seededRandom(seed);
  }

  pool(kind: Pool['kind'], key: string, size: bigint): Pool {
    this.pools.set(key, { kind, size, frozen: false, gone: false, leased: new Map() });
    return { kind, key };
  }

  change(key: string, change: Partial<Pick<LentPool, 'size' | 'frozen' | 'gone'>>): void {
    Object.assign(this.of(key), change);
    for (const process of this.processes) process.callBack(key);
  }

  /** What all processes together have of it. */
  leased(key: string): bigint {
    return this.sum(this.of(key), () => true);
  }

  /** A record was posted: its charge leaves the wallet and the lease. */
  post(key: string, index: number, charge: bigint): void {
    const pool = this.of(key);
    pool.size -= charge;
    pool.leased.set(`${index}`, (pool.leased.get(`${index}`) ?? 0n) - charge);
  }

  process(): AllowanceLeases {
    const index = this.processes.length;
    const leases = new AllowanceLeases(this.storeOf(index), this.time, (fault) => {
      throw fault;
    });
    this.processes.push(leases);
    return leases;
  }

  private storeOf(index: number): AllowanceStore {
    return {
      take: (pool, wish) => this.call('take', () => this.take(index, pool, wish), pool),
      giveBack: (pool, grantId, amount) =>
        this.call(
          'giveBack',
          () => {
            this.giveBack(index, pool, grantId, amount);
            return 'done' as const;
          },
          pool,
        ),
      recall: (pool) => this.call('recall', () => this.recall(index, pool)),
      probe: () => this.call('probe', () => undefined),
    };
  }

  private async call<T>(name: 'take' | 'giveBack', act: () => T, pool: Pool): Promise<T | NotDone>;
  private async call<T>(name: 'recall' | 'probe', act: () => T): Promise<T>;
  private async call<T>(name: keyof SimulatedLending['calls'], act: () => T, pool?: Pool): Promise<T | NotDone> {
    this.calls[name] += 1;
    if (pool !== undefined && this.refused.has(pool.key)) return 'refused';
    if (pool !== undefined && this.locked.has(pool.key)) await this.time.wait(LOCK_TIMEOUT_MS);
    if (pool !== undefined && this.locked.has(pool.key)) return 'busy';
    if (this.lockRate > 0 && pool !== undefined && this.random() < this.lockRate) {
      await this.time.wait(LOCK_TIMEOUT_MS);
      return 'busy';
    }
    if (this.away === 'refused') throw new Error('connection refused');
    if (this.away === 'hangs') return new Promise<never>(() => undefined);
    const isLost = this.random() < this.lossRate;
    const tookEffect = this.random() < 0.5;
    await this.time.wait(this.random() * 4);
    if (isLost && !tookEffect) throw new Error('connection lost before the call');
    const result = act();
    await this.time.wait(this.random() * 4);
    if (isLost) throw new Error('connection lost after the call');
    return result;
  }

  private take(index: number, { key }: Pool, wish: LendingWish): LendingAnswer {
    assert.ok(wish.minimum >= 0n && wish.minimum <= wish.amount, 'need 0 <= minimum <= amount');
    const pool = this.of(key);
    const isRate = pool.kind === 'requests_per_minute' || pool.kind === 'tokens_per_minute';
    return isRate ? this.takeRate(index, key, pool, wish) : this.takeLease(index, key, pool, wish);
  }

  private takeLease(index: number, key: string, pool: LentPool, { amount, minimum }: LendingWish): LendingAnswer {
    const total = this.sum(pool, () => true);
    const own = pool.leased.get(`${index}`) ?? 0n;
    const lendable = pool.frozen || pool.size < total ? 0n : pool.size - total;
    const granted = lendable >= amount ? amount : lendable >= minimum ? lendable : 0n;
    if (granted > 0n) pool.leased.set(`${index}`, own + granted);
    return {
      granted,
      grantId: key,
      validForMs: null,
      presentMoved: false,
      available: lendable - granted,
      leasedElsewhere: total - own,
      frozen: pool.frozen,
      ceiling: pool.kind === 'credit' ? null : pool.size,
      retryAfterMs: null,
      gone: pool.gone,
    };
  }

  /** As migration 0010 does it. */
  private takeRate(
    index: number,
    key: string,
    pool: LentPool,
    { amount, minimum, present }: LendingWish,
  ): LendingAnswer {
    const second = Math.floor(this.time.nowMs / 1_000);
    const load = this.sum(pool, (label) => label >= second - RATE_SPAN_SECONDS);
    const lendable = pool.size > load ? pool.size - load : 0n;
    const granted = lendable >= amount ? amount : lendable >= minimum ? lendable : 0n;
    const elsewhere = this.sum(pool, (label, process) => label >= second && process !== index);
    const base = { leasedElsewhere: elsewhere, frozen: false, ceiling: pool.size, gone: pool.gone };
    if (granted === 0n)
      return {
        ...base,
        granted,
        grantId: key,
        validForMs: null,
        presentMoved: false,
        available: lendable,
        retryAfterMs: 1_000,
      };
    const loaded = load + granted;
    const label = second + (2n * loaded >= pool.size ? 1 : 1 + Number((14n * (pool.size - 2n * loaded)) / pool.size));
    let moved = 0n;
    if (present !== null) {
      const from = `${present.grantId.split('@')[1]}/${index}`;
      const there = pool.leased.get(from) ?? 0n;
      moved = present.free < there ? present.free : there;
      pool.leased.set(from, there - moved);
    }
    const name = `${label}/${index}`;
    pool.leased.set(name, (pool.leased.get(name) ?? 0n) + granted + moved);
    const validForMs = (label + 1) * 1_000 - this.time.nowMs;
    return {
      ...base,
      granted,
      grantId: `${key}@${label}`,
      validForMs,
      presentMoved: present !== null,
      available: lendable - granted,
      retryAfterMs: null,
    };
  }

  private giveBack(index: number, { key }: Pool, grantId: string, amount: bigint): void {
    const pool = this.of(key);
    const label = grantId.split('@')[1];
    const name = label === undefined ? `${index}` : `${label}/${index}`;
    const left = (pool.leased.get(name) ?? 0n) - amount;
    assert.ok(left >= 0n, `more is given back than was lent: ${key}, ${grantId}`);
    pool.leased.set(name, left);
  }

  private recall(from: number, { key }: Pool): void {
    for (const [index, process] of this.processes.entries()) {
      if (index !== from) this.time.at(this.time.nowMs + this.random() * 10, () => process.callBack(key));
    }
  }

  private of(key: string): LentPool {
    const pool = this.pools.get(key);
    assert.ok(pool !== undefined, `no pool ${key}`);
    return pool;
  }

  private sum(pool: LentPool, counts: (label: number, process: number) => boolean): bigint {
    let total = 0n;
    for (const [name, amount] of pool.leased) {
      const [label = '', process = '-1'] = name.split('/');
      if (counts(Number(label), Number(process))) total += amount;
    }
    return total;
  }
}
