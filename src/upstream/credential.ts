// What a call to a provider is authorized with. A call is given it as a value: whose key it is, the operator's or an
// organization's own, is decided where deployments are prepared, and nothing that relays a reply knows.

import type { Provider } from '../domain/models/provider.ts';
import { HeaderLines } from './http1/request-head.ts';

/** The headers that every call with one key has: the key itself, no compression, and what the provider wants. */
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
