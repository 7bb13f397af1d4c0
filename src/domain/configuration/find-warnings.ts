// Finds catalog entries that are valid but probably mistakes: addresses that are rarely meant, and models for which
// requests of billed organizations are refused. The warnings are shown when a file is applied, when the installation
// starts, and in the answer to a change.

import type { CatalogState, ConfiguredState } from './difference.ts';

/** The state of a catalog entry after a change, and the warnings about it. */
export interface CatalogEntry {
  readonly state: CatalogState;
  readonly warnings: readonly string[];
}

/** An organization that is billed. */
export interface BilledOrganization {
  readonly slug: string;
  /** The only models that it may use; null: all. */
  readonly allowedModels: readonly string[] | null;
}

interface ModelFields {
  readonly kind: string;
  readonly active: boolean;
  readonly context_length?: number;
  readonly served_by?: readonly ServedByFields[];
}

interface ServedByFields {
  readonly provider: string;
  /** One price, or several for different dates or hours. */
  readonly price?: object;
  readonly via?: string;
}

/**
 * The warnings about providers and models in the form of catalog states (storage/postgres/catalog/catalog-states.ts).
 */
export function findWarnings(
  states: readonly ConfiguredState[],
  billed: readonly BilledOrganization[],
): readonly string[] {
  return states.flatMap(({ kind, id, fields }) => {
    if (kind === 'provider') return fields['apis'] === undefined ? warnOfAddress(id, String(fields['base_url'])) : [];
    if (kind !== 'model') return [];
    const model = fields as unknown as ModelFields;
    if (!model.active) return [];
    const users = billed.filter(({ allowedModels }) => allowedModels === null || allowedModels.includes(id));
    return [...warnOfPrice(id, model, users), ...warnOfContext(id, model)];
  });
}

/**
 * Warns if the path contains a version other than a final /v1: such a provider rarely expects a further /v1 after it.
 */
function warnOfAddress(id: string, baseUrl: string): readonly string[] {
  const path = new URL(baseUrl).pathname.replace(/\/v1$/, '');
  if (!/\/v\d[^/]*(\/|$)/.test(path)) return [];
  return [
    `provider "${id}" is called at ${baseUrl}/v1/chat/completions and the like: /v1 is left out only behind a ` +
      `base_url that ends in /v1`,
  ];
}

function warnOfPrice(
  id: string,
  { served_by: deployments = [] }: ModelFields,
  users: readonly BilledOrganization[],
): readonly string[] {
  // Clients cannot call a deployment that is asked by log-probabilities.
  const unpriced = deployments.filter(({ price, via }) => price === undefined && via === undefined);
  const [first] = users;
  if (first === undefined || unpriced.length === 0) return [];
  const others = users.length === 1 ? '' : ` and ${users.length - 1} more`;
  const organizations = `billed organizations ("${first.slug}"${others})`;
  return unpriced.length === deployments.length
    ? [`model "${id}" has no price: requests of ${organizations} for it are refused with 422`]
    : unpriced.map(
        ({ provider }) => `model "${id}" has no price at provider "${provider}", which does not serve ${organizations}`,
      );
}

/** A model that is priced by image needs no context length. */
function warnOfContext(id: string, model: ModelFields): readonly string[] {
  if (model.context_length !== undefined || model.kind === 'image') return [];
  const found = hasPricedCalls(model)
    ? '; nothing is held for the tokens of what its calls of tools find, which are suspense beyond the hold'
    : '';
  return [
    `model "${id}" has no context_length: under billing or a token limit, its requests with attachments and those ` +
      'that continue a stored response are refused with 422, and auto routing takes it for large enough for ' +
      `anything${found}`,
  ];
}

function hasPricedCalls({ served_by: deployments = [] }: ModelFields): boolean {
  return deployments.flatMap(({ price = [] }) => price).some((price) => 'calls' in price);
}
