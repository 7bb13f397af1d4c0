// All leases of this process, of wallets and limits alike: requests hold what they need in memory, and the store is
// asked only where that does not suffice (lease-calls.ts). A request holds all that it needs at one instant or nothing
// at all, so a request that waits holds nothing.
//
//   try to hold all ──► admitted            for each wallet or limit one call to the store at a time:
//      ▲   └──► wait at the first lease        lease request ──► enough: those that wait try again
//      │        that is short ─────────────►      ▲        └───► short: revoke, wait a moment and ask again, or refuse
//      └──────────────────────────────────────────┘

import type { Quota, QuotaKind } from '../../../domain/quotas/lease.ts';
import { LeaseCalls, unavailable } from './lease-calls.ts';
import type { LeaseStore, LeaseTime } from './lease-store.ts';
import { CONTENDED_MS, type Hold, QuotaLease } from './quota-lease.ts';
import type { Shortage } from './remembered-refusal.ts';

/** What a request needs of one wallet or limit. */
export interface QuotaNeed {
  readonly quota: Quota;
  readonly amount: bigint;
  /** The limit's amount as the request's principal knows it; absent for a wallet. */
  readonly ceiling?: bigint;
}

/** A request is refused after this many attempts, in each of which other requests took what it had waited for. */
const ATTEMPTS_MAX = 64;
/** The rest of a process's shutdown waits for the returns this long at most. */
const RETURN_ALL_MS_MAX = 5_000;
/** Shared by all requests and never modified. */
const NO_HOLDS: Hold[] = [];

type Answered = (result: readonly Hold[] | Shortage) => void;

export class QuotaLeases {
  private readonly calls: LeaseCalls;
  private readonly time: LeaseTime;
  private readonly leases = new Map<string, QuotaLease>();
  /** When revocations came for quotas that this process has no lease of, by key. A lease made later obeys them too. */
  private readonly earlyRevocations = new Map<string, number>();
  /** All leases are to be renewed as soon as the store answers. */
  private isRenewalDue = false;

  /** `onFault` is told of faults that only a bug can cause, `onStoreFault` why the store could not be asked. */
  constructor(
    store: LeaseStore,
    time: LeaseTime,
    onFault: (fault: unknown) => void,
    onStoreFault: (fault: unknown) => void = () => undefined,
  ) {
    this.calls = new LeaseCalls(store, time, onFault, { fault: onStoreFault, found: () => this.onStoreFound() });
    this.time = time;
  }

  /** Holds every need, in this order, or nothing. Synchronous unless the store must be asked. */
  holdAll(needs: readonly QuotaNeed[]): readonly Hold[] | Promise<readonly Hold[] | Shortage> {
    const held = this.tryAll(needs);
    return typeof held === 'number' ? this.holdLater(held, needs) : held;
  }

  private holdLater(index: number, needs: readonly QuotaNeed[]): Promise<readonly Hold[] | Shortage> {
    return new Promise((resolve) => this.waitAt(index, needs, resolve, 1));
  }

  /** The holds, or the index of the first need that memory cannot meet; then nothing is held. */
  private tryAll(needs: readonly QuotaNeed[]): readonly Hold[] | number {
    const nowMs = this.time.monotonicMs();
    let holds: Hold[] = NO_HOLDS;
    for (let index = 0; index < needs.length; index += 1) {
      const { quota, amount } = needs[index] as QuotaNeed;
      const lease = this.leaseOf(quota, nowMs);
      // A lease that must be renewed may be of a frozen wallet or a lowered limit: it serves only while the store is
      // away.
      const hold = this.calls.mustRenew(lease) ? null : lease.hold(amount, nowMs);
      if (hold === null) {
        for (const earlier of holds) earlier.lease.release(earlier, 0n, nowMs);
        return index;
      }
      // Most requests have one hold, and an array that grows reserves room for seventeen.
      if (index === 0) holds = [hold];
      else holds.push(hold);
    }
    for (const { lease, grant } of holds) {
      if (grant === null || !lease.needsRefill(nowMs)) continue;
      lease.wantsRefill = true;
      this.calls.work(lease);
    }
    return holds;
  }

  private waitAt(index: number, needs: readonly QuotaNeed[], answered: Answered, attempts: number): void {
    const { quota, amount } = needs[index] as QuotaNeed;
    if (this.calls.isStoreAway() || attempts > ATTEMPTS_MAX) {
      answered(unavailable(quota));
      return;
    }
    const nowMs = this.time.monotonicMs();
    // The store is not asked for one need when this or a later need is refused from memory anyway.
    for (const { quota: further, amount: needed, ceiling } of needs.slice(index)) {
      const shortage = this.leases.get(further.key)?.rememberedShortage(needed, nowMs, ceiling) ?? null;
      if (shortage !== null) {
        answered(shortage);
        return;
      }
    }
    const lease = this.leaseOf(quota, nowMs);
    // While a request waits for one lease, the amounts it needs of the earlier leases stay reserved for it. Without
    // this, two revoked leases could each be returned while the request waits for the other. Processes cannot block
    // each other with reserved amounts, since all hold quotas in the same order.
    const found = needs.slice(0, index).map((need) => ({ lease: this.leaseOf(need.quota, nowMs), need }));
    for (const { lease: earlier, need } of found) earlier.reserved += need.amount;
    const resume = (shortage: Shortage | null): void => {
      for (const { lease: earlier, need } of found) earlier.reserved -= need.amount;
      if (shortage !== null) {
        for (const { lease: earlier } of found) this.returnIfRevoked(earlier, this.time.monotonicMs());
        answered(shortage);
        return;
      }
      const held = this.tryAll(needs);
      if (typeof held === 'number') this.waitAt(held, needs, answered, attempts + 1);
      else answered(held);
    };
    lease.waiters.push({ need: amount, requestsSentBefore: lease.requestsSent, cameAtMs: nowMs, resume });
    this.calls.work(lease);
  }

