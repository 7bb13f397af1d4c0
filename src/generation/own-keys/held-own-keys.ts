// Holds the own provider keys of organizations that recently sent requests. Changes are pushed; keys held for longer
// than a minute are read again; and keys that nobody uses are forgotten, with their opened secrets.

import { BoundedMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { withDeadline } from '../../platform/deadline.ts';
import { socketsRead } from '../../platform/event-loop/tick.ts';
import { AWAY_TIME_TO_LIVE_MS } from '../identity/authenticate.ts';
import { KeyPauses } from './key-pauses.ts';
import { OrganizationKeys } from './organization-keys.ts';
import type { FindOwnKeys } from './own-key-set.ts';

/** Changes are pushed; this is the backstop for a lost notification. */
const TIME_TO_LIVE_MS = 60_000;
/** While the store is away, it is asked about each organization this often. */
const ASK_AGAIN_MS = 5_000;
/**
 * Idle keys are forgotten only once they may not serve any more: if the store is away, they could not be read again.
 */
const IDLE_MS = AWAY_TIME_TO_LIVE_MS;
const STORE_DEADLINE_MS = 2_000;
const ORGANIZATIONS_MAX = 10_000;

interface Held {
  readonly keys: OrganizationKeys;
  readonly readAtMs: number;
  /** Until then the keys are used without being read again. */
  freshUntilMs: number;
  usedAtMs: number;
}

/** One read of the store. */
interface Reading {
  readonly organizationId: string;
  /** A change came after the read began, so its answer is not kept. */
  isOutdated: boolean;
}

export class HeldOwnKeys {
  readonly pauses = new KeyPauses();
  private readonly findOwnKeys: FindOwnKeys;
  private readonly clock: Clock;
  private readonly onStoreFault: (fault: unknown) => void;
  private readonly held = new BoundedMap<string, Held>(ORGANIZATIONS_MAX);
  /** The reads under way, by organization: further requests wait for the same read. */
  private readonly answers = new Map<string, Promise<OrganizationKeys | 'unavailable'>>();
  /** The reads that the store has not answered yet, including those whose deadline has passed. */
  private readonly readings = new Set<Reading>();
  /** The store did not answer the last read. */
  private isAway = false;

  /** `onStoreFault` is told why the store could not be asked. */
  constructor(findOwnKeys: FindOwnKeys, clock: Clock, onStoreFault: (fault: unknown) => void = () => undefined) {
    this.findOwnKeys = findOwnKeys;
    this.clock = clock;
    this.onStoreFault = onStoreFault;
  }

  /**
   * The organization's keys; a promise if they must be read. While the store is away, remembered keys are returned
   * without waiting. `unavailable`: the keys are not known, and the service must not step in unasked.
   */
  find(organizationId: string): OrganizationKeys | Promise<OrganizationKeys | 'unavailable'> {
    const nowMs = this.clock.monotonicMs();
    const held = this.held.get(organizationId);
    if (held !== undefined && nowMs < held.freshUntilMs) {
      held.usedAtMs = nowMs;
      return held.keys;
    }
    const answer = this.answers.get(organizationId) ?? this.startReading(organizationId);
    return this.isAway ? (this.rememberedOf(organizationId, nowMs) ?? answer) : answer;
  }

  private startReading(organizationId: string): Promise<OrganizationKeys | 'unavailable'> {
    const answer = this.read(organizationId).finally(() => {
      if (this.answers.get(organizationId) === answer) this.answers.delete(organizationId);
    });
    this.answers.set(organizationId, answer);
    return answer;
  }

  /** The keys that serve while the store cannot be asked; null: none are remembered, or for too long. */
  private rememberedOf(organizationId: string, nowMs: number): OrganizationKeys | null {
    const held = this.held.get(organizationId);
    if (held === undefined || nowMs - held.readAtMs >= AWAY_TIME_TO_LIVE_MS) return null;
    held.usedAtMs = nowMs;
    return held.keys;
  }

  private async read(organizationId: string): Promise<OrganizationKeys | 'unavailable'> {
    const reading: Reading = { organizationId, isOutdated: false };
    try {
      return await withDeadline(this.ask(reading), STORE_DEADLINE_MS);
    } catch (fault) {
      this.onStoreFault(fault);
      const nowMs = this.clock.monotonicMs();
      // A read from before a change says nothing about the store since then.
      if (!reading.isOutdated) this.noteAway(organizationId, nowMs);
      return this.rememberedOf(organizationId, nowMs) ?? 'unavailable';
    } finally {
      // Sockets are read first, so that no provider is called for a client that left during the wait.
      await socketsRead();
    }
  }

  private noteAway(organizationId: string, nowMs: number): void {
    this.isAway = true;
    const held = this.held.get(organizationId);
    if (held !== undefined) held.freshUntilMs = nowMs + ASK_AGAIN_MS;
  }

  /** An answer that comes after the deadline is kept, so that the next request need not wait. */
  private async ask(reading: Reading): Promise<OrganizationKeys> {
    const { organizationId } = reading;
    this.readings.add(reading);
    try {
      const keys = new OrganizationKeys(organizationId, await this.findOwnKeys(organizationId));
      this.isAway = false;
      const nowMs = this.clock.monotonicMs();
      const freshUntilMs = nowMs + TIME_TO_LIVE_MS;
      if (!reading.isOutdated) this.held.set(organizationId, { keys, readAtMs: nowMs, freshUntilMs, usedAtMs: nowMs });
      return keys;
    } finally {
      this.readings.delete(reading);
    }
  }

  /** An organization's keys were changed, so what providers said of them need not hold any more. */
  forget(organizationId: string): void {
    this.pauses.forget(organizationId);
    this.held.delete(organizationId);
    this.answers.delete(organizationId);
    for (const reading of this.readings) if (reading.organizationId === organizationId) reading.isOutdated = true;
  }

  /** Keys were changed, and it is not known whose. */
  forgetAll(): void {
    for (const [organizationId] of this.held) this.held.delete(organizationId);
    this.markAllUncertain();
  }

  /** Changes may have been missed. All keys are read again, and the held ones serve only if they cannot be read. */
  markAllUncertain(): void {
    this.isAway = false;
    for (const reading of this.readings) reading.isOutdated = true;
    this.answers.clear();
    for (const [, held] of this.held) held.freshUntilMs = Number.NEGATIVE_INFINITY;
    this.pauses.forgetAll();
  }

  /** Called from the coarse clock: forgets keys that nobody uses, and pauses that are over. */
  forgetIdle(nowMs: number): void {
    for (const [organizationId, { usedAtMs }] of this.held)
      if (nowMs - usedAtMs >= IDLE_MS) this.held.delete(organizationId);
    this.pauses.forgetEnded(nowMs);
  }
}
