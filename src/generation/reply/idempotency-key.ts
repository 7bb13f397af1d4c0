// Decides what a provider gets of a client's idempotency key. One account of the operator serves all organizations, and
// a provider recognizes a repeated request by account and key. With the client's own key it could give one organization
// the reply to another organization's request.

import { hash } from 'node:crypto';
import type { Provider } from '../../domain/models/provider.ts';
import { type ForwardedHeaders, IDEMPOTENCY_KEY } from '../../upstream/header-policy.ts';
import { HeaderLines } from '../../upstream/http1/request-head.ts';

/** Who shares a key's replies: requests of one organization that pay from one wallet. */
export interface KeyOwner {
  readonly organizationId: string;
  readonly walletId: string | null;
}

/** The client's headers for a call to this provider. For the operator's account the key is hashed with its owner. */
export function headersFor(headers: ForwardedHeaders, provider: Provider, owner: KeyOwner): ForwardedHeaders {
  // Headers that contain an idempotency key are never cached as lines.
  if (headers instanceof HeaderLines || provider.own !== undefined) return headers;
  return headers.map((text, index) => {
    const isKey = index % 2 === 1 && headers[index - 1] === IDEMPOTENCY_KEY;
    // An empty key names no request. Its hash would make all requests of an organization the same one.
    return isKey && text !== '' ? hash('sha256', [owner.organizationId, owner.walletId, text].join('\0'), 'hex') : text;
  });
}
