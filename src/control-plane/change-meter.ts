// Limits how fast one person and one organization may change things over the API: each change is a transaction, an
// audit log entry and a notification to every process. Counted in each process by itself. Reads and DELETE are not
// metered: deleting a leaked key must never wait.

import type { Principal } from '../domain/identity/principal.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Clock } from '../platform/clock.ts';

/** An organization has many people, and automation of its own. */
const ORGANIZATION_FACTOR = 5;
const MINUTE_MS = 60_000;

export class ChangeMeter {
  private readonly clock: Clock;
  private readonly perMinute: number;
  /**
   * By the id of a person or organization: when its whole minute's allowance is available again (the theoretical
   * arrival time of a GCRA). In the order of the last change, so that entries which are full again are found in front.
   */
  private readonly fullAtMs = new Map<string, number>();

  constructor(clock: Clock, perMinute: number) {
    this.clock = clock;
    this.perMinute = perMinute;
  }

  /** null: the change may go ahead, and is counted. Platform administrators are the operator's own people. */
  take({ platformAdmin, userId, apiKeyId, organizationId }: Principal): Refusal | null {
    if (platformAdmin) return null;
    const nowMs = this.clock.monotonicMs();
    const person = userId ?? apiKeyId;
    const personFullAtMs = this.fullAtAfter(person, this.perMinute, nowMs);
    const organizationFullAtMs =
      organizationId === null ? nowMs : this.fullAtAfter(organizationId, this.perMinute * ORGANIZATION_FACTOR, nowMs);
    const retryAfterMs = Math.max(personFullAtMs, organizationFullAtMs) - nowMs - MINUTE_MS;
    // Sums of fractions are off by less than that: without it the last of a minute's changes would be refused now and
    // then.
    if (retryAfterMs >= 1) return { kind: 'too_many_changes', retryAfterMs };
    this.set(person, personFullAtMs);
    if (organizationId !== null) this.set(organizationId, organizationFullAtMs);
    this.forgetFull(nowMs);
    return null;
  }

  /** When it is full again if it changes something now. */
  private fullAtAfter(id: string, perMinute: number, nowMs: number): number {
    return Math.max(this.fullAtMs.get(id) ?? 0, nowMs) + MINUTE_MS / perMinute;
  }

  private set(id: string, fullAtMs: number): void {
    this.fullAtMs.delete(id);
    this.fullAtMs.set(id, fullAtMs);
  }

  private forgetFull(nowMs: number): void {
    for (const [id, fullAtMs] of this.fullAtMs) {
      if (fullAtMs > nowMs) return;
      this.fullAtMs.delete(id);
    }
  }
}
