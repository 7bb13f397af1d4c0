// Limits how fast a person and an organization may make changes over the API, because each change is a transaction, an
// audit log entry and a notification to every process. Each process counts by itself. Reads and DELETE are not counted:
// deleting a leaked key must never wait.

import type { Principal } from '../domain/identity/principal.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Clock } from '../platform/clock.ts';
import { RateMeter } from '../platform/rate-meter.ts';

/** An organization's limit is higher, because it has many people and automation. */
const ORGANIZATION_FACTOR = 5;

export class ChangeMeter {
  private readonly clock: Clock;
  private readonly people: RateMeter;
  private readonly organizations: RateMeter;

  constructor(clock: Clock, perMinute: number) {
    this.clock = clock;
    this.people = new RateMeter(perMinute);
    this.organizations = new RateMeter(perMinute * ORGANIZATION_FACTOR);
  }

  /** Counts a change. null: it may proceed. Platform administrators are not limited. */
  take({ platformAdmin, userId, apiKeyId, organizationId }: Principal): Refusal | null {
    if (platformAdmin) return null;
    const nowMs = this.clock.monotonicMs();
    const person = userId ?? apiKeyId;
    const retryAfterMs = Math.max(
      this.people.waitMs(person, nowMs),
      organizationId === null ? 0 : this.organizations.waitMs(organizationId, nowMs),
    );
    if (retryAfterMs > 0) return { kind: 'too_many_changes', retryAfterMs };
    this.people.count(person, nowMs);
    if (organizationId !== null) this.organizations.count(organizationId, nowMs);
    return null;
  }
}
