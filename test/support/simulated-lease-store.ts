// A lease store that behaves like Postgres (wallets, limits of open requests, rates), shared by simulated processes,
// under a clock that the test controls. By a seed, answers take their time, come in another order, are lost before or
// after they took effect, or take effect long after that.

import assert from 'node:assert/strict';
import {
  isRate,
  type LeaseAnswer,
  type LeaseRequest,
  type NotDone,
  type Quota,
  type RecoveredCall,
} from '../../src/domain/quotas/lease.ts';
import type { LeaseStore } from '../../src/generation/admission/leases/lease-store.ts';
import { QuotaLeases } from '../../src/generation/admission/leases/quota-leases.ts';
import { seededRandom } from './byte-splits.ts';

/** A clock that advances only in `run`. */
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

  /** Runs all events that are due until then, in order. */
  async run(untilMs: number): Promise<void> {
    for (;;) {
      await drained();
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

/** Resolves when nothing more happens unless time passes. */
function drained(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const RATE_SPAN_SECONDS = 60;
const LOCK_TIMEOUT_MS = 200;
/** How exactly a waiting call sees the end of a lock. */
const LOCK_STEP_MS = 5;

interface StoredQuota {
  readonly kind: Quota['kind'];
  size: bigint;
  frozen: boolean;
  gone: boolean;
  /** The leased amount by process; for rates, by label and process. */
  readonly leased: Map<string, bigint>;
  /**
   * The last numbered call of each process, and the amount that it was granted; null: the call was not done, and never
   * will be.
   */
  readonly lastCalls: Map<number, { readonly call: number; readonly granted: bigint | null }>;
}

/** The longest time after which a call with a lost answer still takes effect. */
const LATE_MS_MAX = 3_000;

export class SimulatedLeaseStore {
  readonly time = new SimulatedTime();
  readonly processes: QuotaLeases[] = [];
  /** How the server is away: connections are refused, calls hang, or only probes are answered. */
  away: 'no' | 'refused' | 'hangs' | 'only reads' = 'no';
  /** Wallets and limits that another process has locked: calls about them give up after a while. */
  readonly locked = new Set<string>();
  /** The probability that another process has locked what a call is about. */
  lockRate = 0;
  /** Wallets and limits for which the store refuses every call. */
  readonly refused = new Set<string>();
  /** The probability that the answer to a call is lost, before or after it took effect. */
  lossRate = 0;
  readonly calls = { take: 0, giveBack: 0, recover: 0, revoke: 0, probe: 0 };
  /** The least time that the server needs for a return, as when commits of others are slow. */
  giveBackMs = 0;
  /** The least time that answers other than to a return take on their way, as on a busy machine. */
  answerMs = 0;
  /**
   * The least time that the server needs to notify all processes of a revocation, as when commits of others are slow.
   */
  notifyMs = 0;
  /** The least time that the other processes need to receive it. */
  hearMs = 0;
  /** The store cannot notify at all. */
  isMute = false;
  /** The calls that have taken effect, and whose answers have at least been sent. */
  readonly answered = { take: 0, giveBack: 0, recover: 0, revoke: 0, probe: 0 };
  private readonly quotas = new Map<string, StoredQuota>();
  private readonly random: () => number;

  constructor(seed = 1) {
    this.random = seededRandom(seed);
  }

  quota(kind: Quota['kind'], key: string, size: bigint): Quota {
    this.quotas.set(key, { kind, size, frozen: false, gone: false, leased: new Map(), lastCalls: new Map() });
    return { kind, key };
  }

  change(key: string, change: Partial<Pick<StoredQuota, 'size' | 'frozen' | 'gone'>>, isTold = true): void {
    Object.assign(this.of(key), change);
    if (isTold) for (const process of this.processes) process.withdraw(key);
  }

  /** Puts money into a wallet; `isTold`: every process hears of it. */
  deposit(key: string, amount: bigint, isTold = true): void {
    this.of(key).size += amount;
    if (isTold) for (const process of this.processes) process.expectRoom(key);
  }

  /** The amount that all processes together have leased. */
  leased(key: string): bigint {
    return this.sum(this.of(key), () => true);
  }

  /** A record was posted: its charge leaves the wallet and the lease. */
  post(key: string, index: number, charge: bigint): void {
    const quota = this.of(key);
    quota.size -= charge;
    quota.leased.set(`${index}`, (quota.leased.get(`${index}`) ?? 0n) - charge);
  }

  process(): QuotaLeases {
    const index = this.processes.length;
    const leases = new QuotaLeases(this.storeOf(index), this.time, (fault) => {
      throw fault;
    });
    this.processes.push(leases);
    return leases;
  }

  private storeOf(index: number): LeaseStore {
    return {
      take: (quota, request, call) => this.call('take', () => this.take(index, quota, request, call), quota),
      giveBack: (quota, grantId, amount, call) =>
        this.call(
          'giveBack',
          () => {
            this.giveBack(index, quota, { grantId, amount, call });
            return 'done' as const;
          },
          quota,
        ),
      recover: (quota, call) => this.call('recover', () => this.recover(index, quota, call), quota),
      revoke: async (quotas) => {
        await this.time.wait(this.notifyMs);
        if (this.isMute) throw new Error('too many notifications in the NOTIFY queue');
        return this.call('revoke', () => {
          for (const quota of quotas) this.revoke(index, quota);
        });
      },
      probe: () => this.call('probe', () => undefined),
    };
  }

  private async call<T>(name: 'take' | 'giveBack' | 'recover', act: () => T, quota: Quota): Promise<T | NotDone>;
  private async call<T>(name: 'revoke' | 'probe', act: () => T): Promise<T>;
  private async call<T>(name: keyof SimulatedLeaseStore['calls'], act: () => T, quota?: Quota): Promise<T | NotDone> {
    this.calls[name] += 1;
    if (quota !== undefined && this.refused.has(quota.key)) return 'refused';
    const givesUpAtMs = this.time.nowMs + LOCK_TIMEOUT_MS;
    while (quota !== undefined && this.locked.has(quota.key)) {
      if (this.time.nowMs >= givesUpAtMs) return 'busy';
      await this.time.wait(LOCK_STEP_MS);
    }
    if (this.lockRate > 0 && quota !== undefined && this.random() < this.lockRate) {
      await this.time.wait(LOCK_TIMEOUT_MS);
      return 'busy';
    }
    if (this.away === 'only reads' && name !== 'probe') throw new Error('cannot execute in a read-only transaction');
    if (this.away === 'refused') throw new Error('connection refused');
    if (this.away === 'hangs') return new Promise<never>(() => undefined);
    const isLost = this.random() < this.lossRate;
    const effect = isLost ? (['none', 'now', 'late'] as const)[Math.floor(this.random() * 3)] : 'now';
    await this.time.wait((name === 'giveBack' ? this.giveBackMs : 0) + this.random() * 4);
    if (effect === 'late') this.time.at(this.time.nowMs + this.random() * LATE_MS_MAX, act);
    if (effect !== 'now') throw new Error('connection lost before the call');
    const result = act();
    this.answered[name] += 1;
    await this.time.wait((name === 'giveBack' ? 0 : this.answerMs) + this.random() * 4);
    if (isLost) throw new Error('connection lost after the call');
    return result;
  }

  private take(index: number, { key }: Quota, request: LeaseRequest, call: number): LeaseAnswer {
    assert.ok(request.minimum >= 0n && request.minimum <= request.amount, 'need 0 <= minimum <= amount');
    const quota = this.of(key);
    return isRate(quota.kind) ? this.takeRate(index, key, quota, request) : this.takeLease(index, key, request, call);
  }

  private takeLease(index: number, key: string, { amount, minimum }: LeaseRequest, call: number): LeaseAnswer {
    const quota = this.of(key);
    const total = this.sum(quota, () => true);
    const own = quota.leased.get(`${index}`) ?? 0n;
    const isOver = (quota.lastCalls.get(index)?.call ?? 0) >= call;
    const left = isOver || quota.frozen || quota.size < total ? 0n : quota.size - total;
    const granted = left >= amount ? amount : left >= minimum ? left : 0n;
    if (granted > 0n) {
      quota.leased.set(`${index}`, own + granted);
      quota.lastCalls.set(index, { call, granted });
    }
    return {
      granted,
      grantId: key,
      validForMs: null,
      presentMoved: false,
      available: left - granted,
      leasedElsewhere: total - own,
      frozen: quota.frozen,
      ceiling: quota.kind === 'credit' ? null : quota.size,
      retryAfterMs: null,
      gone: quota.gone,
    };
  }

  /** Takes from a rate in the same way as migration 0010. */
  private takeRate(
    index: number,
    key: string,
    quota: StoredQuota,
    { amount, minimum, present }: LeaseRequest,
  ): LeaseAnswer {
    const second = Math.floor(this.time.nowMs / 1_000);
    const load = this.sum(quota, (label) => label >= second - RATE_SPAN_SECONDS);
    const left = quota.size > load ? quota.size - load : 0n;
    const granted = left >= amount ? amount : left >= minimum ? left : 0n;
    const elsewhere = this.sum(quota, (label, process) => label >= second && process !== index);
    const base = { leasedElsewhere: elsewhere, frozen: false, ceiling: quota.size, gone: quota.gone };
    if (granted === 0n)
      return {
        ...base,
        granted,
        grantId: key,
        validForMs: null,
        presentMoved: false,
        available: left,
        retryAfterMs: 1_000,
      };
    const loaded = load + granted;
    const label =
      second + (2n * loaded >= quota.size ? 1 : 1 + Number((14n * (quota.size - 2n * loaded)) / quota.size));
    let moved = 0n;
    if (present !== null) {
      const from = `${present.grantId.split('@')[1]}/${index}`;
      const there = quota.leased.get(from) ?? 0n;
      moved = present.available < there ? present.available : there;
      quota.leased.set(from, there - moved);
    }
    const name = `${label}/${index}`;
    quota.leased.set(name, (quota.leased.get(name) ?? 0n) + granted + moved);
    const validForMs = (label + 1) * 1_000 - this.time.nowMs;
    return {
      ...base,
      granted,
      grantId: `${key}@${label}`,
      validForMs,
      presentMoved: present !== null,
      available: left - granted,
      retryAfterMs: null,
    };
  }

  private giveBack(
    index: number,
    { key }: Quota,
    { grantId, amount, call }: { readonly grantId: string; readonly amount: bigint; readonly call: number },
  ): void {
    const quota = this.of(key);
    const label = grantId.split('@')[1];
    if (label === undefined) {
      if ((quota.lastCalls.get(index)?.call ?? 0) >= call) return;
      quota.lastCalls.set(index, { call, granted: 0n });
    }
    const name = label === undefined ? `${index}` : `${label}/${index}`;
    const left = (quota.leased.get(name) ?? 0n) - amount;
    assert.ok(left >= 0n, `more is returned than was leased: ${key}, ${grantId}`);
    quota.leased.set(name, left);
  }

  private recover(index: number, { key }: Quota, call: number): RecoveredCall {
    const { lastCalls } = this.of(key);
    const last = lastCalls.get(index);
    if (last?.call === call && last.granted !== null) return { isDone: true, granted: last.granted, grantId: key };
    if (last === undefined || last.call < call) lastCalls.set(index, { call, granted: null });
    return { isDone: false };
  }

  private revoke(from: number, { key }: Quota): void {
    for (const [index, process] of this.processes.entries()) {
      if (index !== from) this.time.at(this.time.nowMs + this.hearMs + this.random() * 10, () => process.revoke(key));
    }
  }

  private of(key: string): StoredQuota {
    const quota = this.quotas.get(key);
    assert.ok(quota !== undefined, `no quota ${key}`);
    return quota;
  }

  private sum(quota: StoredQuota, counts: (label: number, process: number) => boolean): bigint {
    let total = 0n;
    for (const [name, amount] of quota.leased) {
      const [label = '', process = '-1'] = name.split('/');
      if (counts(Number(label), Number(process))) total += amount;
    }
    return total;
  }
}
