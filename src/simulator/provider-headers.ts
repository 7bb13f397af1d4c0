// The response headers of each family of providers. The cookie and the `x-internal` field must never reach a gateway's
// client.

import type { Api, ReplyHeaders } from './apis/api.ts';

export function providerHeaders(family: Api['family'], requestId: string): ReplyHeaders {
  return {
    ...FAMILY_HEADERS[family](requestId),
    'set-cookie': '__sim=provider-cookie; Path=/; HttpOnly',
    'x-internal': 'provider-internal',
  };
}

const FAMILY_HEADERS: Readonly<Record<Api['family'], (requestId: string) => ReplyHeaders>> = {
  openai: (requestId) => ({
    'x-request-id': requestId,
    'openai-version': '2020-10-01',
    'openai-processing-ms': '1',
    'openai-organization': 'sim-organization',
    'x-ratelimit-limit-requests': '10000',
    'x-ratelimit-remaining-requests': '9999',
  }),
  anthropic: (requestId) => ({
    'request-id': requestId,
    'anthropic-organization-id': 'sim-organization',
    'anthropic-ratelimit-requests-limit': '20000',
    'anthropic-ratelimit-requests-remaining': '19999',
  }),
  typesafe: (requestId) => ({ 'x-typesafe-request-id': requestId }),
};
