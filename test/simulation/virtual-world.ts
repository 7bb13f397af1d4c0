// Virtual time and the processes that live in it: one queue of events, which run one at a time, each until its last
// promise has run.
//
// A process dies between two events or at any of its steps: a system call, a message sent or received. What it does
// after that has no effect.

import { assert } from '../../src/platform/assert.ts';
import type { Clock } from '../../src/platform/clock.ts';
import { SeededRandom } from './seeded-random.ts';

/** Thrown at the step at which a process dies, and at every later step of that process. */
class ProcessDied extends Error {
  override readonly name = 'ProcessDied';
}

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly process: SimulatedProcess | null;
  readonly label: string;
  readonly happen: () => void;
}

export class SimulatedProcess {
  readonly world: World;
  readonly name: string;
  readonly pid: number;
  readonly clock: Clock;
  alive = true;
  /** Until this time the process is stopped, as by SIGSTOP or a long pause: its events wait. */
  stalledUntilMs = 0;
  /** The number of steps that the process still has. */
  stepsLeft = Number.POSITIVE_INFINITY;
  private readonly onDeath: () => void;

  constructor(world: World, name: string, onDeath: () => void) {
    this.world = world;
    this.name = name;
    this.pid = world.nextPid();
    this.onDeath = onDeath;
    const monotonicOffsetMs = world.random.between(0, 1e6);
    const wallOffsetMs = Math.round(world.random.between(-40, 40));
    this.clock = {
      nowMs: () => Math.floor(world.wallMs() + wallOffsetMs),
      monotonicMs: () => world.nowMs + monotonicOffsetMs,
    };
  }

  /**
   * Call this before each effect of the running process. `last` is called if the process dies in the middle of the
   * effect.
   */
  step(what: string, last?: () => void): void {
    if (!this.alive) throw new ProcessDied();
    this.stepsLeft -= 1;
    if (this.stepsLeft > 0) return;
    last?.();
    this.die(`at ${what}`);
    throw new ProcessDied();
  }

  die(why: string): void {
    if (!this.alive) return;
    this.alive = false;
    this.world.note(`${this.name} dies ${why}`);
    this.onDeath();
  }

  /** Schedules an event of this process; it is dropped if the process is dead by then. */
  in(delayMs: number, label: string, happen: () => void): void {
    this.world.schedule(this.world.nowMs + delayMs, this, label, happen);
  }
}

/** `process._tickCallback` runs all waiting promises now. */
const drainPromises = (process as unknown as { readonly _tickCallback: (this: void) => void })._tickCallback;

export class World {
  readonly random: SeededRandom;
  nowMs = 0;
  /** The process whose code runs; null: the world's own code runs. */
  current: SimulatedProcess | null = null;
  /** The database's wall time at virtual time 0. */
  baseMs = 0;
  /** Called after every event. */
  check: (process: SimulatedProcess | null) => void = () => undefined;
  /** The lines of the event log; null if nobody reads them. */
  readonly log: string[] | null;
  readonly violations: string[] = [];
  events = 0;
  /** Two runs with the same digest did the same. */
  digest = 0;
  private readonly queue: Event[] = [];
  private order = 0;
  private pids = 1_000;

  constructor(seed: number, traced: boolean) {
    this.random = new SeededRandom(seed);
    this.log = traced ? [] : null;
  }

  nextPid(): number {
    this.pids += 1;
    return this.pids;
  }

  wallMs(): number {
    return this.baseMs + this.nowMs;
  }

  note(line: string): void {
    this.log?.push(`${(this.nowMs / 1_000).toFixed(6).padStart(12)}  ${line}`);
  }

  violate(what: string): void {
    this.note(`VIOLATION ${what}`);
    this.violations.push(what);
  }

  /** Schedules an event of the world, which happens whatever process lives or dies. */
  in(delayMs: number, label: string, happen: () => void): void {
    this.schedule(this.nowMs + delayMs, null, label, happen);
  }

  schedule(atMs: number, process: SimulatedProcess | null, label: string, happen: () => void): void {
    this.order += 1;
    this.push({ atMs, order: this.order, process, label, happen });
  }

  /** Runs all events up to that time in order, or until `until` returns true or an invariant is broken. */
  run(untilMs: number, until: () => boolean = () => false): void {
    for (;;) {
      const event = this.queue[0];
      if (event === undefined || event.atMs > untilMs || this.violations.length > 0 || until()) break;
      this.pop();
      this.nowMs = Math.max(this.nowMs, event.atMs);
      this.happen(event);
    }
    if (this.queue.length === 0 || (this.violations.length === 0 && !until()))
      this.nowMs = Math.max(this.nowMs, untilMs);
  }

  private happen(event: Event): void {
    const { process, label } = event;
    if (process !== null && !process.alive) return;
    if (process !== null && process.stalledUntilMs > this.nowMs) {
      this.schedule(process.stalledUntilMs, process, label, event.happen);
      return;
    }
    this.events += 1;
    for (let index = 0; index < label.length; index += 1)
      this.digest = (Math.imul(this.digest, 31) + label.charCodeAt(index)) | 0;
    this.digest = (Math.imul(this.digest, 31) + Math.round(this.nowMs * 1e3)) | 0;
    this.as(process, event.happen);
    this.check(process);
  }

  /** Runs code as this process, until the last promise that follows from it has run. */
  as(process: SimulatedProcess | null, work: () => void): void {
    assert(this.current === null, 'one event at a time');
    this.current = process;
    try {
      work();
    } catch (fault) {
      this.noteFault(fault);
    }
    drainPromises();
    this.current = null;
  }

  /** Notes a fault that nobody caught. */
  noteFault(fault: unknown): void {
    if (fault instanceof ProcessDied) return;
    const text = fault instanceof Error ? (fault.stack ?? fault.message) : String(fault);
    this.violate(`${this.current?.name ?? 'the world'}: fault that nobody caught: ${text}`);
  }

  private push(event: Event): void {
    const { queue } = this;
    let index = queue.length;
    queue.push(event);
    while (index > 0) {
      const above = (index - 1) >> 1;
      if (!isBefore(event, queue[above] as Event)) break;
      queue[index] = queue[above] as Event;
      index = above;
    }
    queue[index] = event;
  }

  private pop(): void {
    const { queue } = this;
    const last = queue.pop() as Event;
    if (queue.length === 0) return;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= queue.length) break;
      if (below + 1 < queue.length && isBefore(queue[below + 1] as Event, queue[below] as Event)) below += 1;
      if (!isBefore(queue[below] as Event, last)) break;
      queue[index] = queue[below] as Event;
      index = below;
    }
    queue[index] = last;
  }
}

function isBefore(first: Event, second: Event): boolean {
  return first.atMs < second.atMs || (first.atMs === second.atMs && first.order < second.order);
}
