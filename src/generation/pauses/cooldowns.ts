// Selects the deployments that an organization may call now: not those in cooldown after a provider's 429, not those at
// an address that fails (breaker.ts), and not those whose provider has no valid token. Each process learns this from
// the replies that it relays itself.

import { isCallable } from '../../domain/models/provider.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { type Clock, systemClock } from '../../platform/clock.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import { Breaker } from './breaker.ts';
import { Pauses, type PresentPause } from './pauses.ts';

/** A longer Retry-After is cut to this: it may be a mistake, which one request then finds out. */
const COOLDOWN_MAX_MS = 600_000;
/** A cooldown for all, after refusals of two organizations, is short, since both may belong to one person. */
const COOLDOWN_FOR_ALL_MAX_MS = 60_000;
/**
 * How often, during a cooldown for all, another organization's request is let through to find out whether it is
 * refused, too.
 */
const PROBE_EVERY_MS = 2_000;

/** When an address is paused: after this many failures (unreachable, or a 5xx) with nothing else between them. */
const ADDRESS_FAILS = { failuresMax: 3, withinMs: 10_000, pauseMs: 2_000, pauseMsMax: 30_000 };
const SERVER_FAILED = 500;

/** A provider's model, or a whole address. */
export interface PausedModel extends Omit<PresentPause, 'subject'> {
  /** null: every provider at `origin`. */
  readonly providerId: string | null;
  readonly origin: string | null;
  readonly model: string | null;
}

export class Cooldowns {
  private readonly clock: Clock;
  private readonly addresses = new Breaker(ADDRESS_FAILS);
  private readonly pauses = new Pauses(COOLDOWN_FOR_ALL_MAX_MS, PROBE_EVERY_MS);

  /**
   * Begins or prolongs the cooldown of a deployment for the organization whose request was refused, and for all
   * organizations once a second organization's request is. `retryAfter` is the provider's header, seconds or an HTTP
   * date; without a readable one there is no cooldown.
   */
  begin(
    deployment: Deployment,
    organizationId: string,
    retryAfter: string | null,
    now: { readonly monotonicMs: number; readonly wallClockMs: number },
  ): void {
    const waitMs = retryAfter === null ? null : readRetryAfter(retryAfter, now.wallClockMs);
    if (waitMs === null || waitMs <= 0) return;
    this.pauses.begin(subjectOf(deployment), organizationId, Math.min(waitMs, COOLDOWN_MAX_MS), now.monotonicMs);
  }

  constructor(clock: Clock = systemClock) {
    this.clock = clock;
  }

  /** A reply of the deployment has begun. `status` null: it could not be reached. */
  called(deployment: Deployment, organizationId: string, status: number | null): void {
    if (status === null || status >= SERVER_FAILED)
      this.addresses.failed(addressOf(deployment), organizationId, this.clock.monotonicMs());
    else this.addresses.answered(addressOf(deployment), organizationId);
    // Organizations that were not refused themselves may call it again.
    if (status !== null && status < 300 && this.pauses.size > 0) this.pauses.lift(subjectOf(deployment));
  }

  /**
   * The deployments that the organization may call now, in their order; when there is none, a refusal. A request whose
   * deployments are all at failing addresses is still sent to one: a breaker spares attempts where there is another,
   * and never makes a request fail.
   */
  filter<T extends Deployment>(
    deployments: readonly T[],
    organizationId: string,
    nowMs: number,
  ): readonly T[] | Refusal {
    const callable = this.withToken(deployments);
    if (callable.length === 0) return { kind: 'provider_unavailable' };
    const cool = this.withoutCooldown(callable, organizationId, nowMs);
    if ('kind' in cool || cool.length === 1) return cool;
    const reached = cool.filter((one) => this.addresses.leftMs(addressOf(one), organizationId, nowMs) <= 0);
    return reached.length > 0 ? reached : cool;
  }

  private withToken<T extends Deployment>(deployments: readonly T[]): readonly T[] {
    if (deployments.every(({ provider }) => provider.token === undefined)) return deployments;
    const nowMs = this.clock.nowMs();
    return deployments.filter(({ provider }) => isCallable(provider, nowMs));
  }

  private withoutCooldown<T extends Deployment>(
    deployments: readonly T[],
    organizationId: string,
    nowMs: number,
  ): readonly T[] | Refusal {
    if (this.pauses.size === 0) return deployments;
    let shortestMs = Number.POSITIVE_INFINITY;
    const open = deployments.filter((deployment) => {
      const leftMs = this.pauses.leftMs(subjectOf(deployment), organizationId, nowMs);
      if (leftMs <= 0) return true;
      shortestMs = Math.min(shortestMs, leftMs);
      return false;
    });
    return open.length > 0 ? open : { kind: 'upstream_cooldown', retryAfterMs: shortestMs };
  }

  /** The pauses that are not over, of providers' models and of whole addresses. */
  list(nowMs: number): readonly PausedModel[] {
    const models = this.pauses.list(nowMs).map(({ subject, ...pause }) => {
      const [providerId = '', model = ''] = subject.split('\0');
      return { ...pause, providerId, origin: null, model };
    });
    const addresses = this.addresses
      .list(nowMs)
      // Failures of own keys concern only their organizations and are not listed.
      .filter(({ subject }) => !subject.includes('\0'))
      .map(({ subject, ...pause }) => ({ ...pause, providerId: null, origin: subject, model: null }));
    return [...models, ...addresses];
  }

  /** Called from the coarse clock: forgets what is over. */
  forgetEnded(nowMs: number): void {
    this.pauses.forgetEnded(nowMs);
    this.addresses.forgetEnded(nowMs);
  }

  get size(): number {
    return this.pauses.size;
  }
}

/**
 * The subject of a cooldown. A provider limits the account that a credential belongs to, so an organization's own key
 * is part of the subject. Ids contain no NUL, so two subjects are never equal.
 */
function subjectOf({ provider, providerModel }: Deployment): string {
  const account = `${provider.id}\0${providerModel}`;
  return provider.own === undefined ? account : `${account}\0${provider.own.keyId}`;
}

/**
 * The subject whose failures count together: all calls of the service to an address, or those of one own key. Failures
 * of two organizations' own keys at an address say nothing about a third organization or the service.
 */
function addressOf({ origin, provider }: Deployment): string {
  return provider.own === undefined ? origin : `${origin}\0${provider.own.keyId}`;
}

/** RFC 9110, 10.2.3: delay-seconds or an HTTP date. In milliseconds from now; null when it is neither. */
export function readRetryAfter(value: string, wallClockMs: number): number | null {
  const text = value.trim();
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : date - wallClockMs;
}
