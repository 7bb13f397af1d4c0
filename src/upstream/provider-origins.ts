// The upstream origins of a gateway process: one free list of connections for each provider's address and timeouts.

import type { Provider, ProviderTimeouts } from '../domain/models/catalog.ts';
import type { Clock } from '../platform/clock.ts';
import type { Counter, MetricsRegistry } from '../platform/metrics.ts';
import type { UpstreamFault } from './http1/connection.ts';
import { NameLookups } from './http1/name-lookups.ts';
import { UPSTREAM_TIMEOUTS, UpstreamOrigin } from './origin.ts';

interface Address {
  readonly origin: UpstreamOrigin;
  readonly pathPrefix: string;
}

export class ProviderOrigins {
  /** By origin and timeouts. */
  private readonly origins = new Map<string, UpstreamOrigin>();
  /** By the catalog's own object, so that a request parses nothing; a changed catalog has new ones. */
  private readonly addresses = new WeakMap<Provider, Address>();
  private readonly faults: Counter<readonly ['provider', 'kind']>;
  private readonly clock: Clock;
  private readonly names: NameLookups;

  constructor(metrics: MetricsRegistry, clock: Clock) {
    this.clock = clock;
    this.names = new NameLookups(clock);
    this.faults = metrics.counter('tollgate_upstream_errors_total', 'Calls to providers that failed, by kind', [
      'provider',
      'kind',
    ]);
    metrics.gauge('tollgate_upstream_open', 'Calls to providers whose reply has not ended', {
      read: () => this.openCalls(),
    });
  }

  originOf(provider: Provider): UpstreamOrigin {
    return this.addressOf(provider).origin;
  }

  pathPrefixOf(provider: Provider): string {
    return this.addressOf(provider).pathPrefix;
  }

  private addressOf(provider: Provider): Address {
    let address = this.addresses.get(provider);
    if (address === undefined) {
      const url = new URL(provider.baseUrl);
      address = {
        origin: this.sharedOrigin(url.origin, provider.timeouts),
        pathPrefix: url.pathname.replace(/\/+$/, ''),
      };
      this.addresses.set(provider, address);
    }
    return address;
  }

  private sharedOrigin(address: string, ownTimeouts: ProviderTimeouts | undefined): UpstreamOrigin {
    const timeouts = { ...UPSTREAM_TIMEOUTS, ...ownTimeouts };
    const key = [address, timeouts.connectMs, timeouts.firstByteMs, timeouts.idleMs, timeouts.totalMs].join(' ');
    let origin = this.origins.get(key);
    if (origin === undefined) {
      origin = new UpstreamOrigin(address, timeouts, this.clock, this.names);
      this.origins.set(key, origin);
    }
    return origin;
  }

  countFault(provider: Provider, fault: UpstreamFault): void {
    this.faults.labels(provider.id, fault).increment();
  }

  private openCalls(): number {
    let open = 0;
    for (const origin of this.origins.values()) open += origin.openCalls;
    return open;
  }

  trim(): void {
    for (const origin of this.origins.values()) origin.trim();
  }

  async close(): Promise<void> {
    await Promise.all([...this.origins.values()].map((origin) => origin.close()));
  }
}
