// A request that continues a saved response goes to the provider that keeps it, and only for its owner (spec 4.2, 5.4).

import type { Principal } from '../../domain/identity/principal.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { RequestBounds } from '../dialects/dialect.ts';
import type { SavedResponses } from './saved-responses.ts';
import type { Offer } from './serving-catalog.ts';

/** The offers that can serve; synchronous but for a continuation. One of a response that this installation does not know is the provider's to judge. */
export function offersForContinuation(
  { savedResponses }: { readonly savedResponses: SavedResponses },
  principal: Principal,
  bounds: RequestBounds,
  offers: readonly Offer[],
): readonly Offer[] | Refusal | Promise<readonly Offer[] | Refusal> {
  const responseId = bounds.saved?.previousResponseId ?? null;
  return responseId === null ? offers : offersThatKeep(savedResponses, principal, responseId, offers);
}

async function offersThatKeep(
  savedResponses: SavedResponses,
  principal: Principal,
  responseId: string,
  offers: readonly Offer[],
): Promise<readonly Offer[] | Refusal> {
  const saved = await savedResponses.find(principal, responseId);
  // All organizations share the operator's account at the provider: without this, knowing an id would be enough to read a conversation on.
  if (saved === 'foreign') return { kind: 'response_not_found' };
  if (saved === 'unknown') return offers;
  const keeping = offers.filter((offer) => offer.provider.id === saved.provider);
  return keeping.length > 0 ? keeping : offers;
}
