// The upstream origins of a gateway process: one free list of connections for each provider's address.

import { type UpstreamFault, UpstreamOrigin } from '../data-plane/relay/upstream.ts';
import type { Provider } from '../domain/models/catalog.ts';
import type { Counter, MetricsRegistry } from '../platform/metrics.ts';

interface Address {
  readonly origin: UpstreamOrigin;
  readonly pathPrefix: string;
}

export class ProviderOrigins {
  private readonly byOrigin = new Map<string, UpstreamOrigin>();
  /** By base URL, so that a request does not parse it. */
  private readonly byBaseUrl = new Map<string, Address>();
  private readonly faults: Counter<readonly ['provider', 'kind']>;

  constructor(metrics: MetricsRegistry) {
    this.faults = metrics.counter('tollgate_upstream_errors_total', 'Calls to providers that failed, by kind', ['provider', 'kind']);
    metrics.gauge('tollgate_upstream_open', 'Calls to providers whose reply has not ended', { read: () => this.openCalls() });
  }

  originOf(provider: Provider): UpstreamOrigin {
    return this.addressOf(provider).origin;
  }

  pathPrefixOf(provider: Provider): string {
    return this.addressOf(provider).pathPrefix;
  }

  private addressOf(provider: Provider): Address {
    let address = this.byBaseUrl.get(provider.baseUrl);
    if (address === undefined) {
      const url = new URL(provider.baseUrl);
      let origin = this.byOrigin.get(url.origin);
      if (origin === undefined) {
        origin = new UpstreamOrigin(url.origin);
        this.byOrigin.set(url.origin, origin);
      }
      address = { origin, pathPrefix: url.pathname.replace(/\/+$/, '') };
      this.byBaseUrl.set(provider.baseUrl, address);
    }
    return address;
  }

  countFault(provider: Provider, fault: UpstreamFault): void {
    this.faults.labels(provider.id, fault).increment();
  }

  private openCalls(): number {
    let open = 0;
    for (const origin of this.byOrigin.values()) open += origin.openCalls;
    return open;
  }

  trim(): void {
    for (const origin of this.byOrigin.values()) origin.trim();
  }

  async close(): Promise<void> {
    await Promise.all([...this.byOrigin.values()].map((origin) => origin.close()));
  }
}
