// Counts what leases cost in database calls when a thousand gateway processes share one wallet or one limit: the real
// leases over the simulation's model of the database (test/simulation), under skewed load and in virtual time. `node
// benchmarks/lease-calls.ts [--gateways 1000] [--seed 1]`.

import { parseArgs } from 'node:util';
import { isRate, type LeaseAnswer, type LeaseRequest, type Quota, type QuotaKind } from '../src/domain/quotas/lease.ts';
import type { LeaseStore } from '../src/generation/admission/leases/lease-store.ts';
import type { Hold } from '../src/generation/admission/leases/quota-lease.ts';
import { QuotaLeases } from '../src/generation/admission/leases/quota-leases.ts';
import { ModelBooks } from '../test/simulation/model-books.ts';
import { World } from '../test/simulation/virtual-world.ts';

interface Experiment {
  readonly name: string;
  readonly kind: QuotaKind;
  /** What all gateways share: money, requests or tokens a minute, or places for open requests. */
  readonly size: bigint;
  /** What one request needs of it. */
  readonly need: bigint;
  /** Requests a second, of all gateways together. */
  readonly rate: number;
  readonly seconds: number;
}

interface Waits {
  readonly admitted: number[];
  readonly refused: number[];
}

interface Result {
  readonly requests: number;
  readonly admitted: number;
  /**
   * Requests that were refused although the free amount, wherever it lay, covered them and all requests that waited
   * with them, both when they came and when they were refused.
   */
  readonly wronglyRefused: number;
  /** Those of the wrongly refused requests that the free amount had covered for longer than REMEMBERED_MS. */
  readonly longWronglyRefused: number;
  /** Lease requests that were granted less than they needed. */
  readonly inVain: number;
  /** How long those waited that were not answered from memory. */
  readonly waitedMs: Waits;
  readonly calls: { readonly take: number; readonly giveBack: number; readonly revoke: number };
  readonly callsInBusiestSecond: number;
  /** The share of the usable amount that was used; null if the load wants less than there is. */
  readonly reached: number | null;
  /** True: more was used or open than there is. */
  readonly isOverspent: boolean;
}

const PER_MINUTE_SECONDS = 60;
/** How long a call takes each way. */
const TRANSIT_MS = [0.3, 1.5] as const;
/** How long after a request's end its charge is posted. */
const POSTED_AFTER_MS = 150;
/** The part of its hold that a request costs. */
const USED_PART = [0.1, 0.5] as const;
const DURATION_MS_MEAN = 1_000;
/** The share of the i-th busiest gateway is 1/i. */
const ZIPF = 1;
const KEY = 'shared';
/**
 * A refusal may be based on a state this old (docs/money-and-limits.md). An amount that was free for longer is counted
 * separately.
 */
const REMEMBERED_MS = 250;

class Model {
  readonly world: World;
  readonly books: ModelBooks;
  readonly gateways: QuotaLeases[] = [];
  readonly calls = { take: 0, giveBack: 0, revoke: 0 };
  inVain = 0;
  readonly callsBySecond = new Map<number, number>();
  private readonly quota: Quota;

  constructor({ kind, size }: Experiment, gateways: number, seed: number) {
    this.world = new World(seed, false);
    this.world.baseMs = Date.UTC(2026, 10, 20, 12);
    let ids = 0;
    this.books = new ModelBooks(() => `pool-${(ids += 1)}`);
    this.quota = { kind, key: KEY };
    if (kind === 'credit') {
      this.books.openWallet(KEY);
      this.books.deposit(KEY, size, 'opening');
    } else {
      this.books.limits.limits.set(KEY, { id: KEY, kind, period: kind === 'budget' ? 'month' : null, amount: size });
    }
    const time = {
      monotonicMs: () => this.world.nowMs,
      wait: (ms: number) => new Promise<void>((resolve) => this.world.in(ms, '', resolve)),
    };
    for (let index = 0; index < gateways; index += 1) {
      const store = this.storeOf(this.books.registerEpoch());
      const onFault = (fault: unknown): void => this.world.noteFault(fault);
      this.gateways.push(new QuotaLeases(store, time, onFault));
    }
    this.books.commit();
  }

  private storeOf(epoch: number): LeaseStore {
    return {
      take: ({ kind }, request, call) =>
        this.call('take', () => {
          const answer = this.take(epoch, kind, request, call);
          if (answer.granted < request.minimum) this.inVain += 1;
          return answer;
        }),
      giveBack: ({ kind }, grantId, amount, call) =>
        this.call('giveBack', () => {
          if (kind === 'credit') this.books.returnLease(epoch, KEY, amount, call);
          else this.books.limits.giveBack({ epoch, limitId: KEY, grantId, amount, call });
          return 'done' as const;
        }),
      recover: () => Promise.reject(new Error('no answer is lost here')),
      revoke: () => this.call('revoke', () => this.revoke(epoch)),
      probe: () => Promise.resolve(),
    };
  }

