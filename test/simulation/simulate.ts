// Runs one seed: a machine with gateways and jobs, a database, clients and a provider. Trouble comes first, then
// healing, then a check that everything is right.

import type { PrincipalLimit } from '../../src/domain/identity/principal.ts';
import { type Happening, makePlan, makeScenario, type Payer, principalOfPayer, type Scenario } from './scenario.ts';
import { SimulatedDisk } from './simulated-disk.ts';
import { SimulatedGateway, SPOOL_DIRECTORY } from './simulated-gateway.ts';
import { SimulatedFacts, startJobs } from './simulated-jobs.ts';
import { SimulatedNetwork } from './simulated-network.ts';
import { type Machine, within } from './simulated-platform.ts';
import { SimulatedPostgres } from './simulated-postgres.ts';
import { type Answer, type RequestPlan, SimulatedRequest, tokensOf, worstPriceOf } from './simulated-request.ts';
import { type SimulatedProcess, World } from './virtual-world.ts';
import { Watch } from './watch.ts';

export interface SeedResult {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly log: readonly string[] | null;
  readonly events: number;
  /** Two runs with the same digest did the same. */
  readonly digest: string;
  readonly requests: number;
  readonly complete: number;
  readonly virtualMs: number;
}

/** Runs a seed. Call it from outside every promise: promises are drained between two events. */
export function simulate(seed: number, traced = false): SeedResult {
  const simulation = new Simulation(seed, traced);
  simulation.run();
  return simulation.result(seed);
}

/** Longer than a silent connection is waited for; after that a lost call is recovered. */
const QUIET_AFTER_LOSS_MS = 75_000;
/** Longer than a spool pauses between two attempts to write, and than a broken listener takes to notice. */
const QUIET_AFTER_DISK_MS = 33_000;
const QUIET_AFTER_STALL_MS = 20_000;
const QUIET_MS = 6_000;
const SHIPPED_WITHIN_MS = 5_000;
const CALL_LIMIT_MS = 100;
const PROBE_LIMIT_MS = 8_000;
const DRAIN_LIMIT_MS = 240_000;

const QUARANTINE = `${SPOOL_DIRECTORY}/quarantine`;

class Simulation {
  private readonly world: World;
  private readonly scenario: Scenario;
  private readonly machine: Machine;
  private readonly server: SimulatedPostgres;
  private readonly network: SimulatedNetwork;
  private readonly facts = new SimulatedFacts();
  private readonly watch: Watch;
  private readonly slots: (SimulatedGateway | null)[] = [];
  private readonly jobs = new Set<SimulatedProcess>();
  private readonly limits = new Map<string, PrincipalLimit>();
  private readonly stalled = new Map<SimulatedProcess, number>();
  private readonly requests: SimulatedRequest[] = [];
  private phase: 'trouble' | 'healed' | 'ending' = 'trouble';
  private made = 0;

  constructor(seed: number, traced: boolean) {
    this.world = new World(seed, traced);
    this.scenario = makeScenario(this.world.random);
    this.world.baseMs = this.scenario.baseMs;
    this.machine = { disk: new SimulatedDisk(this.world.random), processes: new Map(), boot: 1 };
    this.server = new SimulatedPostgres(this.world);
    this.network = new SimulatedNetwork(this.world);
    this.watch = new Watch(this.world, this.server, this.machine.disk);
    this.world.check = (process) => this.watch.check(process);
    this.server.onNotify = (payload) => this.notify(payload);
    this.server.onRestart = () => this.eachGateway((gateway) => gateway.deafen(this.world.random.between(100, 5_000)));
  }

  result(seed: number): SeedResult {
    const { world, requests } = this;
    return {
      seed,
      violations: world.violations,
      log: world.log,
      events: world.events,
      digest: `${world.events}:${world.digest >>> 0}`,
      requests: requests.length,
      complete: requests.filter(({ answer }) => answer === 'complete').length,
      virtualMs: world.nowMs,
    };
  }

