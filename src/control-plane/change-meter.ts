// Limits how fast a person and an organization may make changes over the API, because each change is a transaction, an
// audit log entry and a notification to every process. Each process counts by itself. Reads and DELETE are not counted:
// deleting a leaked key must never wait.

import type { Principal } from '../domain/identity/principal.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Clock } from '../platform/clock.ts';

/** An organization's limit is higher, because it has many people and automation. */
const ORGANIZATION_FACTOR = 5;
const MINUTE_MS = 60_000;

export class ChangeMeter {
  private readonly clock: Clock;
  private readonly perMinute: number;
  /**
   * For each person or organization: when its full number of changes is available again (the theoretical arrival time
   * of a GCRA). Ordered by last change, so that entries that are full again come first.
   */
  private readonly fullAtMs = new Map<string, number>();

  constructor(clock: Clock, perMinute: number) {
    this.clock = clock;
    this.perMinute = perMinute;
  }

  /** Counts a change. null: it may proceed. Platform administrators are not limited. */
  take({ platformAdmin, userId, apiKeyId, organizationId }: Principal): Refusal | null {
    if (platformAdmin) return null;
    const nowMs = this.clock.monotonicMs();
    const person = userId ?? apiKeyId;
    const personFullAtMs = this.fullAtAfter(person, this.perMinute, nowMs);
    const organizationFullAtMs =
      organizationId === null ? nowMs : this.fullAtAfter(organizationId, this.perMinute * ORGANIZATION_FACTOR, nowMs);
    const retryAfterMs = Math.max(personFullAtMs, organizationFullAtMs) - nowMs - MINUTE_MS;
    // A wait below 1 ms is a rounding error of summed fractions and no reason to refuse.
    if (retryAfterMs >= 1) return { kind: 'too_many_changes', retryAfterMs };
    this.set(person, personFullAtMs);
    if (organizationId !== null) this.set(organizationId, organizationFullAtMs);
    this.forgetFull(nowMs);
    return null;
  }

  /** When the full number is available again if a change is made now. */
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
