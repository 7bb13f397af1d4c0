// The own provider keys of the organizations that lately sent requests. A change is pushed; what is held longer than a
// minute is read again, and what nobody asks for is forgotten, with the secrets that were opened for it.

import { BoundedMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { withDeadline } from '../../platform/deadline.ts';
import { socketsRead } from '../../platform/tick.ts';
import { KeyPauses } from './key-pauses.ts';
import { OrganizationKeys } from './organization-keys.ts';
import type { FindOwnKeys } from './own-key-set.ts';

/** Changes are pushed; this is the backstop for a lost notification. */
const TIME_TO_LIVE_MS = 60_000;
/** While the store is away no key can be changed in it: known ones serve this long. */
const AWAY_TIME_TO_LIVE_MS = 900_000;
/** Meanwhile it is asked this often, so that not every request waits for it. */
const ASK_AGAIN_MS = 5_000;
const IDLE_MS = 900_000;
const STORE_DEADLINE_MS = 2_000;
const ORGANIZATIONS_MAX = 10_000;

interface Held {
  readonly keys: OrganizationKeys;
  readonly readAtMs: number;
  /** Until then they serve without being read again. */
  freshUntilMs: number;
  usedAtMs: number;
}

interface Reading {
  readonly answer: Promise<OrganizationKeys | 'unavailable'>;
  /** A change came since it began, so its answer is not kept. */
  isOutdated: boolean;
}

export class HeldOwnKeys {
  readonly pauses = new KeyPauses();
  private readonly findOwnKeys: FindOwnKeys;
  private readonly clock: Clock;
  private readonly onStoreFault: (fault: unknown) => void;
  private readonly held = new BoundedMap<string, Held>(ORGANIZATIONS_MAX);
  private readonly reading = new Map<string, Reading>();

  /** `onStoreFault` is told why the store could not be asked. */
  constructor(findOwnKeys: FindOwnKeys, clock: Clock, onStoreFault: (fault: unknown) => void = () => undefined) {
    this.findOwnKeys = findOwnKeys;
    this.clock = clock;
    this.onStoreFault = onStoreFault;
  }

  /** From memory where they are held. `unavailable`: nobody knows them, and the service must not step in unasked. */
  find(organizationId: string): OrganizationKeys | Promise<OrganizationKeys | 'unavailable'> {
    const nowMs = this.clock.monotonicMs();
    const held = this.held.get(organizationId);
    if (held !== undefined && nowMs < held.freshUntilMs) {
      held.usedAtMs = nowMs;
      return held.keys;
    }
    const reading = this.reading.get(organizationId);
    if (reading !== undefined && !reading.isOutdated) return reading.answer;
    const begun: Reading = { answer: this.read(organizationId, () => begun.isOutdated), isOutdated: false };
    this.reading.set(organizationId, begun);
    return begun.answer;
  }

  private async read(organizationId: string, isOutdated: () => boolean): Promise<OrganizationKeys | 'unavailable'> {
    try {
      const set = await withDeadline(this.findOwnKeys(organizationId), STORE_DEADLINE_MS);
      const keys = new OrganizationKeys(organizationId, set);
      const nowMs = this.clock.monotonicMs();
      const freshUntilMs = nowMs + TIME_TO_LIVE_MS;
      if (!isOutdated()) this.held.set(organizationId, { keys, readAtMs: nowMs, freshUntilMs, usedAtMs: nowMs });
      return keys;
    } catch (fault) {
      this.onStoreFault(fault);
      const held = this.held.get(organizationId);
      const nowMs = this.clock.monotonicMs();
      if (held === undefined || nowMs - held.readAtMs >= AWAY_TIME_TO_LIVE_MS) return 'unavailable';
      held.freshUntilMs = nowMs + ASK_AGAIN_MS;
      held.usedAtMs = nowMs;
      return held.keys;
    } finally {
      if (!isOutdated()) this.reading.delete(organizationId);
      // Whoever left meanwhile is known to have left before anybody is called for them.
      await socketsRead();
    }
  }

  /** They were changed: what providers said of them before need not hold any more. */
  forget(organizationId: string): void {
    this.pauses.forget(organizationId);
    this.held.delete(organizationId);
    const reading = this.reading.get(organizationId);
    if (reading !== undefined) reading.isOutdated = true;
    this.reading.delete(organizationId);
  }

  /** Notifications may have been lost. */
  forgetAll(): void {
    for (const organizationId of this.reading.keys()) this.forget(organizationId);
    for (const [organizationId] of this.held) this.held.delete(organizationId);
    this.pauses.forgetAll();
  }

  /** Called from the coarse clock. */
  forgetIdle(nowMs: number): void {
    for (const [organizationId, { usedAtMs }] of this.held)
      if (nowMs - usedAtMs >= IDLE_MS) this.held.delete(organizationId);
    this.pauses.forgetEnded(nowMs);
  }
}
