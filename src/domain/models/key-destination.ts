// Where a provider's stored key may be sent: only to the destination that it was given for. Otherwise whoever may
// change a provider could send its stored keys, the operator's or an organization's own, to a server that reads them.

import type { Provider, ProviderAuth } from './provider.ts';

/** What decides who can read a key that is sent to a provider. */
export interface KeyDestination {
  /** Scheme, host and port. */
  readonly origin: string;
  /** A provider may log or repeat a key that comes in another header. */
  readonly auth: ProviderAuth;
  /**
   * The path of a certificate authority's file: a holder of its certificates can intercept calls. null: the usual
   * authorities.
   */
  readonly authority: string | null;
  /** The proxy of plain http, which can read the key. null: https, or the proxy that the environment names. */
  readonly proxy: string | null;
}

/** A provider as it is in memory, as a configuration has it, or as it is stored. */
interface Addressed extends Pick<Provider, 'baseUrl' | 'auth'> {
  readonly requests?: {
    readonly proxy?: string | undefined;
    readonly tls?: { readonly ca?: string | undefined } | undefined;
  } | null;
}

export function destinationOf({ baseUrl, auth, requests }: Addressed): KeyDestination {
  const { origin, protocol } = new URL(baseUrl);
  const proxy = protocol === 'http:' ? requests?.proxy : undefined;
  return { origin, auth, authority: requests?.tls?.ca ?? null, proxy: proxy ?? null };
}

/** Why a key that was given for `given` may not be sent to `present`, such as "another address"; null: it may. */
export function otherDestination(given: KeyDestination, present: KeyDestination): string | null {
  if (present.origin !== given.origin) return 'another address';
  if (present.auth !== given.auth) return 'another header';
  if (present.authority !== null && present.authority !== given.authority) return 'another tls.ca';
  return present.proxy === given.proxy ? null : 'another proxy';
}