  run(): void {
    const { world, scenario } = this;
    within(world, this.machine, () => {
      this.prepare();
      this.beginTrouble();
      world.run(scenario.healMs);
      this.heal();
      this.calmDown(this.quietMs());
      this.checkNothingForgotten();
      this.probeAll();
      this.endAll();
    });
  }

  /**
   * Lets time pass until the last lost call is given up and recovered. For most of that time there is nothing to do, so
   * the processes sleep.
   */
  private calmDown(quietMs: number): void {
    const { world } = this;
    const untilMs = world.nowMs + quietMs;
    const wakeMs = untilMs - SHIPPED_WITHIN_MS;
    const sleep = (process: SimulatedProcess): void => {
      process.stalledUntilMs = Math.max(process.stalledUntilMs, wakeMs);
    };
    world.run(world.nowMs + Math.min(quietMs, SHIPPED_WITHIN_MS));
    for (const process of this.jobs) sleep(process);
    this.eachGateway(({ process }) => sleep(process));
    world.run(untilMs);
  }

  private checkNothingForgotten(): void {
    const { world, watch } = this;
    const before = watch.forgotten();
    if (before.length === 0) return;
    // While a call that returns something is on its way, neither side counts it.
    world.run(world.nowMs + CALL_LIMIT_MS);
    for (const what of watch.forgotten()) if (before.includes(what)) world.violate(what);
  }

  private quietMs(): number {
    const { troubles, happenings } = this.scenario;
    const had = (what: Happening): boolean => happenings.some((happening) => happening.what === what);
    if (troubles.messageLoss > 0 || had('restart postgres') || had('lock the tables')) return QUIET_AFTER_LOSS_MS;
    if (troubles.syncFails > 0 || troubles.writeFails > 0 || had('fill the disk') || had('deafen a gateway'))
      return QUIET_AFTER_DISK_MS;
    return had('stall a gateway') || had('stall jobs') ? QUIET_AFTER_STALL_MS : QUIET_MS;
  }

  private prepare(): void {
    const { scenario, server } = this;
    server.administer('opens the books', (books) => {
      for (const { walletId, limits } of scenario.payers) {
        if (walletId !== null) {
          books.openWallet(walletId);
          books.deposit(walletId, scenario.deposits.get(walletId) ?? 0n, 'first');
        }
        for (const limit of limits) {
          books.limits.limits.set(limit.id, {
            id: limit.id,
            kind: limit.kind,
            period: limit.window,
            amount: limit.amount,
          });
          this.limits.set(limit.id, limit);
          this.watch.ceilings.set(limit.id, limit.amount);
        }
      }
    });
    for (let slot = 0; slot < scenario.gateways; slot += 1) this.startGateway(slot);
    this.startJobs();
    const lookAtSyncs = (): void => {
      this.watch.checkSyncs(this.stalled);
      if (this.phase === 'trouble') this.world.in(300, 'look at syncs', lookAtSyncs);
    };
    this.world.in(300, 'look at syncs', lookAtSyncs);
  }

  private beginTrouble(): void {
    const { scenario, network, world } = this;
    const { trouble } = this.machine.disk;
    const { troubles } = scenario;
    Object.assign(network.trouble, {
      loss: troubles.messageLoss,
      slow: troubles.slowMessages,
      slowMs: troubles.slowMessageMs,
    });
    Object.assign(trouble, {
      syncFails: troubles.syncFails,
      writeFails: troubles.writeFails,
      shortWrite: troubles.shortWrites,
      readFails: troubles.readFails,
      slowSyncMs: troubles.slowSyncMs,
    });
    for (const { atMs, payer, plan } of scenario.requests)
      world.schedule(atMs, null, 'a client asks', () => this.ask(payer, plan));
    for (const { atMs, what } of scenario.happenings) world.schedule(atMs, null, what, () => this.happen(what));
  }

