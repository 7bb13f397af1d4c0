// Calls to the providers of a gateway process: one set of connections for each provider's address and timeouts, and the
// counts of what the calls met.

import type { Buffer } from 'node:buffer';
import type { Provider, ProviderTimeouts } from '../domain/models/provider.ts';
import type { Clock } from '../platform/clock.ts';
import type { Counter, MetricsRegistry } from '../platform/metrics.ts';
import type { CallObserver, UpstreamCall } from './call.ts';
import type { Credential } from './credential.ts';
import type { ForwardedHeaders } from './header-policy.ts';
import type { UpstreamFault } from './http1/connection.ts';
import { NameLookups } from './http1/name-lookups.ts';
import type { OutgoingBody, UpstreamRequest } from './http1/request-head.ts';
import { UPSTREAM_TIMEOUTS, UpstreamOrigin, type UpstreamTimeouts } from './origin.ts';
import type { ReplyHandler } from './reply-handler.ts';
import { ProviderAddress, type RequestTarget } from './request-target.ts';

export interface ProviderRequest extends RequestTarget {
  readonly method: UpstreamRequest['method'];
  readonly credential: Credential;
  readonly headers: ForwardedHeaders;
  readonly body: Buffer | OutgoingBody | null;
}

/** The interface through which providers are called. */
export interface Providers {
  /** Starts a call and passes its reply to the handler, never before this returns. */
  call(provider: Provider, request: ProviderRequest, handler: ReplyHandler): UpstreamCall;
  timeoutsOf(provider: Provider): UpstreamTimeouts;
}

interface Callee {
  readonly origin: UpstreamOrigin;
  readonly address: ProviderAddress;
  readonly observer: CallObserver;
}

export class ProviderCalls implements Providers {
  /** By origin and timeouts. */
  private readonly origins = new Map<string, UpstreamOrigin>();
  /** By the catalog's own object, so that a request parses nothing; a changed catalog has new ones. */
  private readonly callees = new WeakMap<Provider, Callee>();
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
    const { origin, address, observer } = this.calleeOf(provider);
    const { method, credential, headers, body } = request;
    return origin.call(
      {
        method,
        path: address.pathOf(request),
        ownHeaders: credential,
        headers: address.headersOf(headers),
        body,
      },
      handler,
      observer,
    );
  }

  timeoutsOf(provider: Provider): UpstreamTimeouts {
    return this.calleeOf(provider).origin.timeouts;
  }

  private calleeOf(provider: Provider): Callee {
    let callee = this.callees.get(provider);
    if (callee === undefined) {
      const address = new ProviderAddress(provider);
      callee = {
        origin: this.sharedOrigin(address.origin, provider.timeouts),
        address,
        observer: {
          wordings: provider.requests?.errors ?? [],
          onFault: (fault: UpstreamFault): void => this.faults.labels(provider.id, fault).increment(),
          onKeyRefused: (status: number): void => this.onKeyRefused(provider, status),
        },
      };
      this.callees.set(provider, callee);
    }
    return callee;
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
