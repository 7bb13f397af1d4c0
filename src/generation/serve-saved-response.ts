// Serves the operations on saved responses (spec 4.2): authenticates, finds the response's owner and the provider
// account that stores it, and passes the call through.

import type { ScopedPrincipal } from '../domain/identity/principal.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Exchange } from '../http/exchange.ts';
import { providerCredential } from '../upstream/credential.ts';
import type { SavedResponse } from './catalog/saved-responses.ts';
import { rulesOf } from './guardrails/policies-in-force.ts';
import { Screening } from './guardrails/screening.ts';
import { findPause } from './own-keys/catalog-with-own-keys.ts';
import type { DataPlane } from './plane.ts';
import { type PassThroughParams, passThrough } from './reply/pass-through.ts';

/** `operation`: the part of the path after the id. */
export function serveSavedResponse(
  plane: DataPlane,
  operation: '' | '/cancel' | '/input_items',
): (exchange: Exchange) => Promise<void> {
  return async (exchange) => {
    const principal = await plane.authenticator.authenticateKey(
      exchange.authorization,
      exchange.apiKey,
      undefined,
      exchange,
    );
    // Nothing is looked up or called for a client that has left.
    if (exchange.closed) return;
    if ('kind' in principal) return exchange.refuse(principal);
    const responseId = exchange.parameter ?? '';
    const saved = await plane.savedResponses.find(principal, responseId);
    if (exchange.closed) return;
    if (saved === 'unavailable') return exchange.refuse({ kind: 'billing_unavailable' });
    if (saved === 'unposted') return exchange.refuse({ kind: 'not_posted_yet' });
    // A response of another organization looks the same as none.
    if (typeof saved === 'string') return exchange.refuse({ kind: 'response_not_found' });
    const account = saved.ownKeyId === null ? accountOf(plane, saved) : await ownAccountOf(plane, principal, saved);
    if (exchange.closed) return;
    if ('kind' in account) return exchange.refuse(account);
    const screening = savedScreening(plane, principal);
    if (screening !== null && 'kind' in screening) return exchange.refuse(screening);
    if (screening !== null) exchange.screeningHeaders = screening.headers();
    // The id needs no escaping: an id that was found has only characters that may stand in a path (kept-ids.ts).
    const path = `/v1/responses/${responseId}${operation}`;
    passThrough({ exchange, owner: principal, ...account, path, screening }, plane.relay);
  };
}

/** A reply that is fetched later passes the same rules as one that comes at once. null: there are none. */
function savedScreening(plane: DataPlane, principal: ScopedPrincipal): Screening | Refusal | null {
  const found = plane.policiesInForce()?.of(principal, 'responses') ?? null;
  if (found === null) return null;
  const compiled = rulesOf(found);
  if (compiled === 'refuse') return { kind: 'guardrail_unavailable' };
  if (compiled === null) return null;
  const external = { detectors: plane.externalDetectors, organizationId: principal.organizationId };
  return new Screening(compiled, plane.guardrailHeaders, external, 'unavailable' in found);
}

/** A provider and the key of the account there that stores the response. */
type Account = Pick<PassThroughParams, 'provider' | 'credential' | 'ownDeployment'>;

function accountOf(plane: DataPlane, saved: SavedResponse): Account | Refusal {
  const provider = plane.catalog().providers.get(saved.provider);
  return provider === undefined
    ? { kind: 'response_not_found' }
    : { provider, credential: providerCredential(provider), ownDeployment: null };
}

/**
 * Uses only the own key that the response was made with. A stored response may be read even while the key pauses for
 * its rate or its account's credit.
 */
async function ownAccountOf(
  plane: DataPlane,
  { organizationId }: ScopedPrincipal,
  { ownKeyId, model: name }: SavedResponse,
): Promise<Account | Refusal> {
  const { models, byName } = plane.catalog();
  const model = byName.get(name)?.model;
  const keys = await plane.ownKeys.find(organizationId);
  if (keys === 'unavailable') return { kind: 'byok_key_unavailable', isNotLookedUp: true };
  if (ownKeyId === null || model === undefined) return { kind: 'byok_key_unavailable' };
  const { clock, relay } = plane;
  const made = keys.deploymentsWith(ownKeyId, { models, model, api: 'responses', nowMs: clock.nowMs() });
  const monotonicMs = clock.monotonicMs();
  const found = made.find((one) => findPause(relay.keyPauses, one, monotonicMs)?.meaning !== 'key');
  return found === undefined ? { kind: 'byok_key_unavailable' } : { ...found, ownDeployment: found };
}