  /** Ends all trouble, and starts every dead process again. */
  private heal(): void {
    const { network, machine, facts, world } = this;
    world.note('everything is healed');
    this.phase = 'healed';
    Object.assign(network.trouble, { loss: 0, slow: 0 });
    Object.assign(machine.disk.trouble, { syncFails: 0, writeFails: 0, shortWrite: 0, readFails: 0, slowSyncMs: 0 });
    machine.disk.leave(null);
    facts.away = false;
    this.eachGateway(({ process }) => immortal(process));
    for (const process of this.jobs) immortal(process);
    for (const { walletId } of this.scenario.payers) {
      if (walletId !== null) this.server.administer(`thaws ${walletId}`, (books) => books.freeze(walletId, false));
    }
  }

  private eachGateway(act: (gateway: SimulatedGateway) => void): void {
    for (const gateway of this.slots) if (gateway !== null && gateway.process.alive) act(gateway);
  }

  private startGateway(slot: number): void {
    const { world, server, network, watch, scenario } = this;
    this.made += 1;
    const gateway: SimulatedGateway = new SimulatedGateway({
      world,
      name: `gateway-${this.made}`,
      server,
      network,
      watch,
      onDeath: () => {
        this.machine.processes.delete(gateway.process.pid);
        this.slots[slot] = null;
        if (this.phase !== 'ending')
          world.in(world.random.magnitude(20, 2_000), 'gateway starts again', () => this.startGateway(slot));
      },
    });
    if (this.phase === 'ending') return;
    this.slots[slot] = gateway;
    this.machine.processes.set(gateway.process.pid, gateway.process);
    this.limitSteps(gateway.process);
    gateway.start(scenario.spool);
  }

  private startJobs(isSecond = false): void {
    const { world, server, network, facts, scenario } = this;
    this.made += 1;
    const process: SimulatedProcess = startJobs({
      world,
      name: `jobs-${this.made}`,
      server,
      network,
      facts,
      limits: scenario.shipping,
      onDeath: () => {
        this.machine.processes.delete(process.pid);
        this.jobs.delete(process);
        if (!isSecond) world.in(world.random.magnitude(20, 2_000), 'jobs start again', () => this.startJobs());
      },
    });
    this.jobs.add(process);
    this.machine.processes.set(process.pid, process);
    this.limitSteps(process);
  }

  private limitSteps(process: SimulatedProcess): void {
    const { troubles } = this.scenario;
    if (this.phase === 'trouble' && this.world.random.chance(troubles.mortality))
      process.stepsLeft = Math.ceil(this.world.random.magnitude(1, troubles.stepsMax));
  }

  private notify(payload: string): void {
    this.eachGateway((gateway) => {
      gateway.process.in(this.network.delayMs(), 'revocation', () => gateway.hear(payload));
    });
  }

  /** Notifies like the triggers of migration 0045. */
  private notifyRoom(key: string): void {
    this.eachGateway((gateway) => {
      gateway.process.in(this.network.delayMs(), 'room', () => gateway.expectRoom(key));
    });
  }

  private ask(payer: Payer, plan: Omit<RequestPlan, 'principal'>): SimulatedRequest | null {
    const serving = this.slots.filter((gateway) => gateway?.serving === true && gateway.process.alive);
    if (serving.length === 0) return null;
    return this.askAt(this.world.random.pick(serving) as SimulatedGateway, payer, plan);
  }

  private askAt(gateway: SimulatedGateway, payer: Payer, plan: Omit<RequestPlan, 'principal'>): SimulatedRequest {
    const limits = payer.limits.flatMap(({ id }) => this.limits.get(id) ?? []);
    const request = new SimulatedRequest(this.world, gateway, this.watch, {
      ...plan,
      principal: principalOfPayer({ ...payer, limits }),
    });
    this.requests.push(request);
    gateway.process.in(0, 'request', () => request.arrive());
    return request;
  }