  private async call<T>(name: keyof Model['calls'], act: () => T): Promise<T> {
    this.calls[name] += 1;
    const second = Math.floor(this.world.nowMs / 1_000);
    this.callsBySecond.set(second, (this.callsBySecond.get(second) ?? 0) + 1);
    await this.transit();
    const result = act();
    this.books.commit();
    await this.transit();
    return result;
  }

  private transit(): Promise<void> {
    return new Promise((resolve) => this.world.in(this.world.random.between(...TRANSIT_MS), '', resolve));
  }

  private take(epoch: number, kind: QuotaKind, { amount, minimum, present }: LeaseRequest, call: number): LeaseAnswer {
    if (kind !== 'credit') {
      const request = {
        epoch,
        limitId: KEY,
        amount,
        minimum,
        presentGrant: present?.grantId ?? null,
        presentFree: present?.available ?? 0n,
        call,
      };
      return { ...this.books.limits.take(request, this.world.wallMs()), frozen: false };
    }
    const answer = this.books.takeLease(epoch, KEY, amount, minimum, call);
    return {
      ...answer,
      grantId: KEY,
      validForMs: null,
      presentMoved: false,
      ceiling: null,
      retryAfterMs: null,
      gone: false,
    };
  }

  private revoke(from: number): void {
    for (const [index, gateway] of this.gateways.entries()) {
      if (index !== from - 1) this.world.in(this.world.random.between(1, 5), '', () => gateway.revoke(KEY));
    }
  }

  /** A charge leaves the wallet, or the budget, and the lease that it was held from. */
  post(index: number, { grant }: Hold, used: bigint): void {
    if (this.quota.kind === 'budget' && grant?.id != null) this.books.limits.spend(index + 1, grant.id, used);
    if (this.quota.kind === 'credit') {
      const wallet = this.books.wallet(KEY);
      this.books.wallets.set(KEY, { ...wallet, balance: wallet.balance - used, leased: wallet.leased - used });
      const lease = this.books.leases.get(`${index + 1}/${KEY}`);
      if (lease !== undefined)
        this.books.leases.set(`${index + 1}/${KEY}`, { ...lease, outstanding: lease.outstanding - used });
    }
    this.books.commit();
  }
}

/** One load on the model of the database, and the answers to it. */
class Run {
  private readonly model: Model;
  private readonly experiment: Experiment;
  private readonly shares: readonly number[];
  private requests = 0;
  private admitted = 0;
  private wronglyRefused = 0;
  private longWronglyRefused = 0;
  /** The last time at which one more request would have been too much. */
  private fullMs = 0;
  private isOverspent = false;
  /** The amount held now and spent so far; for rates, the times at which requests were admitted, oldest first. */
  private held = 0n;
  private spent = 0n;
  private waiting = 0;
  private readonly waitedMs: Waits = { admitted: [], refused: [] };
  private readonly admittedMs: number[] = [];
  /** For rates: admitted requests by the last second for which they were granted. */
  private readonly admittedBySecond = new Map<number, bigint>();
  private openMs = 0;
  private sinceMs = 0;

  constructor(experiment: Experiment, gateways: number, seed: number) {
    this.experiment = experiment;
    this.model = new Model(experiment, gateways, seed);
    let sum = 0;
    this.shares = Array.from({ length: gateways }, (_, index) => (sum += 1 / (index + 1) ** ZIPF));
  }

  execute(): Result {
    const { world, gateways, calls, callsBySecond } = this.model;
    const { seconds } = this.experiment;
    this.arriveNext();
    for (const [index, gateway] of gateways.entries()) this.tickLater(gateway, (index / gateways.length) * 1_000);
    world.run(seconds * 1_000);
    if (world.violations.length > 0) throw new Error(world.violations[0]);
    return {
      requests: this.requests,
      admitted: this.admitted,
      wronglyRefused: this.wronglyRefused,
      longWronglyRefused: this.longWronglyRefused,
      inVain: this.model.inVain,
      waitedMs: this.waitedMs,
      calls: { ...calls },
      callsInBusiestSecond: Math.max(...callsBySecond.values()),
      reached: this.reached(),
      isOverspent: this.isOverspent,
    };
  }

  private tickLater(gateway: QuotaLeases, inMs: number): void {
    this.model.world.in(inMs, '', () => {
      gateway.tick();
      this.tickLater(gateway, 1_000);
    });
  }

