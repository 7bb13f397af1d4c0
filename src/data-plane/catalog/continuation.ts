// A request that continues a saved response goes to the provider that keeps it, and only for its owner (spec 4.2, 5.4).

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { RequestBounds } from '../dialects/dialect.ts';
import type { SavedResponses } from './saved-responses.ts';
import type { Offer } from './serving-catalog.ts';

/** Who can serve a request, and what it brings along that its body does not show. */
export interface Continuation {
  readonly offers: readonly Offer[];
  /** Input tokens of what is continued; null where nobody here knows how many. */
  readonly carriedTokens: number | null;
}

/** Synchronous but for a continuation. One of a response that this installation does not know is the provider's to judge. */
export function continueFrom(
  { savedResponses }: { readonly savedResponses: SavedResponses },
  principal: ScopedPrincipal,
  bounds: RequestBounds,
  offers: readonly Offer[],
): Continuation | Refusal | Promise<Continuation | Refusal> {
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
  if (saved === 'unknown') return { offers, carriedTokens: null };
  const keeping = offers.filter((offer) => offer.provider.id === saved.provider);
  const carriedTokens = saved.inputTokens === null || saved.outputTokens === null ? null : saved.inputTokens + saved.outputTokens;
  return { offers: keeping.length > 0 ? keeping : offers, carriedTokens };
}