  private happen(what: Happening): void {
    const { world, machine } = this;
    const { random } = world;
    world.note(`trouble: ${what}`);
    const gateway = random.pick(this.slots);
    const jobs = random.pick([...this.jobs]);
    switch (what) {
      case 'kill a gateway':
        gateway?.process.die('killed');
        break;
      case 'kill jobs':
        jobs?.die('killed');
        break;
      case 'second jobs':
        this.startJobs(true);
        break;
      case 'cut the power':
        this.cutPower();
        break;
      case 'restart postgres':
        this.server.crash(random.magnitude(50, 6_000));
        break;
      case 'lock the tables':
        this.lockTables(random.between(500, 9_500));
        break;
      case 'stall a gateway':
        if (gateway != null) this.stall(gateway.process);
        break;
      case 'stall jobs':
        if (jobs !== undefined) this.stall(jobs);
        break;
      case 'roll a gateway':
        gateway?.drain(random.magnitude(50, 5_000));
        break;
      case 'deafen a gateway':
        gateway?.deafen(random.magnitude(50, 25_000));
        break;
      case 'fill the disk':
        machine.disk.leave(Math.floor(random.magnitude(1, 30_000)) - 1);
        world.in(random.magnitude(50, 8_000), 'room on the disk', () => machine.disk.leave(null));
        break;
      case 'clickhouse away':
        this.facts.away = true;
        world.in(random.magnitude(50, 8_000), 'clickhouse is back', () => {
          this.facts.away = false;
        });
        break;
      case 'freeze a wallet':
      case 'deposit':
      case 'lower a limit':
      case 'remove a limit':
        this.operate(what);
    }
  }

  private operate(what: 'freeze a wallet' | 'deposit' | 'lower a limit' | 'remove a limit'): void {
    const { server, watch } = this;
    const { random } = this.world;
    const { walletId, limits } = random.pick(this.scenario.payers);
    const limit = limits.length === 0 ? undefined : this.limits.get(random.pick(limits).id);
    const amount = BigInt(Math.round(random.magnitude(0.5, 20) * 200_000));
    if (what === 'deposit' && walletId !== null) {
      server.administer(`deposits ${amount}`, (books) => {
        books.deposit(walletId, amount, `order ${books.transfers.size}`);
        this.notifyRoom(walletId);
      });
    }
    if (what === 'freeze a wallet' && walletId !== null) {
      server.administer(`freezes ${walletId}`, (books) => books.freeze(walletId, true));
      this.notify(walletId);
      this.world.in(random.magnitude(50, 3_000), 'thaw', () => {
        server.administer(`thaws ${walletId}`, (books) => {
          books.freeze(walletId, false);
          this.notify(walletId);
        });
      });
    }
    if (limit === undefined) return;
    const { id, kind, window: period } = limit;
    if (what === 'lower a limit') {
      const lower = limit.amount / 2n;
      server.administer(`lowers ${id}`, (books) => books.limits.limits.set(id, { id, kind, period, amount: lower }));
      this.limits.set(id, { ...limit, amount: lower });
      this.notify(id);
    } else if (what === 'remove a limit') {
      server.administer(`removes ${id}`, (books) => books.limits.limits.delete(id));
      this.limits.delete(id);
      watch.ceilings.delete(id);
    }
  }

  /** Locks the tables; clients continue to send requests while the database makes everybody wait. */
  private lockTables(forMs: number): void {
    const { world, server, scenario } = this;
    const { random } = world;
    server.lock(forMs, random.chance(0.9));
    for (let count = random.whole(0, 5); count > 0; count -= 1) {
      world.in(
        random.between(0, forMs),
        'a client asks',
        () => void this.ask(random.pick(scenario.payers), makePlan(random)),
      );
    }
  }

  private stall(process: SimulatedProcess): void {
    const untilMs = this.world.nowMs + this.world.random.magnitude(20, 15_000);
    // A process that is already stalled does not wake earlier: its events wait until the later time.
    process.stalledUntilMs = Math.max(process.stalledUntilMs, untilMs);
    this.stalled.set(process, process.stalledUntilMs);
  }

  private cutPower(): void {
    const { machine, watch, facts } = this;
    watch.powerWillBeCut(facts);
    this.eachGateway(({ process }) => process.die('with the power'));
    for (const process of this.jobs) process.die('with the power');
    machine.boot += 1;
    machine.disk.cutPower();
  }

