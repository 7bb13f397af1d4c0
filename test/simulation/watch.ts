// Records what is true in a simulated world, independently of the code that runs in it, and checks what must hold after
// every event and at the end.

import type { Outcome } from '../../src/domain/settlement/outcome.ts';
import type { Hold } from '../../src/generation/admission/leases/quota-lease.ts';
import type { AdmissionParams } from '../../src/generation/admission/plan-holds.ts';
import type { Execution } from '../../src/generation/execution/execution.ts';
import { hasEnd } from './recorded-ends.ts';
import type { SimulatedDisk } from './simulated-disk.ts';
import { type GatewayWatch, type SimulatedGateway, SPOOL_DIRECTORY } from './simulated-gateway.ts';
import type { SimulatedFacts } from './simulated-jobs.ts';
import type { SimulatedPostgres } from './simulated-postgres.ts';
import type { SimulatedProcess, World } from './virtual-world.ts';

/** The expected cost of an execution that ended, by the outcome matrix, computed apart from the code under test. */
export interface Expected {
  readonly outcome: Outcome;
  readonly billingStatus: string;
  readonly charge: bigint | null;
  readonly suspense: bigint;
  readonly budgetUse: bigint;
  /** null: the tokens are not known, so the whole bound counts. */
  readonly tokens: bigint | null;
}

export interface Truth {
  readonly id: string;
  readonly execution: Execution;
  readonly gateway: SimulatedGateway;
  readonly walletId: string | null;
  readonly holds: readonly Hold[];
  readonly admittedAtMs: number;
  /** `lost`: its process died before the end was recorded. */
  state: 'open' | 'unadmitted' | 'recorded' | 'failed' | 'lost';
  expected: Expected | null;
  /** What the provider served, according to its own log. */
  served: bigint | null;
  recordedAtMs: number;
  /** The terminal record is on the platter. */
  certain: boolean;
  seenComplete: boolean;
  posted: boolean;
  /** A power cut took the record before a sync covered it. */
  mayBeLost: boolean;
  factMayBeLost: boolean;
}

/** One use of a rate: when, how much, by which process. */
interface Use {
  readonly truth: Truth;
  readonly atMs: number;
  amount: bigint;
}

/** Every healthy spool has synced what is older than this: the interval, a running sync, its own sync, and slack. */
const SYNC_HORIZON_MS = 700;
const RATE_WINDOW_MS = 60_000;

export class Watch implements GatewayWatch {
  readonly truths = new Map<string, Truth>();
  readonly gateways = new Set<SimulatedGateway>();
  /** The highest value that each limit ever had. */
  readonly ceilings = new Map<string, bigint>();
  private readonly world: World;
  private readonly server: SimulatedPostgres;
  private readonly disk: SimulatedDisk;
  private readonly uses = new Map<string, Use[]>();
  /** Executions that are recorded and not posted. */
  private readonly unposted = new Set<Truth>();
  private readonly open = new Set<Truth>();
  private version = -1;

  constructor(world: World, server: SimulatedPostgres, disk: SimulatedDisk) {
    this.world = world;
    this.server = server;
    this.disk = disk;
  }

  gatewayOpened(gateway: SimulatedGateway): void {
    this.gateways.add(gateway);
  }

  gatewayDied(gateway: SimulatedGateway): void {
    this.gateways.delete(gateway);
    for (const truth of this.truths.values()) {
      if (truth.gateway !== gateway) continue;
      // The process may die while it returns the part of the hold that its record says was not used: the database may
      // receive the return all the same.
      const { state } = truth.execution as unknown as { state: { name: string } };
      if (truth.state === 'open' && state.name === 'settled')
        this.settleUses(truth, truth.expected?.tokens ?? null, true);
      if (truth.state === 'open') truth.state = 'lost';
      this.open.delete(truth);
    }
  }

