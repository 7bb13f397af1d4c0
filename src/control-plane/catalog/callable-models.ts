// The models that clients can call: active ones, with the deployments that serve an endpoint.

import type { Catalog, Model } from '../../domain/models/catalog.ts';

/**
 * A deployment with `via: logprobs` is for routing only. A model without another deployment is not shown to clients.
 */
export function callableModels(catalog: Catalog): Model[] {
  return catalog.models
    .filter((model) => model.active)
    .map((model) =>
      model.servedBy.every(({ via }) => via === undefined)
        ? model
        : { ...model, servedBy: model.servedBy.filter(({ via }) => via === undefined) },
    )
    .filter(({ servedBy }) => servedBy.length > 0);
}
