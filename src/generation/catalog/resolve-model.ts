// Resolves the name in a request to the model and the deployments that can be called for it.

import type { ApiName } from '../../domain/models/apis.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Deployment, ServedModel, ServingCatalog } from './serving-catalog.ts';

export interface ResolvedModel {
  readonly served: ServedModel;
  /** At least one, in the order in which they are tried. */
  readonly deployments: readonly Deployment[];
}

/**
 * A model that the principal may not use is refused like one that does not exist. `allowedModels`: public ids; null:
 * every model.
 */
export function resolveModel(
  catalog: ServingCatalog,
  api: ApiName,
  requestedModel: string,
  allowedModels: ReadonlySet<string> | null,
): ResolvedModel | Refusal {
  const served = findModel(catalog, requestedModel, allowedModels);
  if (served === null) return { kind: 'unknown_model', model: requestedModel };
  const refusal = served.refusals?.get(api);
  if (refusal !== undefined) return refusal;
  const deployments = served.deployments.get(api);
  return deployments === undefined
    ? { kind: 'api_not_supported', model: requestedModel, api }
    : { served, deployments };
}

/** The model that a name stands for; null: there is none that the principal may use. */
export function findModel(
  { byName }: ServingCatalog,
  name: string,
  allowedModels: ReadonlySet<string> | null,
): ServedModel | null {
  const served = byName.get(name) ?? null;
  return served === null || allowedModels === null || allowedModels.has(served.model.id) ? served : null;
}
