// What a provider gets of a client's idempotency key. An account of the operator serves all organizations, and a
// provider that knows a repeated request by account and key would give one of them the reply to another one's request.

import { hash } from 'node:crypto';
import type { Provider } from '../../domain/models/provider.ts';
import { type ForwardedHeaders, IDEMPOTENCY_KEY } from '../../upstream/header-policy.ts';
import { HeaderLines } from '../../upstream/http1/request-head.ts';

/** The client's headers for a call to this provider. In the operator's account the key is hashed with whose it is. */
export function headersFor(headers: ForwardedHeaders, provider: Provider, organizationId: string): ForwardedHeaders {
  // Headers with such a key are never kept as lines.
  if (headers instanceof HeaderLines || provider.own !== undefined) return headers;
  return headers.map((text, index) => {
    const isKey = index % 2 === 1 && headers[index - 1] === IDEMPOTENCY_KEY;
    // An empty one names no request; a hash of it would make all of an organization's requests one.
    return isKey && text !== '' ? hash('sha256', `${organizationId}\0${text}`, 'hex') : text;
  });
}