  /** Once all is well, every request is served if what it needs exists at all, wherever it lies. */
  private probeAll(): void {
    const { world, scenario } = this;
    world.run(
      world.nowMs + 60_000,
      () => !this.watch.anyOpen && this.slots.every((gateway) => gateway?.serving === true),
    );
    for (const payer of scenario.payers) {
      for (const gateway of this.slots) {
        if (gateway === null || world.violations.length > 0) continue;
        this.probe(gateway, payer);
      }
    }
  }

  private probe(gateway: SimulatedGateway, payer: Payer): void {
    const { world, watch } = this;
    if (!gateway.serving) {
      world.violate(`${gateway.process.name} does not serve`);
      return;
    }
    const plan = {
      ...makePlan(world.random),
      provider: 'serves' as const,
      firstByteMs: 1,
      replyMs: 1,
      leavesAfterMs: null,
      principal: principalOfPayer(payer),
    };
    const limits = payer.limits.flatMap(({ id }) => this.limits.get(id) ?? []);
    const price = worstPriceOf(plan);
    // A rate is limited by its window and recovers by itself, so only the other limits are probed.
    const isLimited = limits.some(
      ({ kind, amount }) => kind === 'requests_per_minute' || (kind === 'tokens_per_minute' && tokensOf(plan) > amount),
    );
    const pools = limits
      .filter(({ kind }) => kind === 'budget' || kind === 'concurrent_requests')
      .map(({ kind, id }) => ({ kind: kind as string, key: id }));
    if (payer.walletId !== null) pools.push({ kind: 'credit', key: payer.walletId });
    const isThere = pools.every((pool) => watch.reachable(pool) >= (pool.kind === 'concurrent_requests' ? 1n : price));
    const request = this.askAt(gateway, payer, plan);
    world.run(world.nowMs + PROBE_LIMIT_MS, () => request.answer !== null);
    const { answer } = request;
    if (world.violations.length > 0) return;
    if (answer === null) world.violate(`${gateway.process.name} does not answer`);
    else if (isThere && !isLimited && answer !== 'complete' && !isRate(answer)) {
      world.violate(
        `${gateway.process.name} refuses (${typeof answer === 'string' ? answer : answer.kind}) what is there: ${price} of ${payer.organizationId}`,
      );
    }
    // The request's charge is posted before the next request.
    world.run(world.nowMs + 1_500);
  }

  /** Ends all gateways, some of them in order, and ships what they wrote. Then everything must be right. */
  private endAll(): void {
    const { world, machine, watch } = this;
    if (world.violations.length > 0) return;
    this.phase = 'ending';
    this.eachGateway((gateway) => {
      if (world.random.chance(0.5)) gateway.drain(1_000);
      else gateway.process.die('killed at the end');
    });
    const isShipped = (): boolean =>
      !this.slots.some((gateway) => gateway !== null) && spoolsIn(machine.disk).length === 0;
    world.run(world.nowMs + DRAIN_LIMIT_MS, isShipped);
    if (world.violations.length > 0) return;
    if (!isShipped()) world.violate(`spools are left: ${spoolsIn(machine.disk).join(', ')}`);
    // Time for what jobs still does after the last directory is gone.
    world.run(world.nowMs + 500);
    if (world.violations.length > 0) return;
    watch.checkEnd(this.facts);
    // Bytes that are no records stay behind a segment only after a power cut or a write that cannot be taken back.
    const setAside = machine.disk.exists(QUARANTINE) ? machine.disk.list(QUARANTINE) : [];
    if (setAside.length > 0 && machine.boot === 1 && this.scenario.troubles.writeFails === 0)
      world.violate(`set aside: ${setAside.join(', ')}`);
  }
}

function isRate(answer: Answer): boolean {
  return typeof answer !== 'string' && (answer.kind === 'rate_limit' || answer.kind === 'traffic_token_bound_required');
}

function immortal(process: SimulatedProcess): void {
  process.stepsLeft = Number.POSITIVE_INFINITY;
}

function spoolsIn(disk: SimulatedDisk): string[] {
  // A directory that does not have its number as name yet holds nothing; the next jobs process that starts removes it.
  return disk.exists(SPOOL_DIRECTORY) ? disk.list(SPOOL_DIRECTORY).filter((name) => /^\d+$/.test(name)) : [];
}