  admitted(gateway: SimulatedGateway, execution: Execution, params: AdmissionParams): void {
    const { holds } = execution.admission as unknown as { holds: readonly Hold[] };
    const { world } = this;
    const truth: Truth = {
      id: execution.id,
      execution,
      gateway,
      walletId: execution.admission.walletId,
      holds,
      admittedAtMs: world.nowMs,
      state: gateway.process.alive ? 'open' : 'lost',
      expected: null,
      served: null,
      recordedAtMs: 0,
      certain: false,
      seenComplete: false,
      posted: false,
      mayBeLost: false,
      factMayBeLost: false,
    };
    if (this.truths.has(truth.id)) world.violate(`the id ${truth.id} was given twice`);
    this.truths.set(truth.id, truth);
    // The rest of the tick in which a process dies has no effect.
    if (!gateway.process.alive) return;
    this.open.add(truth);
    world.note(
      `${gateway.process.name}: ${truth.id} is admitted, holds ${holds.map(({ lease, amount }) => `${amount} of ${lease.quota.key}`).join(', ')}`,
    );
    for (const { lease, amount, grant } of holds)
      if (grant !== null) this.noteUse(truth, lease.quota.key, lease.quota.kind, amount);
    if (params.principal.billed && holds.every(({ lease }) => lease.quota.kind !== 'credit'))
      world.violate(`${truth.id} is billed and holds no credit`);
  }

  private noteUse(truth: Truth, key: string, kind: string, amount: bigint): void {
    const ceiling = this.ceilings.get(key);
    if (
      ceiling === undefined ||
      (kind !== 'concurrent_requests' && kind !== 'requests_per_minute' && kind !== 'tokens_per_minute')
    )
      return;
    const uses = this.uses.get(key) ?? [];
    this.uses.set(key, uses);
    uses.push({ truth, atMs: this.world.nowMs, amount });
    let total = 0n;
    for (const use of uses) {
      const counts =
        kind === 'concurrent_requests' ? this.open.has(use.truth) : use.atMs > this.world.nowMs - RATE_WINDOW_MS;
      if (counts) total += use.amount;
    }
    if (total > ceiling) this.world.violate(`${kind} ${key}: ${total} of ${ceiling} by the admission of ${truth.id}`);
  }

  /** Under a limit on tokens, what an execution did not use becomes free again. */
  private settleUses(truth: Truth, tokens: bigint | null, requests: boolean): void {
    for (const { lease, amount } of truth.holds) {
      const { kind, key } = lease.quota;
      for (const use of this.uses.get(key) ?? []) {
        if (use.truth !== truth) continue;
        if (kind === 'tokens_per_minute' && tokens !== null) use.amount = tokens < amount ? tokens : amount;
        if (kind === 'requests_per_minute' && !requests) use.amount = 0n;
      }
    }
  }

  unadmitted(execution: Execution): void {
    const truth = this.truth(execution);
    if (!truth.gateway.process.alive) return;
    truth.state = 'unadmitted';
    this.open.delete(truth);
    this.settleUses(truth, 0n, false);
  }

  ending(execution: Execution, expected: Expected): void {
    this.truth(execution).expected = expected;
  }

  recorded(execution: Execution): void {
    const truth = this.truth(execution);
    if (!truth.gateway.process.alive) return;
    truth.state = 'recorded';
    truth.recordedAtMs = this.world.nowMs;
    this.open.delete(truth);
    this.unposted.add(truth);
    this.settleUses(truth, truth.expected?.tokens ?? null, true);
    this.world.note(
      `${truth.gateway.process.name}: the end of ${truth.id} is recorded, charge ${truth.expected?.charge}`,
    );
  }

  failed(execution: Execution): void {
    const truth = this.truth(execution);
    if (!truth.gateway.process.alive) return;
    truth.state = 'failed';
    this.open.delete(truth);
    this.world.note(`${truth.gateway.process.name}: the end of ${truth.id} could not be recorded`);
  }

  truth(execution: Execution): Truth {
    return this.truths.get(execution.id) as Truth;
  }

  powerWillBeCut(facts: SimulatedFacts): void {
    const certain = this.disk.certainTexts(SPOOL_DIRECTORY).join('\n');
    for (const truth of this.truths.values()) {
      const isSafe = hasEnd(certain, truth.id);
      if (truth.state === 'recorded' && !truth.posted && !isSafe) truth.mayBeLost = true;
      if (!facts.byId.has(truth.id) && !isSafe) truth.factMayBeLost = true;
    }
  }

