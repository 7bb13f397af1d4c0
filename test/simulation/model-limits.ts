// The in-memory model of what migrations 0010, 0046 and 0047 do in SQL: pools of budgets and of open requests, and the
// sliding windows of rates.

import type { RecoveredCall } from '../../src/domain/quotas/lease.ts';
import { DatabaseFault, FENCED, RAISED, Table } from './model-tables.ts';

export interface UsageLimitRow {
  readonly id: string;
  readonly kind: 'requests_per_minute' | 'tokens_per_minute' | 'concurrent_requests' | 'budget';
  readonly period: 'hour' | 'day' | 'week' | 'month' | null;
  readonly amount: bigint;
}

export interface PoolRow {
  readonly id: string;
  readonly limitId: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly used: bigint;
  readonly leased: bigint;
  readonly highest: bigint;
}

interface LimitLeaseRow extends LastCall {
  readonly epoch: number;
  readonly poolId: string;
  readonly outstanding: bigint;
}

/** cells[0] belongs to the second `first`. */
interface WindowRow {
  readonly limitId: string;
  readonly first: number;
  readonly cells: readonly number[];
}

interface HoldingRow extends WindowRow {
  readonly epoch: number;
}

export interface TakenLimit {
  granted: bigint;
  grantId: string;
  validForMs: number | null;
  presentMoved: boolean;
  available: bigint;
  leasedElsewhere: bigint;
  ceiling: bigint | null;
  retryAfterMs: number | null;
  gone: boolean;
}

export interface LimitRequest {
  readonly epoch: number;
  readonly limitId: string;
  readonly amount: bigint;
  readonly minimum: bigint;
  readonly presentGrant: string | null;
  readonly presentFree: bigint;
  /** The number of the call; null: it has none. */
  readonly call: number | null;
}

export interface LimitReturn {
  readonly epoch: number;
  readonly limitId: string;
  readonly grantId: string;
  readonly amount: bigint;
  readonly call: number | null;
}

/** The last numbered call about a lease, and what it was granted; null: the call was not done and never will be. */
export interface LastCall {
  readonly lastCall: number;
  readonly lastGranted: bigint | null;
}

export const NO_CALL: LastCall = { lastCall: 0, lastGranted: null };

const COUNTED = 60;
const AHEAD_MAX = 15;
const HERE = COUNTED;
const CELLS = COUNTED + 1 + AHEAD_MAX;

export class ModelLimits {
  readonly limits: Table<UsageLimitRow>;
  readonly pools: Table<PoolRow>;
  readonly leases: Table<LimitLeaseRow>;
  readonly windows: Table<WindowRow>;
  readonly holdings: Table<HoldingRow>;
  private readonly newId: () => string;
  private readonly isFenced: (epoch: number) => boolean;

  constructor(undo: (() => void)[], newId: () => string, isFenced: (epoch: number) => boolean) {
    this.newId = newId;
    this.isFenced = isFenced;
    this.limits = new Table(undo);
    this.pools = new Table(undo, ({ used, leased }) => (used < 0n || leased < 0n ? 'limit_pools_check' : null));
    this.leases = new Table(undo, ({ outstanding }) => (outstanding < 0n ? 'limit_leases_outstanding_check' : null));
    this.windows = new Table(undo);
    this.holdings = new Table(undo);
  }

  take(request: LimitRequest, nowMs: number): TakenLimit {
    const { epoch, limitId, amount, minimum, presentFree, call } = request;
    if (amount < 0n || minimum < 0n || minimum > amount || presentFree < 0n)
      throw new DatabaseFault(RAISED, 'take_limit_lease: need 0 <= minimum <= amount');
    const limit = this.limits.get(limitId);
    const nothing = {
      granted: 0n,
      grantId: limitId,
      validForMs: null,
      presentMoved: false,
      available: 0n,
      leasedElsewhere: 0n,
      retryAfterMs: null,
    };
    if (limit === undefined) return { ...nothing, ceiling: null, gone: true };
    if (limit.period === null && limit.kind !== 'concurrent_requests') return this.takeRate(request, limit, nowMs);
    const isOver = this.isCallOver(epoch, limitId, call);
    return this.takePool(isOver ? { ...request, amount: 0n, minimum: 0n } : request, limit, nowMs);
  }

