// The credential of a call to a provider, which the call is given as a value. Code that prepares deployments decides
// whose key it is, the operator's or an organization's own; code that relays a reply does not know.

import type { Provider } from '../domain/models/provider.ts';
import { HeaderLines } from './http1/request-head.ts';

/**
 * The headers of every call with one key: the key itself, no compression, and the headers of the provider's
 * configuration.
 */
export type Credential = HeaderLines;

const ofProviders = new WeakMap<Provider, Credential>();

/** The operator's key for this provider. */
export function providerCredential(provider: Provider): Credential {
  let credential = ofProviders.get(provider);
  if (credential === undefined) {
    const added = Object.entries(provider.requests?.headers ?? {}).flat();
    credential = new HeaderLines(['accept-encoding', 'identity', ...added, ...keyHeader(provider)]);
    ofProviders.set(provider, credential);
  }
  return credential;
}

function keyHeader({ auth, apiKey }: Provider): readonly string[] {
  if (auth === 'bearer') return ['authorization', `Bearer ${apiKey}`];
  return auth === 'none' ? [] : [auth, apiKey];
}
