// Calls to the providers of a gateway process: one set of connections for each provider's address and timeouts, and the
// counts of what the calls met.

import type { Buffer } from 'node:buffer';
import type { Provider, ProviderTimeouts } from '../domain/models/catalog.ts';
import type { Clock } from '../platform/clock.ts';
import type { Counter, MetricsRegistry } from '../platform/metrics.ts';
import type { CallObserver, UpstreamCall } from './call.ts';
import type { Credential } from './credential.ts';
import type { UpstreamFault } from './http1/connection.ts';
import { NameLookups } from './http1/name-lookups.ts';
import type { OutgoingBody, UpstreamRequest } from './http1/request-head.ts';
import { UPSTREAM_TIMEOUTS, UpstreamOrigin, type UpstreamTimeouts } from './origin.ts';
import type { ReplyHandler } from './reply-handler.ts';
import { pathPrefixOf, upstreamPath } from './upstream-path.ts';

export interface ProviderRequest {
  readonly method: UpstreamRequest['method'];
  /** Without the prefix of the provider's base URL. */
  readonly path: string;
  /** The client's, without its question mark; empty: none. */
  readonly query: string;
  readonly credential: Credential;
  readonly headers: UpstreamRequest['headers'];
  readonly body: Buffer | OutgoingBody | null;
}

/** The interface through which providers are called. */
export interface Providers {
  /** Starts a call and passes its reply to the handler, never before this returns. */
  call(provider: Provider, request: ProviderRequest, handler: ReplyHandler): UpstreamCall;
  timeoutsOf(provider: Provider): UpstreamTimeouts;
}

interface Address {
  readonly origin: UpstreamOrigin;
  readonly pathPrefix: string;
  readonly observer: CallObserver;
}

export class ProviderCalls implements Providers {
  /** By origin and timeouts. */
  private readonly origins = new Map<string, UpstreamOrigin>();
  /** By the catalog's own object, so that a request parses nothing; a changed catalog has new ones. */
  private readonly addresses = new WeakMap<Provider, Address>();
  private readonly faults: Counter<readonly ['provider', 'kind']>;
  private readonly clock: Clock;
  private readonly names: NameLookups;
  private readonly onKeyRefused: (provider: Provider, status: number) => void;

  /** `onKeyRefused`: a provider does not accept the key that it was called with. */
  constructor(
    metrics: MetricsRegistry,
    clock: Clock,
    onKeyRefused: (provider: Provider, status: number) => void = () => undefined,
  ) {
    this.clock = clock;
    this.onKeyRefused = onKeyRefused;
    this.names = new NameLookups(clock);
    this.faults = metrics.counter('tollgate_upstream_errors_total', 'Calls to providers that failed, by kind', [
      'provider',
      'kind',
    ]);
    metrics.gauge('tollgate_upstream_open', 'Calls to providers whose reply has not ended', {
      read: () => this.openCalls(),
    });
  }

  call(provider: Provider, request: ProviderRequest, handler: ReplyHandler): UpstreamCall {
    const { origin, pathPrefix, observer } = this.addressOf(provider);
    const { method, path, query, credential, headers, body } = request;
    return origin.call(
      { method, path: upstreamPath(pathPrefix, path, query), ownHeaders: credential, headers, body },
      handler,
      observer,
    );
  }

  timeoutsOf(provider: Provider): UpstreamTimeouts {
    return this.addressOf(provider).origin.timeouts;
  }

  private addressOf(provider: Provider): Address {
    let address = this.addresses.get(provider);
    if (address === undefined) {
      const url = new URL(provider.baseUrl);
      address = {
        origin: this.sharedOrigin(url.origin, provider.timeouts),
        pathPrefix: pathPrefixOf(url),
        observer: {
          onFault: (fault: UpstreamFault): void => this.faults.labels(provider.id, fault).increment(),
          onKeyRefused: (status: number): void => this.onKeyRefused(provider, status),
        },
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