  /** Whether this call, or a later one, is done or was found not done. */
  private isCallOver(epoch: number, limitId: string, call: number | null): boolean {
    return this.leasesOf(epoch, limitId).some((lease) => isOver(lease, call));
  }

  private leasesOf(epoch: number, limitId: string): LimitLeaseRow[] {
    return this.leases
      .values()
      .filter((lease) => lease.epoch === epoch && this.pools.get(lease.poolId)?.limitId === limitId);
  }

  private takePool(
    { epoch, limitId, amount, minimum, presentGrant, call }: LimitRequest,
    { amount: ceiling, period }: UsageLimitRow,
    nowMs: number,
  ): TakenLimit {
    this.refuseFenced(epoch);
    const [startMs, endMs] =
      period === null ? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY] : boundsOf(period, nowMs);
    let pool = this.pools.values().find((row) => row.limitId === limitId && row.startMs === startMs);
    if (pool === undefined) {
      pool = {
        id: period === null ? limitId : this.newId(),
        limitId,
        startMs,
        endMs,
        used: 0n,
        leased: 0n,
        highest: 0n,
      };
      this.pools.set(pool.id, pool);
    }
    let available = atLeast0(ceiling - pool.used - pool.leased);
    const lease = this.leases.get(`${epoch}/${pool.id}`);
    const granted = grantedOf(available, amount, minimum);
    const leasedElsewhere = pool.leased - (lease?.outstanding ?? 0n);
    if (granted > 0n) {
      this.pools.set(pool.id, {
        ...pool,
        leased: pool.leased + granted,
        highest: pool.highest > ceiling ? pool.highest : ceiling,
      });
      this.leases.set(`${epoch}/${pool.id}`, {
        epoch,
        poolId: pool.id,
        outstanding: (lease?.outstanding ?? 0n) + granted,
        ...nextCall(lease, call, granted),
      });
      available -= granted;
    }
    const validForMs = period === null ? null : Math.max(0, endMs - nowMs);
    return {
      granted,
      grantId: pool.id,
      validForMs,
      presentMoved: presentGrant === pool.id,
      available,
      leasedElsewhere,
      ceiling,
      retryAfterMs: granted === 0n ? validForMs : null,
      gone: false,
    };
  }

  private takeRate(
    { epoch, limitId, amount, minimum, presentGrant, presentFree }: LimitRequest,
    limit: UsageLimitRow,
    nowMs: number,
  ): TakenLimit {
    const second = Math.floor(nowMs / 1_000);
    const ceiling = limit.amount > 10n ** 18n ? 10n ** 18n : limit.amount;
    const stored = this.windows.get(limitId);
    if (stored === undefined) this.windows.set(limitId, { limitId, first: 0, cells: zeros(CELLS) });
    const shared = cellsFrom(stored?.first ?? 0, stored?.cells ?? zeros(CELLS), second - COUNTED);
    let load = shared.reduce((sum, cell) => sum + cell, 0);
    let available = atLeast0(ceiling - BigInt(load));
    const granted = grantedOf(available, amount, minimum);
    this.refuseFenced(epoch);
    const held = this.holdings.get(`${epoch}/${limitId}`);
    const own = held === undefined ? zeros(AHEAD_MAX + 1) : cellsFrom(held.first, held.cells, second);
    let elsewhere = 0;
    for (let ahead = 0; ahead <= AHEAD_MAX; ahead += 1) elsewhere += cellAt(shared, HERE + ahead) - cellAt(own, ahead);
    const base = { leasedElsewhere: BigInt(Math.max(0, elsewhere)), ceiling, gone: false };
    if (granted === 0n) {
      const retryAfterMs = waitForRoom(shared, load, ceiling, minimum, second * 1_000 - nowMs);
      return { ...base, granted, grantId: limitId, validForMs: null, presentMoved: false, available, retryAfterMs };
    }
    load += Number(granted);
    const limitOf = Number(ceiling);
    const ahead = 2 * load >= limitOf ? 1 : 1 + Math.floor(((AHEAD_MAX - 1) * (limitOf - 2 * load)) / limitOf);
    const label = presentGrant?.split('@')[1];
    const presentAhead = label === undefined || label === '' ? null : Number(label) - second;
    let moved = 0;
    const presentMoved = presentAhead !== null && presentAhead >= -COUNTED && presentAhead <= AHEAD_MAX;
    if (presentMoved) {
      moved = Math.min(Number(presentFree), cellAt(shared, HERE + presentAhead));
      shared[HERE + presentAhead] = cellAt(shared, HERE + presentAhead) - moved;
      if (presentAhead >= 0) own[presentAhead] = Math.max(cellAt(own, presentAhead) - moved, 0);
    }
    shared[HERE + ahead] = cellAt(shared, HERE + ahead) + moved + Number(granted);
    own[ahead] = cellAt(own, ahead) + moved + Number(granted);
    this.windows.set(limitId, { limitId, first: second - COUNTED, cells: shared });
    this.holdings.set(`${epoch}/${limitId}`, { epoch, limitId, first: second, cells: own });
    available -= granted;
    const validForMs = (second + ahead + 1) * 1_000 - nowMs;
    return {
      ...base,
      granted,
      grantId: `${limitId}@${second + ahead}`,
      validForMs,
      presentMoved,
      available,
      retryAfterMs: null,
    };
  }

  giveBack({ epoch, limitId, grantId, amount, call }: LimitReturn): void {
    if (!grantId.includes('@') && this.isCallOver(epoch, limitId, call)) return;
    if (amount < 0n) throw new DatabaseFault(RAISED, 'give_back_limit_lease: negative amount');
    const label = grantId.split('@')[1];
    if (label !== undefined && label !== '') {
      const window = this.windows.get(limitId);
      if (window !== undefined)
        this.windows.set(limitId, { ...window, ...withLess(window, Number(label), Number(amount)) });
      const holding = this.holdings.get(`${epoch}/${limitId}`);
      if (holding !== undefined)
        this.holdings.set(`${epoch}/${limitId}`, { ...holding, ...withLess(holding, Number(label), Number(amount)) });
      return;
    }
    const lease = this.leases.get(`${epoch}/${grantId}`);
    const pool = this.pools.get(grantId);
    if (pool?.limitId === limitId) this.pools.set(grantId, { ...pool, leased: pool.leased - amount });
    if (lease === undefined)
      throw new DatabaseFault(RAISED, `give_back_limit_lease: epoch ${epoch} holds nothing of pool ${grantId}`);
    this.leases.set(`${epoch}/${grantId}`, {
      ...lease,
      outstanding: lease.outstanding - amount,
      ...nextCall(lease, call, 0n),
    });
  }

  recover(
    { epoch, limitId, call }: { readonly epoch: number; readonly limitId: string; readonly call: number },
    nowMs: number,
  ): RecoveredCall {
    this.refuseFenced(epoch);
    const own = this.leasesOf(epoch, limitId);
    const done = own.find(({ lastCall, lastGranted }) => lastCall === call && lastGranted !== null);
    if (done !== undefined) return { isDone: true, granted: done.lastGranted ?? 0n, grantId: done.poolId };
    if (this.isCallOver(epoch, limitId, call)) return { isDone: false };
    const noted = own.find(({ outstanding }) => outstanding > 0n) ?? own[0] ?? this.newLease(epoch, limitId, nowMs);
    if (noted !== null) this.leases.set(`${epoch}/${noted.poolId}`, { ...noted, lastCall: call, lastGranted: null });
    return { isDone: false };
  }

  /** Adds a lease of the present pool; null: there is no pool, since the limit is gone. */
  private newLease(epoch: number, limitId: string, nowMs: number): LimitLeaseRow | null {
    const nothing = { epoch, limitId, amount: 0n, minimum: 0n, presentGrant: null, presentFree: 0n, call: null };
    const { grantId: poolId } = this.take(nothing, nowMs);
    return this.pools.get(poolId) === undefined ? null : { epoch, poolId, outstanding: 0n, ...NO_CALL };
  }

  /**
   * Books what an execution used of a pool. Use that the lease does not cover is a fault, and is booked all the same.
   */
  spend(epoch: number, poolId: string, amount: bigint): void {
    const pool = this.pools.get(poolId);
    const lease = this.leases.get(`${epoch}/${poolId}`);
    if (pool === undefined || lease === undefined) return;
    const covered = lease.outstanding < amount ? lease.outstanding : amount;
    this.pools.set(poolId, { ...pool, used: pool.used + amount, leased: pool.leased - covered });
    this.leases.set(`${epoch}/${poolId}`, { ...lease, outstanding: lease.outstanding - covered });
  }

  /** Returns everything that a dead epoch has leased under limits. */
  returnAll(epoch: number): void {
    for (const lease of this.leases.values()) {
      if (lease.epoch !== epoch) continue;
      this.leases.delete(`${epoch}/${lease.poolId}`);
      const pool = this.pools.get(lease.poolId) as PoolRow;
      this.pools.set(pool.id, { ...pool, leased: pool.leased - lease.outstanding });
    }
  }

  dropHoldings(epoch: number): void {
    for (const holding of this.holdings.values())
      if (holding.epoch === epoch) this.holdings.delete(`${epoch}/${holding.limitId}`);
  }

  private refuseFenced(epoch: number): void {
    if (this.isFenced(epoch)) throw new DatabaseFault(FENCED, `take_limit_lease: epoch ${epoch} is fenced`);
  }
}

