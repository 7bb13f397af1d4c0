// Makes the calls of a gateway process to providers. It keeps one set of connections for each combination of address,
// settings and own key, and counts the calls that failed.

import type { Buffer } from 'node:buffer';
import type { Provider } from '../domain/models/provider.ts';
import type { Clock } from '../platform/clock.ts';
import { EgressGuard } from '../platform/egress/egress-guard.ts';
import { resolveByDns } from '../platform/egress/resolve-name.ts';
import type { Counter, MetricsRegistry } from '../platform/metrics.ts';
import { type CallObserver, type ProviderOrigin, startCall, type UpstreamCall } from './call.ts';
import type { UpstreamFault } from './call-connection.ts';
import { UPSTREAM_TIMEOUTS, type UpstreamTimeouts } from './connection-limits.ts';
import type { Credential } from './credential.ts';
import type { ForwardedHeaders } from './header-policy.ts';
import { NameLookups, type Resolve } from './http1/name-lookups.ts';
import type { OutgoingBody, UpstreamRequest } from './http1/request-head.ts';
import type { ObservedProviders } from './observed-providers.ts';
import { UpstreamOrigin } from './origin.ts';
import { NO_PROXIES, type ProxySettings, proxyOf } from './proxy-of.ts';
import type { ReplyHandler } from './reply-handler.ts';
import { ProviderAddress, type RequestTarget } from './request-target.ts';
import { readTlsFiles } from './tls-files.ts';
import { UndiciOrigin } from './undici/undici-origin.ts';

export interface ProviderRequest extends RequestTarget {
  readonly method: UpstreamRequest['method'];
  readonly credential: Credential;
  readonly headers: ForwardedHeaders;
  readonly body: Buffer | OutgoingBody | null;
  /** `as_reply`: a reply that refuses the key is passed on like any other, and is not reported to the operator. */
  readonly keyRefusals?: 'as_reply';
}

/** The interface through which providers are called. */
export interface Providers {
  /** Starts a call and passes its reply to the handler, never before this returns. */
  call(provider: Provider, request: ProviderRequest, handler: ReplyHandler): UpstreamCall;
  /**
   * Why the address of an own key may not be called, as the rest of a sentence that begins with "it"; null: nothing
   * forbids it that can be seen without calling.
   */
  addressProblem(provider: Provider): string | null;
  /** Nobody will call with this own key again: its connections are closed as soon as its calls have ended. */
  leave(provider: Provider): void;
  timeoutsOf(provider: Provider): UpstreamTimeouts;
}

interface Callee {
  readonly provider: Provider;
  /**
   * The key of its origin in `origins`. An own key's origin is closed when it is idle, and made anew under the same
   * key.
   */
  readonly key: string;
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
  /** Records how calls went. */
  readonly observed?: ObservedProviders;
  /** The rules for addresses that customers choose; absent: the strictest. */
  readonly egress?: EgressGuard;
  /** Looks up names that customers choose. */
  readonly resolveCustomerName?: Resolve;
}

/** Of the addresses that customers choose, only public ones on port 443 may be called. */
const STRICTEST_EGRESS = new EgressGuard({ anyPort: false, allowPrivate: false, allowed: [] });
/**
 * How many names that customers choose are looked up at once. No thread waits for these look-ups. One of a name whose
 * name server hangs takes some seconds, and one organization may have a thousand keys: with a low limit it would hold
 * up the names of all others.
 */
const CUSTOMER_LOOKUPS_MAX = 2_000;
/** After so long without use, the connections of an own key are closed. */
const OWN_IDLE_MS_MAX = 600_000;

interface UsedOrigin {
  readonly origin: ProviderOrigin;
  /** When an own key last used this origin; null: it is not an own key's, and stays as long as this process. */
  usedAtMs: number | null;
}

