// The virtual model as the catalog lists it (spec 2.3): its limits are the smallest of the models that may serve it.

import { ROUTED_APIS } from '../../domain/models/apis.ts';
import type { Catalog, Model } from '../../domain/models/catalog.ts';
import type { VirtualModel } from '../../domain/routing/virtual-model.ts';

/** null: none of the policy's candidates is in the catalog. */
export function virtualEntry(catalog: Catalog, policy: string, { id, displayName, owner }: VirtualModel): Model | null {
  const tiers = catalog.routing.policies.get(policy)?.tiers ?? [];
  const shown = new Set(catalog.models);
  const candidates = tiers
    .flatMap((tier) => tier.models)
    .map((candidate) => catalog.byName.get(candidate.id))
    .filter((model) => model !== undefined && shown.has(model)) as readonly Model[];
  if (candidates.length === 0) return null;
  return {
    id,
    displayName,
    kind: 'text',
    aliases: [],
    contextLength: smallest(candidates.map(({ contextLength }) => contextLength)),
    maxOutputTokens: smallest(candidates.map(({ maxOutputTokens }) => maxOutputTokens)),
    maxCompletionTokensCap: null,
    attachmentTokensMax: null,
    tokenizer: '',
    active: true,
    createdAtMs: Math.max(...candidates.map(({ createdAtMs }) => createdAtMs)),
    servedBy: [
      {
        provider: { id: owner, baseUrl: '', apiKey: '', auth: 'bearer', onDisconnect: 'cancel' },
        providerModel: id,
        apis: ROUTED_APIS,
        // A request costs what the model that serves it costs.
        price: null,
      },
    ],
  };
}

/** null: no value is known. */
function smallest(counts: readonly (number | null)[]): number | null {
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? null : Math.min(...known);
}
