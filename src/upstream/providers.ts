// Calls to the providers of a gateway process: one set of connections for each provider's address and timeouts, and the
// counts of what the calls met.

import type { Buffer } from 'node:buffer';
import type { Provider } from '../domain/models/provider.ts';
import type { Clock } from '../platform/clock.ts';
import type { Counter, MetricsRegistry } from '../platform/metrics.ts';
import { type CallObserver, type ProviderOrigin, startCall, type UpstreamCall } from './call.ts';
import type { UpstreamFault } from './call-connection.ts';
import type { Credential } from './credential.ts';
import type { ForwardedHeaders } from './header-policy.ts';
import { NameLookups, type Resolve } from './http1/name-lookups.ts';
import type { OutgoingBody, UpstreamRequest } from './http1/request-head.ts';
import type { ObservedProviders } from './observed-providers.ts';
import { UPSTREAM_TIMEOUTS, UpstreamOrigin, type UpstreamTimeouts } from './origin.ts';
import { NO_PROXIES, type ProxySettings, proxyOf } from './proxy-of.ts';
import type { ReplyHandler } from './reply-handler.ts';
import { ProviderAddress, type RequestTarget } from './request-target.ts';
import { readTlsFiles } from './tls-files.ts';
import { UndiciOrigin, type UndiciParams } from './undici/undici-origin.ts';

export interface ProviderRequest extends RequestTarget {
  readonly method: UpstreamRequest['method'];
  readonly credential: Credential;
  readonly headers: ForwardedHeaders;
  readonly body: Buffer | OutgoingBody | null;
  /** `as_reply`: that the provider refuses the key is a reply like any other, and no matter of the operator. */
  readonly keyRefusals?: 'as_reply';
}

/** The interface through which providers are called. */
export interface Providers {
  /** Starts a call and passes its reply to the handler, never before this returns. */
  call(provider: Provider, request: ProviderRequest, handler: ReplyHandler): UpstreamCall;
  timeoutsOf(provider: Provider): UpstreamTimeouts;
}

interface Callee {
  readonly origin: ProviderOrigin;
  readonly address: ProviderAddress;
  readonly observer: CallObserver;
}

/** Which client calls providers that are called directly over HTTP/1.1. */
export type UpstreamClient = 'own' | 'undici';

export interface ProviderCallOptions {
  /** A provider does not accept the key that it was called with. */
  readonly onKeyRefused?: (provider: Provider, status: number) => void;
  readonly client?: UpstreamClient;
  readonly proxies?: ProxySettings;
  /** How the name of a provider is looked up; absent: as the system does. */
  readonly resolve?: Resolve;
  /** Is told how calls went. */
  readonly observed?: ObservedProviders;
}

export class ProviderCalls implements Providers {
  /** By origin and timeouts. */
  private readonly origins = new Map<string, ProviderOrigin>();
  /** By the catalog's own object, so that a request parses nothing; a changed catalog has new ones. */
  private readonly callees = new WeakMap<Provider, Callee>();
  private readonly faults: Counter<readonly ['provider', 'kind']>;
  private readonly clock: Clock;
  private readonly names: NameLookups;
  private readonly onKeyRefused: (provider: Provider, status: number) => void;
  private readonly client: UpstreamClient;
  private readonly proxies: ProxySettings;
  private readonly observed: ObservedProviders | null;

  constructor(
    metrics: MetricsRegistry,
    clock: Clock,
    {
      onKeyRefused = () => undefined,
      client = 'own',
      proxies = NO_PROXIES,
      resolve,
      observed,
    }: ProviderCallOptions = {},
  ) {
    this.clock = clock;
    this.onKeyRefused = onKeyRefused;
    this.client = client;
    this.proxies = proxies;
    this.observed = observed ?? null;
    this.names = new NameLookups(clock, resolve);
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
    const { method, credential, headers, body, keyRefusals } = request;
    return startCall(
      origin,
      {
        method,
        path: address.pathOf(request),
        ownHeaders: credential,
        headers: address.headersOf(headers),
        body,
      },
      handler,
      keyRefusals === undefined ? observer : { ...observer, wordings: null, onReply: () => undefined },
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
        origin: this.sharedOrigin(address.origin, provider),
        address,
        observer: this.observerOf(provider),
      };
      this.callees.set(provider, callee);
    }
    return callee;
  }

  private observerOf(provider: Provider): CallObserver {
    const { observed } = this;
    return {
      wordings: provider.requests?.errors ?? [],
      onFault: (fault: UpstreamFault): void => {
        this.faults.labels(provider.id, fault).increment();
        observed?.faulted(provider.id, fault);
      },
      onKeyRefused: (status: number): void => {
        this.onKeyRefused(provider, status);
        observed?.keyRefused(provider.id, status);
      },
      onReply: (status: number, afterMs: number): void => observed?.replied(provider.id, status, afterMs),
    };
  }

  private sharedOrigin(address: string, provider: Provider): ProviderOrigin {
    const timeouts = { ...UPSTREAM_TIMEOUTS, ...provider.timeouts };
    const { proxy: ownProxy, http = 1, tls } = provider.requests ?? {};
    const proxy = proxyOf(address, ownProxy, this.proxies);
    const { connectMs, firstByteMs, idleMs, totalMs } = timeouts;
    const key = JSON.stringify([address, connectMs, firstByteMs, idleMs, totalMs, proxy, http, tls]);
    let origin = this.origins.get(key);
    if (origin === undefined) {
      origin = this.makeOrigin({ origin: address, timeouts, proxy, http, tls: readTlsFiles(provider.id, tls ?? {}) });
      this.origins.set(key, origin);
    }
    return origin;
  }

  /** Our own client speaks HTTP/1.1 to providers that are called directly; all else is undici's. */
  private makeOrigin(params: Omit<UndiciParams, 'clock' | 'names'>): ProviderOrigin {
    const { clock, names } = this;
    return this.client === 'own' && params.proxy === null && params.http === 1
      ? new UpstreamOrigin(params.origin, params.timeouts, clock, names, params.tls)
      : new UndiciOrigin({ ...params, clock, names });
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