  /** A record that a healthy spool took some time ago must be on the platter. */
  checkSyncs(stalledAtMs: ReadonlyMap<SimulatedProcess, number>): void {
    for (const gateway of this.gateways) {
      const { process, records } = gateway;
      if (
        !process.alive ||
        records?.healthy !== true ||
        this.world.nowMs - (stalledAtMs.get(process) ?? 0) < 2 * SYNC_HORIZON_MS
      )
        continue;
      const old = [...this.unposted].filter(
        (truth) =>
          truth.gateway === gateway && !truth.certain && truth.recordedAtMs < this.world.nowMs - SYNC_HORIZON_MS,
      );
      if (old.length === 0) continue;
      const certain = this.disk.certainTexts(`${SPOOL_DIRECTORY}/${gateway.epoch}`).join('\n');
      for (const truth of old) {
        truth.certain = hasEnd(certain, truth.id);
        if (!truth.certain)
          this.world.violate(
            `${truth.id} was recorded long ago in a spool that says it is healthy, and is not on the platter`,
          );
      }
    }
  }

  /** Runs after every event. */
  check(process: SimulatedProcess | null): void {
    const { server } = this;
    if (server.busy) return;
    const changed = server.version !== this.version;
    this.version = server.version;
    if (changed) {
      this.checkBooks();
      this.notePosted();
    }
    for (const gateway of this.gateways) if (changed || gateway.process === process) this.checkHoldings(gateway);
    if (changed) this.checkDead();
  }

  private checkBooks(): void {
    const { books } = this.server;
    const { world } = this;
    let balances = 0n;
    const leases = books.leases.values();
    for (const { id, balance, leased } of books.wallets.values()) {
      balances += balance;
      let total = 0n;
      for (const lease of leases) if (lease.walletId === id) total += lease.outstanding;
      if (balance < 0n || leased > balance)
        world.violate(`wallet ${id} is overspent: balance ${balance}, leased ${leased}`);
      if (total !== leased) world.violate(`wallet ${id}: leased ${leased}, leases ${total}`);
      if (books.account(`wallet ${id}`) !== balance)
        world.violate(`wallet ${id}: balance ${balance}, ledger ${books.account(`wallet ${id}`)}`);
    }
    if (-books.account('deposits') !== balances + books.account('revenue'))
      world.violate('deposits are not balances and charges');
    const limitLeases = books.limits.leases.values();
    for (const { id, used, leased, highest } of books.limits.pools.values()) {
      let total = 0n;
      for (const lease of limitLeases) if (lease.poolId === id) total += lease.outstanding;
      if (total !== leased) world.violate(`pool ${id}: leased ${leased}, leases ${total}`);
      if (used + leased > highest)
        world.violate(`pool ${id} is overspent: used ${used}, leased ${leased} of ${highest}`);
    }
  }

  /** Checks that each execution is posted once, as it ended. */
  private notePosted(): void {
    const { generations } = this.server.books;
    for (const truth of this.unposted) {
      const terminal = generations.get(truth.id)?.terminal ?? null;
      if (terminal === null) continue;
      truth.posted = true;
      this.unposted.delete(truth);
    }
  }

  /** What the database says a process has leased covers what the process has and what it has spent. */
  private checkHoldings(gateway: SimulatedGateway): void {
    const { books } = this.server;
    for (const [name, amount] of this.needs(gateway)) {
      const lease = books.leases.get(`${gateway.epoch}/${name}`) ?? books.limits.leases.get(`${gateway.epoch}/${name}`);
      const outstanding = lease?.outstanding ?? 0n;
      if (outstanding < amount)
        this.world.violate(
          `${gateway.process.name} has and is to return ${amount} of ${name}, and its lease is ${outstanding}`,
        );
    }
  }

  /**
   * What a gateway's executions need. `withFailed`: also what executions hold whose end could not be recorded:
   * everything except places, which are released.
   */
  private needs(gateway: SimulatedGateway, withFailed = false): Map<string, bigint> {
    const needs = new Map<string, bigint>();
    const add = (name: string, amount: bigint): void => void needs.set(name, (needs.get(name) ?? 0n) + amount);
    for (const { name, amount } of availableAt(gateway)) add(name, amount);
    const failed = withFailed ? [...this.truths.values()].filter(({ state }) => state === 'failed') : [];
    for (const truth of [...this.open, ...failed]) {
      if (truth.gateway !== gateway) continue;
      for (const { grant, amount, lease } of truth.holds) {
        const { kind } = lease.quota;
        const isHeld = isReturnedToStore(kind) && (truth.state !== 'failed' || kind !== 'concurrent_requests');
        if (grant !== null && grant.id !== null && isHeld) add(grant.id, amount);
      }
    }
    for (const truth of this.unposted) if (truth.gateway === gateway) addSpent(truth, add);
    return needs;
  }

