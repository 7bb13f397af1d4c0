// Decides how a request can go on when its organization cannot or may not pay for the service: with its own keys, if
// any can serve.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Admission } from '../admission/admission.ts';
import { type Deployment, isOwn, type ServedModel } from '../catalog/serving-catalog.ts';

export interface OwnKeysAlone {
  readonly served: ServedModel;
  /** At least one. */
  readonly deployments: readonly Deployment[];
  /** The refusal for the client if the own keys cannot serve either. */
  readonly serviceRefusal: Refusal;
}

/** Refusals because of the service's cost. They do not concern a key whose provider bills the organization. */
const FOR_COST: ReadonlySet<Refusal['kind']> = new Set(['insufficient_credit', 'not_safely_billable']);

/** null: the result of admission stands. */
export function ownKeysAlone(
  { ownOnly }: ServedModel,
  deployments: readonly Deployment[],
  found: Admission | Refusal,
): OwnKeysAlone | null {
  if (ownOnly === undefined || !('kind' in found) || !FOR_COST.has(found.kind)) return null;
  const own = deployments.filter(isOwn);
  return own.length === 0 ? null : { served: ownOnly, deployments: own, serviceRefusal: found };
}
