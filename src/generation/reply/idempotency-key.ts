// What a provider gets of a client's idempotency key. An account of the operator serves all organizations, and a
// provider that knows a repeated request by account and key would give one of them the reply to another one's request.

import { hash } from 'node:crypto';
import type { Provider } from '../../domain/models/provider.ts';
import { type ForwardedHeaders, IDEMPOTENCY_KEY } from '../../upstream/header-policy.ts';
import { HeaderLines } from '../../upstream/http1/request-head.ts';

/** Who gets a reply again for the same key: within an organization, who pays from the same wallet. */
export interface KeyOwner {
  readonly organizationId: string;
  readonly walletId: string | null;
}

/** The client's headers for a call to this provider. In the operator's account the key is hashed with whose it is. */
export function headersFor(headers: ForwardedHeaders, provider: Provider, owner: KeyOwner): ForwardedHeaders {
  // Headers with such a key are never kept as lines.
  if (headers instanceof HeaderLines || provider.own !== undefined) return headers;
  return headers.map((text, index) => {
    const isKey = index % 2 === 1 && headers[index - 1] === IDEMPOTENCY_KEY;
    // An empty one names no request; a hash of it would make all of an organization's requests one.
    return isKey && text !== '' ? hash('sha256', [owner.organizationId, owner.walletId, text].join('\0'), 'hex') : text;
  });
}
