// From the request's `model` value to the model that serves and the offers that can be called for it.

import type { ApiName } from '../../domain/models/catalog.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { readString, type ScannedRequest } from '../dialects/request-scan/request-scanner.ts';
import type { Offer, ServedModel, ServingCatalog } from './serving-catalog.ts';

export interface ResolvedModel {
  /** As the client wrote it. */
  readonly requestedModel: string;
  readonly served: ServedModel;
  /** At least one, first to last. */
  readonly offers: readonly Offer[];
}

export function resolveModel(catalog: ServingCatalog, api: ApiName, scanned: ScannedRequest, body: Buffer): ResolvedModel | Refusal {
  const value = scanned.valueOf('model');
  if (value === null) return { kind: 'missing_model' };
  if (value.kind !== 'string') return { kind: 'model_not_a_string' };
  const requestedModel = readString(body, value);
  if (requestedModel === '') return { kind: 'missing_model' };
  const served = catalog.byName.get(requestedModel);
  if (served === undefined) return { kind: 'unknown_model', model: requestedModel };
  const offers = served.offers.get(api);
  if (offers === undefined) return { kind: 'api_not_supported', model: requestedModel, api };
  return { requestedModel, served, offers };
}