/** The note about a call that is done. */
export function nextCall(lease: LastCall | undefined, call: number | null, granted: bigint): LastCall {
  const { lastCall, lastGranted } = lease ?? NO_CALL;
  return call === null ? { lastCall, lastGranted } : { lastCall: call, lastGranted: granted };
}

/** Whether this call, or a later one, is done or was found not done. */
export function isOver(lease: LastCall | undefined, call: number | null): boolean {
  return lease !== undefined && call !== null && lease.lastCall >= call;
}

export function grantedOf(available: bigint, amount: bigint, minimum: bigint): bigint {
  return available >= amount ? amount : available >= minimum ? available : 0n;
}

function atLeast0(value: bigint): bigint {
  return value > 0n ? value : 0n;
}

function zeros(length: number): number[] {
  return Array.from({ length }, () => 0);
}

function cellAt(cells: readonly number[], index: number): number {
  return cells[index] ?? 0;
}

/** The cells of the window, moved so that the first one belongs to second `wanted`. */
function cellsFrom(first: number, cells: readonly number[], wanted: number): number[] {
  const later = wanted - first;
  return cells.map((_, index) => cellAt(cells, index + later));
}

function withLess({ first, cells }: WindowRow, label: number, amount: number): { readonly cells: readonly number[] } {
  const index = label - first;
  return { cells: cells.map((cell, at) => (at === index ? Math.max(cell - amount, 0) : cell)) };
}