  private arriveNext(): void {
    const { world } = this.model;
    world.in((-Math.log(1 - world.random.next()) * 1_000) / this.experiment.rate, '', () => {
      this.arrive(this.chooseGateway());
      this.arriveNext();
    });
  }

  private chooseGateway(): number {
    const { shares } = this;
    const wanted = this.model.world.random.next() * (shares.at(-1) ?? 0);
    let [low, high] = [0, shares.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((shares[middle] ?? 0) > wanted) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  private arrive(index: number): void {
    const { kind, need } = this.experiment;
    const { world } = this.model;
    this.noteFull(1);
    const gateway = this.model.gateways[index] as QuotaLeases;
    this.requests += 1;
    const couldBeServed = this.canBeServed(this.waiting + 1);
    const held = gateway.holdAll([{ quota: { kind, key: KEY }, amount: need }]);
    if (!(held instanceof Promise)) {
      this.begin(index, held[0] as Hold);
      return;
    }
    this.waiting += 1;
    const cameAtMs = world.nowMs;
    void held.then((result) => {
      this.waitedMs['reason' in result ? 'refused' : 'admitted'].push(world.nowMs - cameAtMs);
      if (!('reason' in result)) this.begin(index, result[0] as Hold);
      else if (couldBeServed && this.canBeServed(this.waiting)) {
        this.noteFull(0);
        this.wronglyRefused += 1;
        if (world.nowMs - this.fullMs > REMEMBERED_MS) this.longWronglyRefused += 1;
      }
      this.waiting -= 1;
    });
  }

  private noteFull(more: number): void {
    if (!this.canBeServed(this.waiting + more)) this.fullMs = this.model.world.nowMs;
  }

  /** Whether these requests can be served by the true use, which no database knows. */
  private canBeServed(requests: number): boolean {
    const { kind, size, need } = this.experiment;
    const needed = need * BigInt(requests);
    if (isRate(kind)) return this.countedOfRate() + needed <= size;
    return this.spent + this.held + needed <= size;
  }

  /** What counts in the window of a rate: a request counts for 60 seconds after the last second of its grant. */
  private countedOfRate(): bigint {
    const oldest = Math.floor(this.model.world.wallMs() / 1_000) - PER_MINUTE_SECONDS;
    let counted = 0n;
    for (const [second, amount] of this.admittedBySecond) {
      if (second >= oldest) counted += amount;
      else this.admittedBySecond.delete(second);
    }
    return counted;
  }

  private admittedSince(seconds: number): number {
    const fromMs = this.model.world.nowMs - seconds * 1_000;
    let [low, high] = [0, this.admittedMs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.admittedMs[middle] ?? 0) >= fromMs) high = middle;
      else low = middle + 1;
    }
    return this.admittedMs.length - low;
  }

  private begin(index: number, hold: Hold): void {
    const { world, gateways } = this.model;
    const { kind, need, size } = this.experiment;
    this.admitted += 1;
    this.admittedMs.push(world.nowMs);
    const second = Number(hold.grant?.id?.split('@')[1] ?? 0);
    this.admittedBySecond.set(second, (this.admittedBySecond.get(second) ?? 0n) + need);
    this.countOpen(need);
    const taken = isRate(kind) ? BigInt(this.admittedSince(PER_MINUTE_SECONDS)) * need : this.spent + this.held;
    if (taken > size) this.isOverspent = true;
    this.noteFull(1);
    world.in(-Math.log(1 - world.random.next()) * DURATION_MS_MEAN, '', () => {
      const used = usedOf(kind, need, world.random.between(...USED_PART));
      this.noteFull(1);
      this.countOpen(-need);
      if (kind === 'credit' || kind === 'budget') {
        this.spent += used;
        world.in(POSTED_AFTER_MS, '', () => this.model.post(index, hold, used));
      }
      gateways[index]?.release(hold, used);
    });
  }

  private countOpen(change: bigint): void {
    const { nowMs } = this.model.world;
    this.openMs += Number(this.held) * (nowMs - this.sinceMs);
    this.sinceMs = nowMs;
    this.held += change;
  }

  private reached(): number | null {
    const { kind, size, need, rate, seconds } = this.experiment;
    if (kind === 'credit' || kind === 'budget') {
      const wanted = rate * seconds * Number(need) * ((USED_PART[0] + USED_PART[1]) / 2);
      // The last request must fit: up to one request's need stays unused.
      return wanted < Number(size) || size === 0n ? null : Number(this.spent + this.held + need) / Number(size);
    }
    if (kind === 'concurrent_requests') return this.openMs / (seconds * 1_000) / Number(size);
    return this.admitted / ((Number(size / need) * seconds) / PER_MINUTE_SECONDS);
  }
}