  /** For a dead process, the charges of its records stay leased until they are posted. */
  private checkDead(): void {
    const { books } = this.server;
    const spent = new Map<number, Map<string, bigint>>();
    for (const truth of this.unposted) {
      const { gateway } = truth;
      if (gateway.process.alive || truth.mayBeLost) continue;
      if (books.epochs.get(`${gateway.epoch}`)?.returned === true)
        this.world.violate(`epoch ${gateway.epoch} is closed, and ${truth.id} is not posted`);
      const sums = spent.get(gateway.epoch) ?? new Map<string, bigint>();
      spent.set(gateway.epoch, sums);
      addSpent(truth, (name, amount) => void sums.set(name, (sums.get(name) ?? 0n) + amount));
    }
    for (const [epoch, sums] of spent) {
      for (const [name, amount] of sums) {
        const outstanding =
          (books.leases.get(`${epoch}/${name}`) ?? books.limits.leases.get(`${epoch}/${name}`))?.outstanding ?? 0n;
        if (outstanding < amount)
          this.world.violate(`epoch ${epoch} has spent ${amount} of ${name}, and its lease is ${outstanding}`);
      }
    }
  }

  /** The amount that is leased to nobody, or available at a living process. */
  reachable(pool: { kind: string; key: string }): bigint {
    const { books } = this.server;
    let total = 0n;
    const names = new Set<string>();
    if (pool.kind === 'credit') {
      const { balance, leased } = books.wallet(pool.key);
      total += balance - leased;
      names.add(pool.key);
    } else {
      const limit = books.limits.limits.get(pool.key);
      const nowMs = this.world.wallMs();
      const row = books.limits.pools
        .values()
        .find(({ limitId, startMs, endMs }) => limitId === pool.key && startMs <= nowMs && nowMs < endMs);
      total += (limit?.amount ?? 0n) - (row?.used ?? 0n) - (row?.leased ?? 0n);
      if (row !== undefined) names.add(row.id);
    }
    for (const gateway of this.gateways)
      for (const { name, amount } of availableAt(gateway)) if (names.has(name)) total += amount;
    return total;
  }

  /**
   * Checks, when all is healed and calm, that what the database says a process has leased is what the process has and
   * has spent: the subject of a call whose answer was lost must not be forgotten. Returns what is forgotten, or on its
   * way back at this moment.
   */
  forgotten(): string[] {
    const { books } = this.server;
    const found: string[] = [];
    const leases = [
      ...books.leases.values().map(({ epoch, walletId, outstanding }) => ({ epoch, name: walletId, outstanding })),
      ...books.limits.leases.values().map(({ epoch, poolId, outstanding }) => ({ epoch, name: poolId, outstanding })),
    ];
    for (const gateway of this.gateways) {
      const needs = this.needs(gateway, true);
      for (const { epoch, name, outstanding } of leases) {
        const known = needs.get(name) ?? 0n;
        if (epoch === gateway.epoch && outstanding > known)
          found.push(`${gateway.process.name} knows of ${known} of ${name}, and its lease is ${outstanding}`);
      }
    }
    return found;
  }

  get anyOpen(): boolean {
    return this.open.size > 0;
  }

  /** Runs when everything is healed, shipped and ended. */
  checkEnd(facts: SimulatedFacts): void {
    const { books } = this.server;
    const { world } = this;
    for (const { epoch, walletId, outstanding } of books.leases.values())
      world.violate(`epoch ${epoch} still has ${outstanding} of wallet ${walletId}`);
    for (const { epoch, poolId, outstanding } of books.limits.leases.values())
      world.violate(`epoch ${epoch} still has ${outstanding} of pool ${poolId}`);
    for (const { id, epoch, terminal } of books.generations.values()) {
      if (terminal === null) world.violate(`${id} of epoch ${epoch} is still pending`);
      if (!this.truths.has(id)) world.violate(`${id} was posted, and nobody admitted it`);
    }
    for (const truth of this.truths.values()) this.checkTruth(truth, facts);
    this.checkBudgets();
  }

