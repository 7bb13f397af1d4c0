// A request that continues a saved response goes to the provider that keeps it, and only for its owner (spec 4.2, 5.4); one that names other objects stored
// at a provider goes to nobody, unless the operator shares them.

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ApiName } from '../../domain/models/catalog.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { RequestBounds } from '../dialects/dialect.ts';
import type { ScannedBody } from '../dialects/read-request.ts';
import type { SavedResponses } from './saved-responses.ts';
import type { Offer } from './serving-catalog.ts';
import { isShared, offersForStoredObjects, type StoredObjectWorkers } from './stored-objects.ts';

/** Who can serve a request, and what it brings along that its body does not show. */
export interface Continuation {
  readonly offers: readonly Offer[];
  /** Input tokens of what is continued; null where nobody here knows how many. */
  readonly carriedTokens: number | null;
}

export interface ContinuationParams {
  readonly principal: ScopedPrincipal;
  readonly api: ApiName;
  readonly request: ScannedBody;
  readonly bounds: RequestBounds;
  readonly offers: readonly Offer[];
}

interface ContinuationContext {
  readonly savedResponses: SavedResponses;
  readonly workers: StoredObjectWorkers;
}

/** Synchronous but for a continuation, and for a big body that may name stored objects. */
export function continueFrom(
  { savedResponses, workers }: ContinuationContext,
  params: ContinuationParams,
): Continuation | Refusal | Promise<Continuation | Refusal> {
  const offers = offersForStoredObjects(params.api, params.request, params.offers, workers);
  if (offers instanceof Promise) return offers.then((found) => continueWith(savedResponses, params, found));
  return continueWith(savedResponses, params, offers);
}

function continueWith(
  savedResponses: SavedResponses,
  { principal, bounds }: ContinuationParams,
  offers: readonly Offer[] | Refusal,
): Continuation | Refusal | Promise<Continuation | Refusal> {
  if ('kind' in offers) return offers;
  const saved = bounds.saved;
  const responseId = saved?.previousResponseId ?? null;
  if (responseId !== null) return continueResponse(savedResponses, principal, responseId, offers);
  // A conversation lives at the provider: how long it has become, only the provider knows.
  return { offers, carriedTokens: saved?.conversationId == null ? 0 : null };
}

async function continueResponse(
  savedResponses: SavedResponses,
  principal: ScopedPrincipal,
  responseId: string,
  offers: readonly Offer[],
): Promise<Continuation | Refusal> {
  const saved = await savedResponses.find(principal, responseId).catch(() => 'unavailable' as const);
  // Whose it is and how much it carries along is not known: nothing is sent before it is.
  if (saved === 'unavailable' || saved === 'busy') return { kind: 'billing_unavailable' };
  // All organizations share the operator's account at the provider: without this, knowing an id would be enough to read a conversation on.
  if (saved === 'foreign') return { kind: 'response_not_found' };
  if (saved === 'unknown') {
    const shared = offers.filter(isShared);
    return shared.length > 0 ? { offers: shared, carriedTokens: null } : { kind: 'response_not_found' };
  }
  const keeping = offers.filter((offer) => offer.provider.id === saved.provider);
  const carriedTokens = saved.inputTokens === null || saved.outputTokens === null ? null : saved.inputTokens + saved.outputTokens;
  return { offers: keeping.length > 0 ? keeping : offers, carriedTokens };
}
