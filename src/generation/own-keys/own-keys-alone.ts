// What is left of a request whose organization cannot or may not pay for the service: its own keys, if there are any.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Admission } from '../admission/admission.ts';
import { type Deployment, isOwn, type ServedModel } from '../catalog/serving-catalog.ts';

export interface OwnKeysAlone {
  readonly served: ServedModel;
  /** At least one. */
  readonly deployments: readonly Deployment[];
  /** Told to the client if they cannot serve either. */
  readonly serviceRefusal: Refusal;
}

/** Refusals for what the service would cost, which is no concern of a key whose provider bills the organization. */
const FOR_COST: ReadonlySet<Refusal['kind']> = new Set(['insufficient_credit', 'not_safely_billable']);

/** null: what admission has found stands. */
export function ownKeysAlone(
  { ownOnly }: ServedModel,
  deployments: readonly Deployment[],
  found: Admission | Refusal,
): OwnKeysAlone | null {
  if (ownOnly === undefined || !('kind' in found) || !FOR_COST.has(found.kind)) return null;
  const own = deployments.filter(isOwn);
  return own.length === 0 ? null : { served: ownOnly, deployments: own, serviceRefusal: found };
}