export class ProviderCalls implements Providers {
  /** By origin, timeouts and own key. */
  private readonly origins = new Map<string, UsedOrigin>();
  /** By the catalog's own object, so that a request parses no URL; a changed catalog has new objects. */
  private readonly callees = new WeakMap<Provider, Callee>();
  private readonly faults: Counter<readonly ['provider', 'kind']>;
  private readonly clock: Clock;
  private readonly names: NameLookups;
  private readonly customerNames: NameLookups;
  private readonly egress: EgressGuard;
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
      egress = STRICTEST_EGRESS,
      resolveCustomerName = resolveByDns(),
    }: ProviderCallOptions = {},
  ) {
    this.clock = clock;
    this.onKeyRefused = onKeyRefused;
    this.client = client;
    this.proxies = proxies;
    this.observed = observed ?? null;
    this.names = new NameLookups(clock, resolve);
    this.customerNames = new NameLookups(clock, resolveCustomerName, CUSTOMER_LOOKUPS_MAX);
    this.egress = egress;
    this.faults = metrics.counter(
      'tollgate_upstream_errors_total',
      'Calls to providers with keys of this service that failed, by kind',
      ['provider', 'kind'],
    );
    metrics.gauge('tollgate_upstream_open', 'Calls to providers whose reply has not ended', {
      read: () => this.openCalls(),
    });
  }

  call(provider: Provider, request: ProviderRequest, handler: ReplyHandler): UpstreamCall {
    const callee = this.calleeOf(provider);
    const { address, observer } = callee;
    const origin = this.originOf(callee);
    const { method, credential, headers, body, keyRefusals } = request;
    return startCall(
      origin,
      {
        method,
        path: address.pathOf(request),
        providerHeaders: credential,
        headers: address.headersOf(headers),
        body,
      },
      handler,
      keyRefusals === undefined ? observer : { ...observer, wordings: null, onReply: () => undefined },
    );
  }

  addressProblem({ baseUrl, own }: Provider): string | null {
    return own?.isGuarded === true ? this.egress.problemOf(baseUrl) : null;
  }

  leave(provider: Provider): void {
    const used = this.origins.get(this.calleeOf(provider).key);
    // Its open calls still need their timeouts, so the origin stays; the `trim` that finds no open call closes it.
    if (used !== undefined && used.usedAtMs !== null) used.usedAtMs = Number.NEGATIVE_INFINITY;
  }

  timeoutsOf(provider: Provider): UpstreamTimeouts {
    return { ...UPSTREAM_TIMEOUTS, ...provider.timeouts };
  }

  private calleeOf(provider: Provider): Callee {
    let callee = this.callees.get(provider);
    if (callee === undefined) {
      const address = new ProviderAddress(provider);
      callee = {
        provider,
        key: keyOf(address.origin, provider, this.proxies),
        address,
        observer: this.observerOf(provider),
      };
      this.callees.set(provider, callee);
    }
    return callee;
  }

  private observerOf(provider: Provider): CallObserver {
    const wordings = provider.requests?.errors ?? [];
    // Failures with an organization's own key are no concern of the operator's, and say nothing about the provider.
    if (provider.own !== undefined)
      return { wordings, isOwnKey: true, onFault: () => undefined, onKeyRefused: () => undefined };
    const { observed } = this;
    return {
      wordings,
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

  private originOf({ provider, key, address }: Callee): ProviderOrigin {
    let used = this.origins.get(key);
    if (used === undefined) {
      used = { origin: this.makeOrigin(address.origin, provider), usedAtMs: null };
      this.origins.set(key, used);
    }
    if (provider.own !== undefined) used.usedAtMs = this.clock.monotonicMs();
    return used.origin;
  }

  /** Our own client speaks HTTP/1.1 to providers that are called directly; all else is undici's. */
  private makeOrigin(origin: string, provider: Provider): ProviderOrigin {
    const { clock, names } = this;
    const { proxy: ownProxy, http = 1, tls: files } = provider.requests ?? {};
    const timeouts = this.timeoutsOf(provider);
    const tls = readTlsFiles(provider.id, files ?? {});
    if (provider.own?.isGuarded === true)
      return new UpstreamOrigin(origin, timeouts, clock, this.customerNames, tls, this.egress);
    const proxy = proxyOf(origin, ownProxy, this.proxies);
    return this.client === 'own' && proxy === null && http === 1
      ? new UpstreamOrigin(origin, timeouts, clock, names, tls)
      : new UndiciOrigin({ origin, timeouts, proxy, http, tls, clock, names });
  }

  private openCalls(): number {
    let open = 0;
    for (const { origin } of this.origins.values()) open += origin.openCalls;
    return open;
  }

  trim(): void {
    const nowMs = this.clock.monotonicMs();
    for (const [key, { origin, usedAtMs }] of this.origins) {
      origin.trim();
      if (usedAtMs === null || nowMs - usedAtMs < OWN_IDLE_MS_MAX || origin.openCalls > 0) continue;
      this.origins.delete(key);
      void origin.close();
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.origins.values()].map(({ origin }) => origin.close()));
  }
}

function keyOf(address: string, provider: Provider, proxies: ProxySettings): string {
  const { proxy: ownProxy, http = 1, tls } = provider.requests ?? {};
  const { connectMs, firstByteMs, idleMs, totalMs } = { ...UPSTREAM_TIMEOUTS, ...provider.timeouts };
  const proxy = proxyOf(address, ownProxy, proxies);
  const times = [connectMs, firstByteMs, idleMs, totalMs];
  return JSON.stringify([address, ...times, proxy, http, tls, provider.own]);
}