function usedOf(kind: QuotaKind, need: bigint, part: number): bigint {
  if (kind === 'credit' || kind === 'budget') return BigInt(Math.round(Number(need) * part));
  return kind === 'concurrent_requests' ? 0n : need;
}

const HOLD = 1_000_000n;
const PLENTY = HOLD * 10n ** 9n;
/** On limits the load is twice what the limit allows; on money it is more than there is. */
const EXPERIMENTS: readonly Experiment[] = [
  { name: 'wallet, rich', kind: 'credit', size: PLENTY, need: HOLD, rate: 5_000, seconds: 60 },
  { name: 'wallet, rich, little used', kind: 'credit', size: PLENTY, need: HOLD, rate: 50, seconds: 120 },
  { name: 'wallet that runs out', kind: 'credit', size: HOLD * 45_000n, need: HOLD, rate: 5_000, seconds: 60 },
  { name: 'budget that runs out', kind: 'budget', size: HOLD * 45_000n, need: HOLD, rate: 5_000, seconds: 60 },
  {
    name: '60,000 requests per minute',
    kind: 'requests_per_minute',
    size: 60_000n,
    need: 1n,
    rate: 2_000,
    seconds: 180,
  },
  { name: '600 requests per minute', kind: 'requests_per_minute', size: 600n, need: 1n, rate: 20, seconds: 300 },
  { name: '60,000 a minute, half used', kind: 'requests_per_minute', size: 60_000n, need: 1n, rate: 500, seconds: 180 },
  { name: '2,000 open requests', kind: 'concurrent_requests', size: 2_000n, need: 1n, rate: 4_000, seconds: 60 },
  { name: 'empty wallet', kind: 'credit', size: 0n, need: HOLD, rate: 5_000, seconds: 60 },
  { name: '600 a minute, a hundredfold', kind: 'requests_per_minute', size: 600n, need: 1n, rate: 1_000, seconds: 120 },
  { name: '100 open requests, fiftyfold', kind: 'concurrent_requests', size: 100n, need: 1n, rate: 5_000, seconds: 60 },
  { name: '100 open requests', kind: 'concurrent_requests', size: 100n, need: 1n, rate: 200, seconds: 60 },
];

const { values } = parseArgs({
  options: {
    gateways: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
  },
});
// Starts outside the evaluation of this module, which is itself a promise: the world drains all promises after each
// event.
setImmediate(printAll);

function printAll(): void {
  console.log(
    '| shared by all | requests/s | admitted | reached | wrongly refused | for longer | calls/s | busiest second | ' +
      'take · give back · revoke | calls per 1,000 requests | in vain per refused | ' +
      'waited, p50 · p99 ms: admitted | refused |',
  );
  console.log('|---|---|---|---|---|---|---|---|---|---|---|---|---|');
  for (const experiment of EXPERIMENTS.filter(({ name }) => name.includes(values.only))) {
    const result = new Run(experiment, Number(values.gateways), Number(values.seed)).execute();
    const { calls, requests } = result;
    const total = calls.take + calls.giveBack + calls.revoke;
    const cells = [
      experiment.name,
      experiment.rate,
      `${((100 * result.admitted) / requests).toFixed(1)}%`,
      result.reached === null ? '' : `${(100 * result.reached).toFixed(1)}%`,
      `${result.wronglyRefused} (${((100 * result.wronglyRefused) / requests).toFixed(2)}%)`,
      `${result.longWronglyRefused} (${((100 * result.longWronglyRefused) / requests).toFixed(2)}%)`,
      (total / experiment.seconds).toFixed(0),
      result.callsInBusiestSecond,
      `${calls.take} · ${calls.giveBack} · ${calls.revoke}`,
      ((1_000 * total) / requests).toFixed(1),
      requests === result.admitted ? '' : (result.inVain / (requests - result.admitted)).toFixed(3),
      describeWaits(result.waitedMs.admitted),
      describeWaits(result.waitedMs.refused),
    ];
    console.log(`| ${cells.join(' | ')} |`);
    if (result.isOverspent) {
      console.log(`${experiment.name}: OVERSPENT`);
      process.exitCode = 1;
    }
  }
}

function describeWaits(waitedMs: number[]): string {
  waitedMs.sort((one, other) => one - other);
  const at = (part: number): string => (waitedMs[Math.floor(part * waitedMs.length)] ?? 0).toFixed(0);
  return waitedMs.length === 0 ? '' : `${at(0.5)} · ${at(0.99)}`;
}
