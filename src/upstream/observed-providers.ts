// What this process has seen of each provider: its last success, its last failure and how, how fast it answers.

import type { ProviderFailure, ProviderHealth } from '../domain/models/provider-health.ts';
import { BoundedMap } from '../platform/bounded-map.ts';
import type { Clock } from '../platform/clock.ts';
import type { UpstreamFault } from './call-connection.ts';

export type ObservedProvider = Omit<ProviderHealth, 'pauses' | 'token'>;

const FAULTS: Readonly<Record<UpstreamFault, ProviderFailure | null>> = {
  connect_failed: 'connect',
  // A provider may close an idle connection.
  stale_connection: null,
  no_reply: 'no_reply',
  first_byte_timeout: 'timeout',
  idle_timeout: 'timeout',
  total_timeout: 'timeout',
  cut: 'cut',
};
/** A limit for safety, since catalogs have few; beyond it the oldest is forgotten. */
const PROVIDERS_MAX = 10_000;
/** The share of the newest latency in the mean. */
const NEWEST_SHARE = 0.2;

interface Seen {
  lastSuccessAtMs: number | null;
  lastFailureAtMs: number | null;
  lastFailure: ProviderFailure | null;
  lastFailureStatus: number | null;
  latencyMs: number | null;
}

export class ObservedProviders {
  private readonly clock: Clock;
  private readonly byId = new BoundedMap<string, Seen>(PROVIDERS_MAX);
  private readonly changed = new Set<string>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** A client's mistake (4xx) says nothing of the provider. */
  replied(providerId: string, status: number, latencyMs: number): void {
    if (status === 429) this.failed(providerId, 'rate_limited', status);
    else if (status >= 500) this.failed(providerId, 'server_error', status);
    if (status >= 400) return;
    const seen = this.of(providerId);
    seen.lastSuccessAtMs = this.clock.nowMs();
    seen.latencyMs = seen.latencyMs === null ? latencyMs : seen.latencyMs + NEWEST_SHARE * (latencyMs - seen.latencyMs);
  }

  faulted(providerId: string, fault: UpstreamFault): void {
    const failure = FAULTS[fault];
    if (failure !== null) this.failed(providerId, failure, null);
  }

  keyRefused(providerId: string, status: number): void {
    this.failed(providerId, 'key_refused', status);
  }

  /** What has changed since the last call, by provider. */
  takeChanges(): ReadonlyMap<string, ObservedProvider> {
    const changes = new Map([...this.changed].map((id) => [id, { ...this.of(id) }]));
    this.changed.clear();
    return changes;
  }

  /** What is known of a provider; null: nothing. */
  get(providerId: string): ObservedProvider | null {
    return this.byId.get(providerId) ?? null;
  }

  private failed(providerId: string, failure: ProviderFailure, status: number | null): void {
    const seen = this.of(providerId);
    seen.lastFailureAtMs = this.clock.nowMs();
    seen.lastFailure = failure;
    seen.lastFailureStatus = status;
  }

  private of(providerId: string): Seen {
    let seen = this.byId.get(providerId);
    if (seen === undefined) {
      seen = {
        lastSuccessAtMs: null,
        lastFailureAtMs: null,
        lastFailure: null,
        lastFailureStatus: null,
        latencyMs: null,
      };
      this.byId.set(providerId, seen);
    }
    this.changed.add(providerId);
    return seen;
  }
}