  private checkTruth(truth: Truth, facts: SimulatedFacts): void {
    const { world } = this;
    const row = this.server.books.generations.get(truth.id);
    const terminal = row?.terminal ?? null;
    const { expected } = truth;
    if (truth.state === 'recorded' && !truth.mayBeLost) {
      if (terminal === null || expected === null) {
        world.violate(
          `${truth.id} ended${truth.seenComplete ? ' before the eyes of its client' : ''} and is not posted`,
        );
        return;
      }
      const posted = `${terminal.outcome} ${terminal.billingStatus} ${terminal.charge} ${terminal.suspense}`;
      const wanted = `${expected.outcome} ${expected.billingStatus} ${expected.charge} ${expected.suspense}`;
      if (posted !== wanted) world.violate(`${truth.id} is posted as ${posted}, and was ${wanted}`);
      const { charge, suspense, ratedCost } = terminal;
      // For an unbilled organization the rated cost is everything that was served; some of it may be in suspense.
      const booked = charge === null ? BigInt(ratedCost ?? 0) : BigInt(charge) + BigInt(suspense);
      if (truth.served !== null && expected.outcome === 'completed' && truth.served !== booked) {
        world.violate(
          `${truth.id}: the provider served for ${truth.served}, and the books have ${charge} and ${suspense}`,
        );
      }
    } else if (truth.seenComplete && !truth.mayBeLost) world.violate(`${truth.id} was seen complete and not recorded`);
    else if (terminal !== null) this.checkUnseen(truth);
    const fact = facts.byId.get(truth.id);
    if (terminal === null) {
      if (fact !== undefined) world.violate(`${truth.id} has a fact and no posting`);
    } else if (fact === undefined) {
      if (!truth.factMayBeLost) world.violate(`${truth.id} is posted and has no fact`);
    } else if (
      fact.billingStatus !== terminal.billingStatus ||
      fact.charge !== (terminal.charge === null ? null : BigInt(terminal.charge))
    ) {
      world.violate(
        `${truth.id}: the fact says ${fact.billingStatus} ${fact.charge}, the books ${terminal.billingStatus} ${terminal.charge}`,
      );
    }
  }

  /** A client that did not see the end pays nothing, unless the record was written all the same. */
  private checkUnseen({ id, expected, state }: Truth): void {
    const terminal = this.server.books.generations.get(id)?.terminal;
    if (terminal === null || terminal === undefined || BigInt(terminal.charge ?? 0) === 0n) return;
    if (expected === null || `${expected.charge}` !== terminal.charge)
      this.world.violate(`${id} (${state}) is charged ${terminal.charge}, expected ${expected?.charge}`);
  }

  private checkBudgets(): void {
    const { books } = this.server;
    const used = new Map<string, bigint>();
    for (const { terminal } of books.generations.values()) {
      for (const pool of terminal?.budgets ?? [])
        used.set(pool, (used.get(pool) ?? 0n) + BigInt(terminal?.budgetUse ?? 0));
    }
    for (const { id, limitId, used: booked } of books.limits.pools.values()) {
      const total = used.get(id) ?? 0n;
      if (booked !== total) this.world.violate(`pool ${id} has used ${booked}, its executions ${total}`);
      const ceiling = this.ceilings.get(limitId);
      if (ceiling !== undefined && booked > ceiling)
        this.world.violate(`budget ${limitId} has used ${booked} of ${ceiling}`);
    }
  }
}

function isReturnedToStore(kind: string): boolean {
  return kind === 'credit' || kind === 'budget' || kind === 'concurrent_requests';
}

interface LeaseParts {
  readonly quota: { readonly kind: string; readonly key: string };
  readonly grant: { readonly id: string | null; readonly available: bigint };
  readonly pendingReturns: ReadonlyMap<string, bigint>;
}

/** What a process has leased beyond the holds of its requests. */
function availableAt(gateway: SimulatedGateway): { name: string; kind: string; amount: bigint }[] {
  const found: { name: string; kind: string; amount: bigint }[] = [];
  const { leases } = gateway.leases as unknown as { leases: ReadonlyMap<string, LeaseParts> };
  for (const { quota, grant, pendingReturns } of leases.values()) {
    if (!isReturnedToStore(quota.kind)) continue;
    if (grant.id !== null && grant.available > 0n)
      found.push({ name: grant.id, kind: quota.kind, amount: grant.available });
    for (const [name, amount] of pendingReturns) found.push({ name, kind: quota.kind, amount });
  }
  return found;
}

function addSpent(truth: Truth, add: (name: string, amount: bigint) => void): void {
  const { expected, walletId } = truth;
  if (expected === null) return;
  if (walletId !== null && expected.charge !== null) add(walletId, expected.charge);
  for (const { lease, grant } of truth.holds)
    if (lease.quota.kind === 'budget' && grant !== null && grant.id !== null) add(grant.id, expected.budgetUse);
}