/**
 * Milliseconds until the window has room for `minimum`; null: it never has. Each second the oldest label stops
 * counting.
 */
function waitForRoom(
  cells: readonly number[],
  load: number,
  ceiling: bigint,
  minimum: bigint,
  sinceSecondMs: number,
): number | null {
  let left = load;
  const wanted = minimum > 1n ? minimum : 1n;
  for (let later = 1; later <= CELLS; later += 1) {
    left -= cellAt(cells, later - 1);
    if (ceiling - BigInt(left) >= wanted) return later * 1_000 + sinceSecondMs;
  }
  return null;
}

function boundsOf(period: NonNullable<UsageLimitRow['period']>, nowMs: number): [startMs: number, endMs: number] {
  const now = new Date(nowMs);
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  switch (period) {
    case 'hour':
      return [Math.floor(nowMs / 3_600_000) * 3_600_000, (Math.floor(nowMs / 3_600_000) + 1) * 3_600_000];
    case 'day':
      return [Date.UTC(year, month, day), Date.UTC(year, month, day + 1)];
    case 'week': {
      const monday = day - ((now.getUTCDay() + 6) % 7);
      return [Date.UTC(year, month, monday), Date.UTC(year, month, monday + 7)];
    }
    case 'month':
      return [Date.UTC(year, month, 1), Date.UTC(year, month + 1, 1)];
  }
}