  private leaseOf(quota: Quota, nowMs: number): QuotaLease {
    let lease = this.leases.get(quota.key);
    if (lease === undefined) {
      lease = new QuotaLease(quota, nowMs);
      this.leases.set(quota.key, lease);
      const revokedAtMs = this.earlyRevocations.get(quota.key);
      if (revokedAtMs !== undefined) lease.revoke(revokedAtMs);
      this.earlyRevocations.delete(quota.key);
    }
    return lease;
  }

  /** Ends a hold. `used` is spent; the rest is available again, or returned to the store. */
  release(hold: Hold, used: bigint): void {
    const { lease } = hold;
    const nowMs = this.time.monotonicMs();
    lease.release(hold, used, nowMs);
    if (lease.waiters.length > 0) this.calls.serve(lease);
    if (hold.grant !== null && lease.isWithdrawn(hold.grant)) this.calls.work(lease);
    this.returnIfRevoked(lease, nowMs);
  }

  private returnIfRevoked(lease: QuotaLease, nowMs: number): void {
    if (!lease.isRevoked(nowMs)) return;
    lease.returnUnreserved();
    this.calls.work(lease);
  }

  /** Another process is short: the available amount is returned, and for a while everything that requests release. */
  revoke(key: string): void {
    const nowMs = this.time.monotonicMs();
    const lease = this.leases.get(key);
    if (lease === undefined) {
      this.earlyRevocations.set(key, nowMs);
      return;
    }
    lease.revoke(nowMs);
    this.calls.work(lease);
  }

  /**
   * The wallet was frozen or the limit lowered: the available amount is returned now, and held amounts when released.
   */
  withdraw(key: string): void {
    const lease = this.leases.get(key);
    lease?.withdraw(this.time.monotonicMs());
    this.expectRoom(key);
    if (lease !== undefined) this.calls.work(lease);
  }

  /** The quota may have room again, so the next request asks the store. */
  expectRoom(key: string): void {
    this.leases.get(key)?.expectRoom(this.time.monotonicMs());
  }

  /**
   * Renews all leases, since notifications about wallets and limits may have been missed. The listener may be connected
   * while the store cannot be asked for leases. Until the store answers nothing is returned, since it could not be
   * leased again.
   */
  renewAll(): void {
    this.isRenewalDue = true;
    this.calls.probeStore();
  }

  private onStoreFound(): void {
    const nowMs = this.time.monotonicMs();
    for (const lease of this.leases.values()) {
      if (this.isRenewalDue || lease.isIdle(nowMs)) lease.expectRenewal(nowMs);
    }
    this.isRenewalDue = false;
    this.sendDue();
  }

  /** Called from the coarse clock: returns what has expired or is idle, and forgets what is empty. */
  tick(): void {
    const nowMs = this.time.monotonicMs();
    let isOneIdle = false;
    for (const [key, revokedAtMs] of this.earlyRevocations)
      if (nowMs - revokedAtMs > CONTENDED_MS) this.earlyRevocations.delete(key);
    for (const [key, lease] of this.leases) {
      lease.returnExpired(nowMs);
      isOneIdle ||= lease.isIdle(nowMs);
      if (lease.isEmpty(nowMs)) this.leases.delete(key);
    }
    // An idle lease is returned only after the store has answered (`onStoreFound`). The store may be away unnoticed,
    // and then the lease could not be leased again.
    if (isOneIdle) this.calls.probeStore();
    this.sendDue();
  }

  private sendDue(): void {
    for (const lease of this.leases.values()) if (lease.hasCallsDue()) this.calls.returnQueue.add(lease);
  }

  /**
   * Returns everything that is available at the end of a process. What takes longer than RETURN_ALL_MS_MAX returns when
   * the process's epoch is closed.
   */
  async returnAll(): Promise<void> {
    await Promise.race([this.returnEach(), this.time.wait(RETURN_ALL_MS_MAX)]);
  }

  private async returnEach(): Promise<void> {
    await this.untilIdle();
    for (const lease of this.leases.values()) {
      lease.returnForGood();
      this.calls.returnQueue.add(lease);
    }
    await this.calls.returnQueue.sendAll();
    await this.untilIdle();
  }

  private async untilIdle(): Promise<void> {
    for (const { work } of this.leases.values()) await work;
  }

  /** Sums over all wallets and limits of a kind, for metrics. */
  totals(kind: QuotaKind): { readonly available: bigint; readonly held: bigint } {
    const nowMs = this.time.monotonicMs();
    let available = 0n;
    let held = 0n;
    for (const lease of this.leases.values()) {
      if (lease.quota.kind !== kind) continue;
      available += lease.available(nowMs);
      held += lease.held;
    }
    return { available, held };
  }
}
