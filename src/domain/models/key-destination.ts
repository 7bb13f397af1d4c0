// Where a stored key of a provider may be sent: to what it was given for. Whoever may change a provider does not get to
// read the keys that are stored for it, whether they are the operator's or an organization's own.

import type { Provider, ProviderAuth } from './provider.ts';

/** What decides who can read a key that is sent to a provider. */
export interface KeyDestination {
  /** Scheme, host and port. */
  readonly origin: string;
  /** In another header a provider may write the key down, or repeat it. */
  readonly auth: ProviderAuth;
  /** The path of an authority's file: who has a certificate of it can stand on the way. null: the usual ones alone. */
  readonly authority: string | null;
  /** Over plain http a proxy reads the key as well. null: https, or what the environment says. */
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

/** What `present` is that a key which was given for `given` is not sent to, such as "another address"; null: it is. */
export function otherDestination(given: KeyDestination, present: KeyDestination): string | null {
  if (present.origin !== given.origin) return 'another address';
  if (present.auth !== given.auth) return 'another header';
  if (present.authority !== null && present.authority !== given.authority) return 'another tls.ca';
  return present.proxy === given.proxy ? null : 'another proxy';
}
