// The gateway envelope (spec 7.6): `{error: <string>}`, for what is refused before a request reaches its route.

import type { RefusalDescription } from '../description.ts';

export interface GatewayEnvelope {
  readonly error: string;
}

/**
 * The kinds of spec 7.6 have the spec's own string as summary. Other kinds get this envelope on paths without a route.
 */
export function gatewayEnvelope(refusal: RefusalDescription): GatewayEnvelope {
  return { error: refusal.family === 'gateway' ? refusal.summary : refusal.message };
}
