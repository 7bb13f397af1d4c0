// Decides who may serve a request that names objects stored at a provider. A continuation of a saved response goes to
// the provider that keeps it, and only for its owner (spec 4.2, 5.4). Other stored objects may be named only where the
// operator shares them.

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Dialect, RequestBounds } from '../dialects/dialect.ts';
import type { ScannedBody } from '../request/scanned-body.ts';
import type { SavedItem, SavedResponses, StoredAt } from './saved-responses.ts';
import type { Deployment } from './serving-catalog.ts';
import {
  deploymentsForUnknownItems,
  isShared,
  readStoredObjects,
  type StoredObjects,
  type StoredObjectWorkers,
} from './stored-objects.ts';

/** The deployments that may serve a request, and the input that it continues without containing it. */
export interface Continuation {
  readonly deployments: readonly Deployment[];
  /** Input tokens of the continued conversation; null: not known. */
  readonly carriedTokens: number | null;
}

interface ContinuationParams {
  readonly principal: ScopedPrincipal;
  readonly dialect: Dialect;
  readonly request: ScannedBody;
  readonly bounds: RequestBounds;
  readonly deployments: readonly Deployment[];
}

interface ContinuationContext {
  readonly savedResponses: SavedResponses;
  readonly workers: StoredObjectWorkers;
}

const RESPONSE_NOT_FOUND: Refusal = { kind: 'response_not_found' };
const ITEM_ELSEWHERE: Refusal = {
  kind: 'invalid_field',
  field: 'input',
  reason:
    'it refers to an item that none of the providers of this model keeps. ' +
    'Send the items themselves, as clients do with "store": false',
};

/** Returns a promise only for a continuation, or for a large body that may name stored objects. */
export function continueFrom(
  { savedResponses, workers }: ContinuationContext,
  params: ContinuationParams,
): Continuation | Refusal | Promise<Continuation | Refusal> {
  const named = readStoredObjects(params.dialect, params.request, params.deployments, workers);
  return named instanceof Promise
    ? continueLater(savedResponses, params, named)
    : continueWith(savedResponses, params, named);
}

async function continueLater(
  savedResponses: SavedResponses,
  params: ContinuationParams,
  named: Promise<StoredObjects | Refusal>,
): Promise<Continuation | Refusal> {
  return continueWith(savedResponses, params, await named);
}

function continueWith(
  savedResponses: SavedResponses,
  { principal, bounds }: ContinuationParams,
  named: StoredObjects | Refusal,
): Continuation | Refusal | Promise<Continuation | Refusal> {
  if ('kind' in named) return named;
  const responseId = bounds.saved?.previousResponseId ?? null;
  if (named.itemIds.length > 0) return continueItemsAndResponse(savedResponses, principal, named, responseId);
  // Only the provider knows how long a conversation that it stores has become.
  const plain: Continuation = { deployments: named.deployments, carriedTokens: named.addsUnknownInput ? null : 0 };
  return responseId === null ? plain : continueResponse(savedResponses, principal, responseId, plain);
}

async function continueItemsAndResponse(
  savedResponses: SavedResponses,
  principal: ScopedPrincipal,
  named: StoredObjects,
  responseId: string | null,
): Promise<Continuation | Refusal> {
  const items = await continueItems(savedResponses, principal, named);
  if ('kind' in items || responseId === null) return items;
  return continueResponse(savedResponses, principal, responseId, items);
}

async function continueItems(
  savedResponses: SavedResponses,
  principal: ScopedPrincipal,
  { deployments, itemIds }: StoredObjects,
): Promise<Continuation | Refusal> {
  const items = await savedResponses.findItems(principal, itemIds);
  if (items === 'unavailable') return { kind: 'billing_unavailable' };
  if (items === 'unposted') return { kind: 'not_posted_yet' };
  const first = items === 'unknown' ? undefined : items[0];
  // All items must be stored in the same account.
  if (items === 'unknown' || first === undefined || !items.every((item) => isSameAccount(item, first))) {
    const shared = deploymentsForUnknownItems(deployments);
    return 'kind' in shared ? shared : { deployments: shared, carriedTokens: null };
  }
  const able = deploymentsOfAccount(deployments, first, ITEM_ELSEWHERE);
  return 'kind' in able ? able : { deployments: able, carriedTokens: carriedBy(items, itemIds) };
}

function isSameAccount(one: StoredAt, other: StoredAt): boolean {
  return one.provider === other.provider && one.ownKeyId === other.ownKeyId;
}

/**
 * The deployments in whose account the object is stored, or `refusal` if there are none. Another provider may store
 * another caller's object under the same id.
 */
function deploymentsOfAccount(
  deployments: readonly Deployment[],
  stored: StoredAt,
  refusal: Refusal,
): readonly Deployment[] | Refusal {
  const ofSource = deployments.filter(({ ownKey }) => (ownKey?.keyId ?? null) === stored.ownKeyId);
  if (ofSource.length === 0) return { kind: 'byok_key_unavailable' };
  if (stored.ownKeyId !== null) return ofSource;
  const ofProvider = ofSource.filter(({ provider }) => provider.id === stored.provider);
  return ofProvider.length > 0 ? ofProvider : refusal;
}

/**
 * The output tokens of the responses that contain the items. null: an item was named twice, or a count is not known.
 */
function carriedBy(items: readonly SavedItem[], itemIds: readonly string[]): number | null {
  if (new Set(itemIds).size !== itemIds.length) return null;
  const outputs = new Map(items.map(({ responseId, outputTokens }) => [responseId, outputTokens]));
  return [...outputs.values()].reduce((sum, tokens) => (sum === null || tokens === null ? null : sum + tokens), 0);
}

async function continueResponse(
  savedResponses: SavedResponses,
  principal: ScopedPrincipal,
  responseId: string,
  { deployments, carriedTokens: alsoCarried }: Continuation,
): Promise<Continuation | Refusal> {
  const saved = await savedResponses.find(principal, responseId);
  // Nothing is sent before the owner of the response and its token count are known.
  if (saved === 'unavailable') return { kind: 'billing_unavailable' };
  if (saved === 'unposted') return { kind: 'not_posted_yet' };
  // All organizations share the operator's account at the provider. Without this check, knowing an id would be enough
  // to continue another organization's conversation.
  if (saved === 'foreign') return RESPONSE_NOT_FOUND;
  if (saved === 'unknown') {
    const shared = deployments.filter(isShared);
    return shared.length > 0 ? { deployments: shared, carriedTokens: null } : RESPONSE_NOT_FOUND;
  }
  const able = deploymentsOfAccount(deployments, saved, RESPONSE_NOT_FOUND);
  if ('kind' in able) return able;
  const { inputTokens, outputTokens } = saved;
  const carriedTokens =
    inputTokens === null || outputTokens === null || alsoCarried === null
      ? null
      : inputTokens + outputTokens + alsoCarried;
  return { deployments: able, carriedTokens };
}
