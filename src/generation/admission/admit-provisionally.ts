// Admits a request before its exact needs are known, so that nothing is looked up or classified for a request that
// would be refused anyway. The exact admission later replaces this one.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import { resolveModel } from '../catalog/resolve-model.ts';
import type { OpenRequest } from '../open-request.ts';
import type { DataPlane } from '../plane.ts';
import { admitFirst } from './admit-first.ts';
import type { AdmissionParams } from './plan-holds.ts';

/**
 * Admits the request for the first of `models` (public ids) that can be admitted, and keeps the admission in `request`.
 * null: the request is admitted. `carriedTokens`: the input that the continued response adds; null: not known.
 */
export async function admitProvisionally(
  plane: DataPlane,
  request: OpenRequest,
  models: readonly string[],
  carriedTokens: number | null,
): Promise<Refusal | null> {
  if (!plane.canRecord()) return { kind: 'billing_unavailable' };
  const { principal, catalog, dialect } = request;
  const candidates = models.flatMap((model): readonly (AdmissionParams | Refusal)[] => {
    const resolved = resolveModel(catalog, dialect.api, model, principal.allowedModels);
    if ('kind' in resolved) return [resolved];
    const { cooldowns } = plane.relay;
    const deployments = cooldowns.filter(resolved.deployments, principal.organizationId, request.receivedAtMs);
    if ('kind' in deployments) return [deployments];
    const { served } = resolved;
    return (served.ownOnly === undefined ? [served] : [served, served.ownOnly]).map((one) =>
      request.admissionOf(one, carriedTokens),
    );
  });
  const admission = request.keepAdmission(await admitFirst(candidates, plane.admission));
  return 'kind' in admission ? admission : null;
}
